"""
Zips of Go modules, made as the go command makes them of a version control system, so that their hashes are the same.

=======================================  ==============================================================================
folder                                   files
=======================================  ==============================================================================
of a git checkout, with tracked files    those of the commit of the version's tag, or of what is checked out
another                                  all in it
=======================================  ==============================================================================

Nested modules, vendored packages and links are left out (``golang.org/x/mod/zip.Create``). A module below the root of
its repository has the licence of that if it has none of its own. The version is said by the one tag of the commit that
can be of the module, with the folder of the module before it (https://go.dev/ref/mod#vcs-version), or by the caller.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Final

from attrs import frozen

from pkgrepo.archives.module_zip import (
    GO_MOD,
    LARGEST,
    LARGEST_FILE,
    LICENCE,
    FileNames,
    GoMod,
    fits_major,
    h1_of,
    major_suffix,
    read_mod,
)
from pkgrepo.client.packing.packed import Packed
from pkgrepo.errors import Invalid

PIECE: Final = 256 * 1024  # bytes
NO_VENDORED_LIST: Final = (1, 24)  # from this version of the language on vendor/modules.txt is left out
CONTROL_FOLDERS: Final = frozenset({".bzr", ".git", ".hg", ".svn"})

_VERSION: Final = re.compile(r"v(?:0|[1-9][0-9]*)(?:\.(?:0|[1-9][0-9]*)){2}(?:-[0-9A-Za-z.-]+)?")
_LANGUAGE: Final = re.compile(r"([0-9]+)\.([0-9]+)")
_GIT_SETTINGS: Final = ("-c", "core.autocrlf=input", "-c", "core.eol=lf")  # as the go command sets them
_GIT_ATTRIBUTES: Final = "* -export-subst -export-ignore\n"  # the same (golang.org/issue/27153)


@frozen
class _File:
    """A file of a module: its path in it, its size in bytes, and how it is opened."""

    name: str
    size: int
    open: Callable[[], IO[bytes]]


def pack_module(folder: Path, version: str, place: Path) -> Packed:
    """
    Make the zip of a module; ``version`` may be empty if a tag says it.

    :raises Invalid: the folder is no module, or has what none may have, or its version is not known
    :raises OSError: a file cannot be read
    """
    checkout, notes = _Checkout.find(folder), tuple[str, ...]()
    with ExitStack() as stack:
        if checkout is not None:
            version, commit = checkout.choose(version)
            files, notes = checkout.files(commit, place, stack), checkout.notes(commit)
        elif version:
            files = list(_files_in(folder))
        else:
            raise Invalid(f"{folder} is no git checkout with a tag: give its version by --version, such as v1.0.0")
        said = _read_mod(files, folder)
        if not fits_major(said.module, version):
            wanted = major_suffix(said.module)[1:] or "v0 or v1"
            raise Invalid(f"{version} is no version of {said.module}, whose major version is {wanted}", "version")
        target = place / "module.zip"
        h1 = _write(target, f"{said.module}@{version}/", _chosen(files, said.go))
    return Packed(target, f"{said.module}@{version}", h1, notes)


def _read_mod(files: Iterable[_File], folder: Path) -> GoMod:
    found = next((each for each in files if each.name == GO_MOD), None)
    if found is None or found.size > LARGEST_FILE:
        raise Invalid(f"{folder} has no {GO_MOD} in the commit, or one of more than {LARGEST_FILE} bytes")
    with found.open() as file:
        return read_mod(file.read())


def _files_in(folder: Path) -> Iterator[_File]:
    """The files of a folder under no version control (``zip.CreateFromDir``)."""
    for place, folders, names in os.walk(folder):
        inner = Path(place).relative_to(folder).as_posix()
        if inner != "." and (Path(place) / GO_MOD).exists():  # another module
            folders.clear()
            continue
        folders[:] = [each for each in folders if each not in CONTROL_FOLDERS]
        for name in names:
            path = Path(place) / name
            if path.is_file() and not path.is_symlink() and name not in CONTROL_FOLDERS:
                shown = name if inner == "." else f"{inner}/{name}"
                yield _File(shown, path.stat().st_size, partial(_open, path))


def _chosen(files: Iterable[_File], language: str) -> Iterator[_File]:
    """Those of the files that are in a zip (``zip.checkFiles``). :raises Invalid: there may be no such zip"""
    files = list(files)
    names, left = FileNames(), LARGEST
    nested = {folder for folder, _, name in (each.name.rpartition("/") for each in files) if name.lower() == GO_MOD}
    numbers = _LANGUAGE.match(language)
    without_list = numbers is not None and (int(numbers[1]), int(numbers[2])) >= NO_VENDORED_LIST
    for each in files:
        folders = each.name.split("/")[:-1]
        inside = any("/".join(folders[: end + 1]) in nested for end in range(len(folders)))
        if inside or is_vendored(each.name, without_list=without_list) or each.name == ".hg_archival.txt":
            continue
        names.add(each.name, each.size)
        left -= each.size
        if left < 0:
            raise Invalid(f"the module has more than {LARGEST} bytes")
        yield each


def is_vendored(name: str, *, without_list: bool) -> bool:
    """
    Whether a file belongs to a vendored package, as the go command sees it (golang.org/issue/37397).

    It is ``without_list`` for modules from Go 1.24 on: earlier, vendor/modules.txt was kept, and packages directly in a
    vendor folder further below were not.
    """
    if without_list and name == "vendor/modules.txt":
        return True
    if name.startswith("vendor/"):
        return "/" in name.removeprefix("vendor/")
    before, found, after = name.partition("/vendor/")
    return bool(found) and "/" in (after if without_list else f"{before}{found}{after}"[len("/vendor/") :])


def _write(target: Path, prefix: str, files: Iterable[_File]) -> str:
    """Write a zip, and return the hash of go.sum. :raises Invalid: a file changes meanwhile, or it gets too large"""
    digests: list[tuple[str, str]] = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in files:
            digest, size = hashlib.sha256(), 0
            info = zipfile.ZipInfo(f"{prefix}{each.name}")  # of 1980: times count for nothing
            info.compress_type = zipfile.ZIP_DEFLATED
            with each.open() as source, archive.open(info, "w") as entry:
                while piece := source.read(PIECE):
                    entry.write(piece)
                    digest.update(piece)
                    size += len(piece)
            if size != each.size:
                raise Invalid(f"{each.name} has changed while it was read: try again")
            digests.append((info.filename, digest.hexdigest()))
    if target.stat().st_size > LARGEST:
        raise Invalid(f"the zip has more than {LARGEST} bytes")
    return h1_of(digests)


@frozen
class _Checkout:
    """A folder with files that git tracks: ``prefix`` is its path in the checkout, with a slash at its end or empty."""

    folder: Path
    prefix: str

    @classmethod
    def find(cls, folder: Path) -> _Checkout | None:
        """None if git tracks nothing in it. :raises Invalid: git cannot tell"""
        place = folder.resolve()
        if not any((each / ".git").exists() for each in (place, *place.parents)):
            return None
        found = cls(place, _git(place, "rev-parse", "--show-prefix").decode().rstrip("\n"))
        return found if _git(place, "ls-files", "--", ".").strip() else None

    def choose(self, version: str) -> tuple[str, str]:
        """The version, and the commit to take. :raises Invalid: which version it is, is not clear"""
        module = read_mod(_git(self.folder, "show", f"HEAD:./{GO_MOD}")).module
        above, _, last = self.prefix.rstrip("/").rpartition("/")
        is_major = bool(last) and f"/{last}" == major_suffix(module)
        place = (f"{above}/" if above else "") if is_major else self.prefix
        if not version:
            tags = _git(self.folder, "tag", "--points-at", "HEAD").decode("utf-8", "replace").split()
            versions = [each.removeprefix(place) for each in tags if each.startswith(place)]
            fitting = [each for each in versions if _VERSION.fullmatch(each) and fits_major(module, each)]
            if len(fitting) != 1:
                many = f"the tags of several: {', '.join(fitting)}" if fitting else f"no tag such as {place}v1.0.0"
                raise Invalid(f"what is checked out of {module} has {many}: name the version by --version")
            [version] = fitting
        tag = _git(self.folder, "tag", "--list", f"{place}{version}").strip()
        name = f"refs/tags/{place}{version}" if tag else "HEAD"
        return version, _git(self.folder, "rev-parse", "--verify", f"{name}^{{commit}}").decode().strip()

    def files(self, commit: str, place: Path, stack: ExitStack) -> list[_File]:
        """The files of a commit, as a repository has them without settings of its own; open as long as the stack."""
        bare, archive = place / "git", place / "tree.tar"
        kind = _git(self.folder, "rev-parse", "--show-object-format").decode().strip()
        objects = (
            _git(self.folder, "rev-parse", "--path-format=absolute", "--git-path", "objects").decode().rstrip("\n")
        )
        _git(place, "init", "--quiet", "--bare", f"--object-format={kind}", bare)
        for name, text in (("objects/info/alternates", f"{objects}\n"), ("info/attributes", _GIT_ATTRIBUTES)):
            (bare / name).parent.mkdir(exist_ok=True)
            (bare / name).write_text(text)
        below = [self.prefix] if self.prefix else []
        options = ("--git-dir", bare, "--literal-pathspecs", *_GIT_SETTINGS)
        _git(place, *options, "archive", "--format=tar", "--output", archive, commit, *below)
        tar = stack.enter_context(tarfile.open(archive))  # noqa: SIM115 - the stack closes it
        found = [
            _File(each.name.removeprefix(self.prefix), each.size, partial(_content, tar, each))
            for each in tar
            if each.isreg() and each.name.startswith(self.prefix)
        ]
        if self.prefix and all(each.name != LICENCE for each in found):
            licence = _git(self.folder, "ls-tree", "-z", "--full-tree", commit, "--", LICENCE)
            if licence:
                content = _git(self.folder, "cat-file", "blob", f"{commit}:{LICENCE}")
                found.append(_File(LICENCE, len(content), partial(io.BytesIO, content)))
        return found

    def notes(self, commit: str) -> tuple[str, ...]:
        """Sentences about what is in the folder and not in a commit."""
        if _git(self.folder, "status", "--porcelain", "--", ".").strip():
            return (f"what is not committed is left out: the zip has the files of commit {commit[:12]}",)
        return ()


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    found = tar.extractfile(member)
    assert found is not None, "it is a file"
    return found


def _git(folder: Path, *words: str | Path) -> bytes:
    """What git prints. :raises Invalid: it fails, with what it says"""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(["git", "-C", folder, *words], env=environ, capture_output=True, check=False)  # noqa: S603, S607
    except FileNotFoundError:
        raise Invalid("git is not installed, which knows the files of a version of a module in a checkout") from None
    if done.returncode:
        raise Invalid(f"git says: {' '.join(done.stderr.decode('utf-8', 'replace').split())[:500]}")
    return done.stdout
