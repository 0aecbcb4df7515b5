"""
The folder of a twin: its files, and the list of them.

==========================  ===========================================================================================
``.twin/twin.json``         the digest of the list, and the statement about it that the server has signed, if any
``.twin/<digest>.list``     a line for each file, sorted by path: its sha256, its size in bytes, and its path
everything else             the files, as clients get them
==========================  ===========================================================================================

A file has its name only when it is whole and durable, and one whose bytes stay the same is not written. A round first
adds and replaces files, then writes the list, then ``twin.json``, and last removes what the list has no more: a round
that is killed leaves a twin that works, and the next one goes on. Every method blocks.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from pkgrepo.commands.remote.transfers.files import Draft, sha256_of
from pkgrepo.errors import Conflict, Invalid
from pkgrepo.storage.small_files import replace_file
from pkgrepo.untrusted.signed_lists import Listed, Manifest, find_problem, is_plain_path, iter_list, render_list

STATE: Final = ".twin"
MANIFEST: Final = "twin.json"
FORM: Final = "pkgrepo twin 1"


class TwinFolder:
    """The twin of a repository in the folder ``root``, which is new, empty, or has this twin."""

    def __init__(self, root: Path, repository: str) -> None:
        self._root = root
        self._repository = repository
        if root.exists() and not (root / STATE).is_dir() and any(root.iterdir()):
            raise Conflict(f"{root} holds other things already; a twin begins in a new folder")
        (root / STATE).mkdir(parents=True, exist_ok=True)
        manifest = read_manifest(root)
        if manifest is not None and manifest.repository != repository:
            raise Conflict(f"{root} is the twin of {manifest.repository}")
        self._known = dict(read_list(root, manifest)) if manifest is not None else {}
        self.written = 0

    def known(self, path: str, sha256: str) -> Listed | None:
        """The file at a path if it is there with this digest, by the last list and its size; else None."""
        found = self._known.get(path)
        if found is None or found.sha256 != sha256:
            return None
        try:
            return found if self._path(path).stat().st_size == found.size else None
        except OSError:
            return None

    def draft(self, path: str) -> Draft:
        """Begin to write a file. :raises Invalid: the path leads out of the folder; :raises OSError: or it is full"""
        target = self._path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        return Draft(target, replace=True)

    def keep(self, path: str, draft: Draft, expected: str | None = None) -> Listed:
        """End a file, unless it is there with the same bytes. :raises DigestMismatch: it has not the expected sha256"""
        target = self._path(path)
        if expected in (None, draft.sha256) and target.is_file() and sha256_of(target) == draft.sha256:
            return Listed(target.stat().st_size, draft.sha256)
        draft.keep_durably(expected)
        self.written += 1
        return Listed(target.stat().st_size, draft.sha256)

    def write(self, path: str, data: bytes) -> Listed:
        """Write a small file."""
        with self.draft(path) as draft:
            draft.write(data)
            return self.keep(path, draft)

    def finish(self, files: Mapping[str, Listed]) -> tuple[str, Path]:
        """Write the list of all files. Returns its digest and its path; ``publish`` makes it the list of the twin."""
        text = render_list(files)
        digest = hashlib.sha256(text).hexdigest()
        path = self._root / STATE / f"{digest}.list"
        if not path.exists() or path.read_bytes() != text:
            replace_file(path, text)
        return digest, path

    def publish(self, files: Mapping[str, Listed], digest: str, signed: Mapping[str, Any]) -> int:
        """Make a list that of the twin, and remove the files that it has not. Returns how many were removed."""
        manifest = Manifest(
            form=FORM,
            repository=self._repository,
            list_sha256=digest,
            files=len(files),
            statement=signed.get("statement", ""),
            signature=signed.get("signature", ""),
            key=signed.get("key", ""),
        )
        data = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
        replace_file(self._root / STATE / MANIFEST, data)
        for each in (self._root / STATE).glob("*.list"):
            if each.name != f"{digest}.list":
                each.unlink()
        removed = 0
        for path in [each for each in walk(self._root) if each not in files]:
            (self._root / path).unlink()
            removed += 1
            self._remove_empty((self._root / path).parent)
        self._known = dict(files)
        return removed

    def is_published(self, digest: str) -> bool:
        """Whether this list is that of the twin already, and signed."""
        manifest = read_manifest(self._root)
        return manifest is not None and manifest.list_sha256 == digest and bool(manifest.signature)

    def _remove_empty(self, folder: Path) -> None:
        while folder != self._root:
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent

    def _path(self, path: str) -> Path:
        parts = path.split("/")
        if not is_plain_path(path) or parts[0] == STATE:
            raise Invalid(f"{path!r} is no path of a file")  # the server's names are not trusted with the disk
        return self._root.joinpath(*parts)


def verify(root: Path, key: bytes | None) -> tuple[Manifest, list[str]]:
    """
    Compare every file with the list, and the list with its signature by ``key`` (PEM; None: the key that is there).

    Returns the manifest, and sentences about what is wrong.

    :raises Invalid: there is no twin, or its list is damaged, or the key is no Ed25519 key
    """
    manifest = read_manifest(root)
    if manifest is None:
        raise Invalid(f"{root} has no twin")
    problem = find_problem(manifest, key or manifest.key.encode())
    problems = [problem] if problem else []
    listed = dict(read_list(root, manifest))
    for path, each in listed.items():
        file = root / path
        if not file.is_file():
            problems.append(f"{path} is missing")
        elif file.stat().st_size != each.size or sha256_of(file) != each.sha256:
            problems.append(f"{path} has other bytes")
    problems += [f"{path} is not in the list" for path in walk(root) if path not in listed]
    return manifest, problems


def read_manifest(root: Path) -> Manifest | None:
    """The manifest of a twin, or None. :raises Invalid: it cannot be read"""
    try:
        found = msgspec.json.decode((root / STATE / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise Invalid(f"{root / STATE / MANIFEST} is damaged: {error}") from None
    if found.form != FORM:
        raise Invalid(f"the twin in {root} has the form {found.form!r}, and this version knows {FORM!r}")
    return found


def read_list(root: Path, manifest: Manifest) -> Iterator[tuple[str, Listed]]:
    """The files of a twin. :raises Invalid: the list is damaged"""
    path = root / STATE / f"{manifest.list_sha256}.list"
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise Invalid(f"the list of the twin, {path}, is missing") from None
    if hashlib.sha256(data).hexdigest() != manifest.list_sha256:
        raise Invalid(f"the list of the twin, {path}, is damaged")
    yield from iter_list(data)


def walk(root: Path) -> Iterator[str]:
    """The paths of all files but those about the twin, and unfinished ones."""
    for folder, folders, names in os.walk(root):
        if Path(folder) == root and STATE in folders:
            folders.remove(STATE)
        yield from ((Path(folder) / name).relative_to(root).as_posix() for name in names)
