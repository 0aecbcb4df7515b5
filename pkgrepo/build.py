"""What this installation is built of: its commit, and the versions of its dependencies."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

COMMIT_FILE = "commit.txt"  # in this package; bin/release writes it into what it builds

_NAME = re.compile(r"[\w.-]+")
_FOLDER = Path(__file__).parent


@cache
def commit() -> str:
    """
    The commit of the sources in hexadecimal digits, with "-changed" in a checkout that differs from it.

    Empty where neither a file nor git tells. Blocks for the time of a process in a checkout, once.
    """
    try:
        return (_FOLDER / COMMIT_FILE).read_text("ascii").strip()
    except FileNotFoundError:
        pass
    root = _FOLDER.parent
    if not (root / ".git").exists():
        return ""
    try:
        command = ["git", "-C", str(root), "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=-changed"]
        found = subprocess.run(command, capture_output=True, check=True, text=True, timeout=10)  # noqa: S603 - a constant
        return found.stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def dependencies() -> dict[str, str]:
    """The versions of the installed distributions that this one requires, also indirectly, by their names."""
    found: dict[str, str] = {}
    wanted = ["pkgrepo"]
    seen = set(wanted)
    while wanted:
        try:
            each = distribution(wanted.pop())
        except PackageNotFoundError:
            continue  # of another platform, or of an extra that is not installed
        found[normal(each.name)] = each.version
        for requirement in each.requires or []:
            name = _NAME.match(requirement)
            if name is not None and not _only_for_tests(requirement) and normal(name[0]) not in seen:
                seen.add(normal(name[0]))
                wanted.append(name[0])
    found.pop("pkgrepo", None)
    return dict(sorted(found.items()))


def _only_for_tests(requirement: str) -> bool:
    """Whether it belongs to an extra of another distribution, or to one of this project's own tests."""
    _, _, marker = requirement.partition(";")
    return "extra" in marker and not re.search(r"""extra\s*==\s*["'](postgresql|s3|tls|binary)["']""", marker)


def normal(name: str) -> str:
    """The normal form of the name of a distribution."""
    return re.sub(r"[-_.]+", "-", name).lower()
