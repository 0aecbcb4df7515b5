"""The sources of the commit that is checked out, and the wheel and the sdist that are built of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from pkgrepo.build import COMMIT_FILE
from pkgrepo.packaging.archives import Entry, entries_below, write_tar_gz

INDEX_PAGE = "pkgrepo/packaging/index-page.md"  # in the staged sources: the README without links to files beside it

_VERSION = re.compile(r'(?m)^__version__ = "([^"]+)"$')
_RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:)([^)]*)\)")
_TABLE = re.compile(r"(?m)(?:^\|.*\n)+\n?")
_README = 'readme = "README.md"\n'
_URLS = {
    "Source": "",
    "Documentation": "pkgrepo/docs/index.md",
    "Changelog": "CHANGELOG.md",
    "Security": "SECURITY.md",
    "Contributing": "CONTRIBUTING.md",
}


class ReleaseFailed(Exception):  # noqa: N818 - named for what happened
    """A step of the release cannot be done; the message is for the one who makes it."""


@frozen
class Sources:
    """
    The staged sources of a commit.

    ``folder`` holds them as they go into the sdist; ``epoch`` is the time of everything that is built, in seconds.
    """

    folder: Path
    version: str
    commit: str
    epoch: int

    @property
    def environment(self) -> dict[str, str]:
        """The environment of programs that build: times and the order of sets are fixed."""
        fixed = {"SOURCE_DATE_EPOCH": str(self.epoch), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        ours = ("PKGREPO_", "PYTHON", "PIP_TARGET", "DEB_")
        return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | fixed


def run(command: Sequence[object], *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """
    Run a program, and return its standard output.

    :raises ReleaseFailed: it is not installed, or fails
    """
    words = [str(each) for each in command]
    try:
        ended = subprocess.run(words, env=env, cwd=cwd, capture_output=True, check=False)  # noqa: S603 - our own words
    except FileNotFoundError as error:
        raise ReleaseFailed(f"{words[0]} is not installed") from error
    if ended.returncode:
        said = (ended.stderr or ended.stdout).decode(errors="replace").strip()
        raise ReleaseFailed(f"{' '.join(words[:4])}: exit status {ended.returncode}\n{said}")
    return ended.stdout.decode()


def stage(root: Path, work: Path, *, files_url: str | None, epoch: int | None) -> Sources:
    """
    Copy the files of the commit to ``work``, with the commit in a file.

    ``files_url`` is where people find these files, such as https://git.example/pkgrepo/blob/v0.1.0/: the metadata link
    to it, and the page of a package index does. Without it that page has no links to files.

    :raises ReleaseFailed: ``root`` is no checkout, or differs from its commit
    """
    if changed := run(["git", "status", "--porcelain", "--untracked-files=no"], cwd=root).strip():
        raise ReleaseFailed(f"the checkout differs from its commit; commit or restore first:\n{changed}")
    commit = run(["git", "rev-parse", "HEAD"], cwd=root).strip()
    time = int(run(["git", "log", "-1", "--format=%ct"], cwd=root)) if epoch is None else epoch
    found = _VERSION.search((root / "pkgrepo" / "__init__.py").read_text("utf-8"))
    if found is None:
        raise ReleaseFailed("pkgrepo/__init__.py has no __version__")
    work.mkdir(parents=True, exist_ok=True)
    folder = work / f"pkgrepo-{found[1]}"
    packed = work / "sources.tar"
    run(["git", "archive", "--format=tar", f"--output={packed}", commit], cwd=root)
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    (folder / "pkgrepo" / COMMIT_FILE).write_text(f"{commit}\n", "ascii")
    _describe(folder, files_url)
    return Sources(folder, found[1], commit, time)


def _describe(folder: Path, files_url: str | None) -> None:
    """Write the page for package indexes, and name it and the addresses in pyproject.toml."""
    readme = (folder / "README.md").read_text("utf-8")
    (folder / INDEX_PAGE).write_text(index_page(readme, files_url), "utf-8")
    project = folder / "pyproject.toml"
    text = project.read_text("utf-8")
    if _README not in text:
        raise ReleaseFailed(f"pyproject.toml has no line {_README.strip()}")
    text = text.replace(_README, f'readme = "{INDEX_PAGE}"\n')
    if files_url is not None:
        urls = "".join(f'{name} = "{files_url}{path}"\n' for name, path in _URLS.items())
        text = text.replace("[project.scripts]\n", f"[project.urls]\n{urls}\n[project.scripts]\n", 1)
    project.write_text(text, "utf-8")


def index_page(readme: str, files_url: str | None) -> str:
    """The README for a page that has no files beside it: links to files become absolute, or their text alone."""
    if files_url is None:
        without = _TABLE.sub(lambda found: "" if "![" in found[0] else found[0], readme)
        return _RELATIVE.sub(lambda found: found[2], without)
    return _RELATIVE.sub(lambda found: f"{found[1]}[{found[2]}]({files_url}{found[3]})", readme)


def build_wheel(sources: Sources, out: Path, work: Path) -> Path:
    """Build the wheel in a copy of the sources. Returns its path."""
    copy = work / "wheel"
    shutil.copytree(sources.folder, copy, symlinks=True)
    backend = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, copy]
    run(backend, env=sources.environment)
    return out / f"pkgrepo-{sources.version}-py3-none-any.whl"


def write_sdist(sources: Sources, wheel: Path, out: Path) -> Path:
    """Write the sdist: all files of the commit, and the metadata of the wheel as PKG-INFO. Returns its path."""
    base = f"pkgrepo-{sources.version}"
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"{base}.dist-info/METADATA")
    entries = [Entry(base), Entry(f"{base}/PKG-INFO", 0o644, metadata), *entries_below(sources.folder, f"{base}/")]
    write_tar_gz(target := out / f"{base}.tar.gz", entries, sources.epoch)
    return target
