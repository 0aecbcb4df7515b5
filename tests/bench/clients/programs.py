"""
Installs by the client programs themselves, into empty folders and with empty caches.

Unlike those of L{installs}, these times contain the clients' own work: resolving, unpacking, writing to the disk.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urljoin

from .installs import Installed
from .load import STEP_LIMIT_S, LoadFailed

NPM_OPTIONS = ("--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts")


def npm_install(registry: str, root: str) -> Installed:
    """Install a package with everything it needs by npm. :raises LoadFailed: npm fails, or is not there"""

    def command(folder: Path) -> Sequence[str]:
        options = ("--prefix", str(folder), "--cache", str(folder / "cache"), "--registry", registry)
        return [_program("npm"), "install", *NPM_OPTIONS, *options, root]

    return _run(command, lambda folder: len([*folder.glob("node_modules/*/package.json")]))


def pip_install(page_url: Callable[[str], str], root: str) -> Installed:
    """Install a project with everything it needs by pip. :raises LoadFailed: pip fails, or is not there"""
    options = ("--isolated", "--disable-pip-version-check", "--no-cache-dir", "--no-compile", "--quiet")

    def command(folder: Path) -> Sequence[str]:
        place = ("--target", str(folder / "site"), "--index-url", urljoin(page_url(root), "../"))
        return [sys.executable, "-m", "pip", "install", *options, *place, root]

    return _run(command, _count_distributions)


def uv_install(page_url: Callable[[str], str], root: str) -> Installed:
    """Install a project with everything it needs by uv. :raises LoadFailed: uv fails, or is not there"""

    def command(folder: Path) -> Sequence[str]:
        place = ("--target", str(folder / "site"), "--index-url", urljoin(page_url(root), "../"))
        python = ("--python", sys.executable)
        return [_program("uv"), "pip", "install", "--no-config", "--no-cache", "--quiet", *python, *place, root]

    return _run(command, _count_distributions)


def _count_distributions(folder: Path) -> int:
    return len([*folder.glob("site/*.dist-info")])


def _program(name: str) -> str:
    found = shutil.which(name, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
    if found is None:
        raise LoadFailed(f"{name} is not installed")
    return found


def _run(command: Callable[[Path], Sequence[str]], count: Callable[[Path], int]) -> Installed:
    """Run a command that installs into a new folder, and count what is there."""
    with TemporaryDirectory(prefix="pkgrepo-bench-") as text:
        folder = Path(text)
        environ = {"PATH": os.environ.get("PATH", ""), "HOME": text, "NO_PROXY": "*"}
        started = time.perf_counter()
        ended = subprocess.run(
            command(folder), cwd=folder, env=environ, capture_output=True, text=True, timeout=STEP_LIMIT_S, check=False
        )
        seconds = time.perf_counter() - started
        if ended.returncode:
            raise LoadFailed(f"it exits with {ended.returncode}: {ended.stderr[-400:]}")
        return Installed(seconds, count(folder), 0)
