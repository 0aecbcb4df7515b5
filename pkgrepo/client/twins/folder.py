"""
The twin in a folder.

A file has its name only when it is whole and durable, and one whose bytes stay the same is not written. Every method
blocks: this is for commands, which do nothing else meanwhile.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pkgrepo.client.transfers.files import Draft, open_alone, sha256_of
from pkgrepo.client.transfers.local_names import check_name
from pkgrepo.errors import Conflict, Invalid
from pkgrepo.small_files import replace_file
from pkgrepo.untrusted.signed_lists import Listed, Manifest, render_list

from .lists import (
    MANIFEST,
    OCTETS,
    STATE,
    check_path,
    list_path,
    read_list,
    read_manifest,
    render_manifest,
    signature_problems,
)

LOCK: Final = "lock"  # file beside the list, which the process that writes the twin has locked


class FolderTwin:
    """
    The twin of a repository in the folder ``root``, which is new, empty, or has this twin; see L{Twin}.

    With ``renew`` what is there is read and compared, instead of its sizes alone. Until it is closed no other process
    writes it.

    :raises Conflict: it has other things, or another process writes it; :raises Invalid: its list is damaged
    :raises OSError: it cannot be used
    """

    has_addresses = False

    def __init__(self, root: Path, repository: str, *, renew: bool = False) -> None:
        self._root = root
        self._repository = repository
        if root.exists() and not (root / STATE).is_dir() and any(root.iterdir()):
            raise Conflict(f"{root} holds other things already; a twin begins in a new folder")
        for each in root.absolute().parents:
            if (each / MANIFEST).exists():
                raise Conflict(f"{root} is in the twin in {each}, which would remove what its own list has not")
        (root / STATE).mkdir(parents=True, exist_ok=True)
        self._lock = open_alone(root / STATE / LOCK, f"the twin in {root}")
        try:
            manifest = _manifest(root)
            if manifest is not None and manifest.repository != repository:
                raise Conflict(f"{root} is the twin of {manifest.repository}")
            self._known = {} if manifest is None or renew else dict(_list(root, manifest))
        except BaseException:
            self._lock.close()
            raise
        self.written = 0

    def known(self, path: str, sha256: str) -> Listed | None:
        """The file at a path if it is there with this digest; else None."""
        found = self._known.get(path)
        if found is None or found.sha256 != sha256:
            return None
        try:
            return found if self._path(path).stat().st_size == found.size else None
        except OSError:
            return None

    def draft(self, path: str) -> Draft:
        """Begin to write a file in a temporary one."""
        target = self._path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        return Draft(target, replace=True)

    async def keep(self, path: str, draft: Draft, expected: str | None = None, content_type: str = OCTETS) -> Listed:  # noqa: ARG002
        """End a file, unless the twin has the same bytes. Returns size and digest."""
        target = self._path(path)
        if expected in (None, draft.sha256) and target.is_file() and sha256_of(target) == draft.sha256:
            return Listed(target.stat().st_size, draft.sha256)
        draft.keep_durably(expected)
        self.written += 1
        return Listed(target.stat().st_size, draft.sha256)

    async def finish(self, files: Mapping[str, Listed]) -> str:
        """Write the list of all files. Returns its digest."""
        text = render_list(files)
        digest = hashlib.sha256(text).hexdigest()
        path = self._root / list_path(digest)
        if not path.exists() or path.read_bytes() != text:
            replace_file(path, text)
        return digest

    async def publish(self, files: Mapping[str, Listed], digest: str, signed: Mapping[str, Any]) -> int:
        """Make a list that of the twin; returns how many files were removed."""
        replace_file(self._root / MANIFEST, render_manifest(self._repository, digest, len(files), signed))
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

    async def is_published(self, digest: str) -> bool:
        """Whether this list is that of the twin already, and signed."""
        manifest = _manifest(self._root)
        return manifest is not None and manifest.list_sha256 == digest and bool(manifest.signature)

    async def close(self) -> None:
        """Release what the twin holds here."""
        self._lock.close()

    def _remove_empty(self, folder: Path) -> None:
        while folder != self._root:
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent

    def _path(self, path: str) -> Path:
        return self._root.joinpath(*map(check_name, check_path(path)))


def verify(root: Path, key: bytes | None) -> tuple[Manifest, list[str]]:
    """
    Compare every file with the list, and the list with its signature by ``key`` (PEM; None: the key that is there).

    Returns the manifest, and sentences about what is wrong.

    :raises Invalid: there is no twin, or its list is damaged, or the key is no Ed25519 key
    """
    manifest = _manifest(root)
    if manifest is None:
        raise Invalid(f"{root} has no twin")
    problems = signature_problems(manifest, key)
    listed = dict(_list(root, manifest))
    for path, each in listed.items():
        file = root / path
        if not file.is_file():
            problems.append(f"{path} is missing")
        elif file.stat().st_size != each.size or sha256_of(file) != each.sha256:
            problems.append(f"{path} has other bytes")
    problems += [f"{path} is not in the list" for path in walk(root) if path not in listed]
    return manifest, problems


def walk(root: Path) -> Iterator[str]:
    """The paths of all files but those about the twin, and unfinished ones."""
    for folder, folders, names in os.walk(root):
        if Path(folder) == root and STATE in folders:
            folders.remove(STATE)
        yield from ((Path(folder) / name).relative_to(root).as_posix() for name in names)


def _manifest(root: Path) -> Manifest | None:
    return read_manifest(_read(root / MANIFEST), str(root))


def _list(root: Path, manifest: Manifest) -> Iterator[tuple[str, Listed]]:
    return read_list(_read(root / list_path(manifest.list_sha256)), manifest, str(root))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
