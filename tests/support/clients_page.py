"""
The page of clients in the book: which program, in which version, a test drives through what.

Tests of ``tests/clients`` say what they show with the mark ``shows``. As each of them has to pass before a change is
taken, the page is made of what is collected, and not of a run. As a plugin of pytest
(``-p tests.support.clients_page``) this module prints what was collected; a test compares the page with
``pkgrepo/docs/clients.md``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen

ROOT: Final = Path(__file__).parents[2]

Shown = Mapping[str, Sequence[str]]  # parameters that name clients, by feature
MARK: Final = "shows: "
FEATURES: Final[Mapping[str, str]] = {
    "install": "installs",
    "publish": "publishes",
    "login": "logs in by its own command",
    "private": "reads a private repository",
    "lock": "installs what its lock file says",
    "yank": "is told of yanks and deprecations",
    "refusal": "prints why a publish is refused",
    "search": "searches",
    "audit": "audits",
    "provenance": "signs, verifies or shows provenance",
    "stage": "stages a version",
    "proxy": "through a proxy: cold, warm, without the upstream",
    "virtual": "through a virtual repository",
    "held": "prints the reason, or takes the version before, where a rule or block holds one",
    "trust": "takes the version before where trust fell",
    "cooldown": "its own cooldown works",
    "view": "as of a date",
    "mirror": "from a mirror of a lock file, or a bundle",
    "twin": "from a twin of plain files",
    "host": "at a host name or path prefix of its own",
    "pipeline": "publishes from a pipeline without a stored token",
    "setup": "is set up by `pkgrepo setup`",
}
_INSTALLED: Final = "as installed"
# By format: program, and the versions that tests know by these names: what a file pins, by the name there or by another
# one, or what Debian 12 has.
PROGRAMS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "npm": {
        "npm": {"npm-8": "", "npm-9": "", "npm-10": "", "npm-11": "", "npm-12": ""},
        "pnpm": {"pnpm": "", "pnpm-12": ""},
        "yarn": {"yarn-1": "", "yarn-4": ""},
        "bun": {"bun": ""},
        "deno": {"deno": ""},
    },
    "Python": {
        "pip": {"pip": ""},
        "uv": {"uv": ""},
        "twine": {"twine-6.1": "", "twine": ""},
        "poetry": {"poetry": ""},
        "pdm": {"pdm": ""},
        "pipenv": {"pipenv": ""},
        "hatch": {"hatch": ""},
        "flit": {"flit": ""},
    },
    "Container images": {
        "docker": {"docker": _INSTALLED},
        "podman": {"podman": "4.3"},
        "buildah": {"buildah": "1.28"},
        "skopeo": {"skopeo": "1.9"},
        "containerd": {"containerd": "1.6"},
        "crane": {"crane": "go-containerregistry"},
        "oras": {"oras": "oras"},
        "cosign": {"cosign": "cosign"},
    },
    "Java": {
        "Maven": {"maven-3.8": "3.8", "maven-3.9": "3.9", "maven-4": "4"},
        "Gradle": {"gradle": "gradle-api"},
        "sbt": {"sbt": "sbt-launch"},
        "Ivy": {"ivy": "ivy"},
        "coursier": {"coursier": "interface"},
    },
    "Ruby gems": {"gem and Bundler": {"debian": "3.3 with 2.3", "newer": "4.0"}},
    "conda": {
        "rattler (of pixi)": {"rattler": ""},
        "anaconda-client": {"anaconda": ""},
        "conda": {"conda": "4.3"},
    },
    "Rust, Go, Helm, files": {
        "cargo": {"cargo": _INSTALLED},
        "go": {"go": _INSTALLED},
        "helm": {"helm": "3", "helm-4": "4"},
        "curl": {"curl": "7.88"},
        "wget": {"wget": "1.21"},
    },
}
KNOWN: Final = frozenset(name for programs in PROGRAMS.values() for names in programs.values() for name in names)
_INTRODUCTION: Final = """\
# Which client does what

Look up what your program does with this server. Each version in these tables is one that a test drives, as a real
program, through what its row says; every test passes before a change is taken. Where there is none, nothing is known to
fail: no test looks at it, or the program has no such thing. *As installed* is whatever the machine of the tests has.
"""


@frozen
class _Marked:
    """What a collected test shows, and by which clients."""

    features: tuple[str, ...]
    clients: tuple[str, ...]


def _marked(item: pytest.Item) -> Iterator[_Marked]:
    for mark in item.iter_markers("shows"):
        parameters = getattr(item, "callspec", None)
        named = [each for each in parameters.params.values() if isinstance(each, str)] if parameters else []
        clients = mark.kwargs.get("by") or tuple(each for each in named if each in KNOWN)
        assert clients, f"{item.nodeid} shows something, and does not say by which client"
        assert {*clients} <= KNOWN, f"{item.nodeid} names a client that is not known: {clients}"
        assert {*mark.args} <= FEATURES.keys(), f"{item.nodeid} shows what is not known: {mark.args}"
        yield _Marked(mark.args, tuple(clients))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Print what the collected tests show."""
    shown: dict[str, set[str]] = {}
    for item in session.items:
        for marked in _marked(item):
            for feature in marked.features:
                shown.setdefault(feature, set()).update(marked.clients)
    print(MARK + json.dumps({feature: sorted(clients) for feature, clients in shown.items()}))


def collected() -> Shown:
    """What the tests of clients show; they are collected in a process of their own."""
    words = ("-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", "-p", "tests.support.clients_page")
    done = subprocess.run(
        [sys.executable, *words, "tests/clients"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [line] = [each for each in done.stdout.splitlines() if each.startswith(MARK)]
    found: Shown = json.loads(line.removeprefix(MARK))
    return found


def clients_page(shown: Shown) -> str:
    """The page, in Markdown; a cell has the versions that do what its row says."""
    pinned = dict(_pins())
    lines = [_INTRODUCTION]
    for title, programs in PROGRAMS.items():
        lines += [f"## {title}\n", "| | " + " | ".join(programs) + " |", "| --- |" + " --- |" * len(programs)]
        for feature, meaning in FEATURES.items():
            cells = [_cell(names, shown.get(feature, ()), pinned) for names in programs.values()]
            if any(cells):
                lines.append(f"| {meaning} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _cell(names: Mapping[str, str], shown: Iterable[str], pinned: Mapping[str, str]) -> str:
    return ", ".join(_version(name, given, pinned) for name, given in names.items() if name in {*shown})


def _version(name: str, given: str, pinned: Mapping[str, str]) -> str:
    """What the page calls a version: that of its pin, if it has one."""
    return pinned.get(given or name, given)


def _pins() -> Iterator[tuple[str, str]]:
    """Versions by the name of the client, or of the Go module or Maven artifact, as far as their files have them."""
    folder = ROOT / "tests" / "clients"
    for line in (folder / "pins.txt").read_text().splitlines() + (folder / "pins-node.txt").read_text().splitlines():
        if found := re.match(r"([\w.-]+) +[@\w/-]+?[=@]+(\d+(?:\.\d+)?)", line):
            yield found[1], found[2]
    for name, version in re.findall(r"/([\w-]+)(?:/v\d+)? v(\d+\.\d+)", (folder / "go" / "go.mod").read_text()):
        yield name, version
    artifacts = (folder / "java" / "pom.xml").read_text()
    for name, version in re.findall(r"<artifactId>([\w-]+)</artifactId><version>(\d+\.\d+)", artifacts):
        yield name, version
