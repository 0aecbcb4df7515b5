"""
The readable layout: stored files under the names that people know them by.

It is derived from the catalog and never read to answer a request. Every file is a hard link to its blob, or a copy
where the file system refuses another link, so it costs directory entries only. A person may read it, copy from it
and back it up; editing a file in place would change the blob, which is why files are read-only.

A name in a path that is longer than ``LONGEST`` bytes, the most that file systems take, is shortened: its first bytes,
``~``, the first 16 hex digits of the sha256 of the whole name, and its ending (``.json``, ``.tgz``) make 255 bytes. The
whole names are in the JSON documents beside. No format has a ``~`` in a version or in the name of a file.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import IBlobStore
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore

LONGEST = 255  # bytes
ENDING = 16  # bytes at most of what is kept as the ending of a shortened name, its dot included
TEMPORARY = ".tmp"  # below the root; no repository is called so
PIECE = 256 * 1024  # bytes of documents that are compared at a time


def shorten(path: str) -> str:
    """A path in which no name is too long for a file system: see above."""
    if len(path) * 4 <= LONGEST or all(len(name.encode()) <= LONGEST for name in path.split("/")):
        return path
    return "/".join(_shortened(name) for name in path.split("/"))


class Draft:
    """
    A document that is written piece by piece, for L{LayoutFolder.put} to show; ``path`` is where it is till then.

    Every method blocks. ``size`` counts its bytes.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0
        self._file = open(path, "wb")  # noqa: SIM115 - until it is closed or discarded

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self.size += self._file.write(data)

    def close(self) -> None:
        """Have all of it in the file."""
        self._file.close()

    def discard(self) -> None:
        """Forget it, unless it was put in its place."""
        with suppress(OSError):  # what is in the buffer may find no room
            self._file.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)


class LayoutFolder:
    """
    The readable layout of the storage in the folder ``storage``: all files below ``root``.

    Every method blocks, so call it in a thread. Paths are relative to ``root``, with ``/`` between their parts.
    """

    def __init__(self, storage: Path) -> None:
        self.root = storage / "repositories"
        self._blobs = storage / "blobs"

    def is_linked(self, locator: str, path: str) -> bool:
        """Whether ``path`` is the blob at ``locator``, or a copy of its size where links were refused."""
        try:
            # The one that may be missing first.
            target, source = os.stat(self._path(path)), os.stat(f"{self._blobs}/{locator}")
        except FileNotFoundError:
            return False
        return os.path.samestat(source, target) or (target.st_nlink == 1 and target.st_size == source.st_size)

    def link(self, locator: str, path: str) -> None:
        """
        Put the blob at ``locator`` under ``path``.

        :raises FileNotFoundError: there is no such blob
        """
        source = f"{self._blobs}/{locator}"
        target = self._path(path)
        with self._temporary_for(target) as temporary:
            try:
                self._into(os.link, source, temporary)
            except OSError as error:
                if error.errno not in (errno.EMLINK, errno.EPERM, errno.EXDEV):
                    raise
                self._into(shutil.copyfile, source, temporary)
                os.chmod(temporary, 0o444)

    def write(self, path: str, data: bytes) -> None:
        """Put a document under ``path``, whole or not at all."""
        target = self._path(path)
        with self._temporary_for(target) as temporary:
            self._into(_write, data, temporary)

    def sync(self, path: str) -> None:
        """Wait until a document is durable, with its name."""
        for each in (self.file(path), self.file(path).parent):
            descriptor = os.open(each, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def draft(self) -> Draft:
        """Begin a document that is too big to be in memory at once."""
        path = self._temporary()
        self._make_folder(os.path.dirname(path))
        return Draft(path)

    def differs(self, draft: str, path: str) -> bool:
        """Whether a closed draft has other bytes than what is under ``path``, if anything is."""
        try:
            with open(draft, "rb") as new, open(self._path(path), "rb") as old:
                while piece := new.read(PIECE):
                    if old.read(PIECE) != piece:
                        return True
                return bool(old.read(1))
        except FileNotFoundError:
            return True

    def put(self, draft: str, path: str) -> None:
        """Put a closed draft under ``path``, whole or not at all."""
        self._into(os.replace, draft, self._path(path))

    def read(self, path: str) -> bytes | None:
        """The document under ``path``, or None."""
        try:
            with open(self._path(path), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def file(self, path: str) -> Path:
        """Where ``path`` is on the disk."""
        return Path(self._path(path))

    def files(self, directory: str) -> list[str]:
        """The names of the files directly in a directory; none when it does not exist."""
        return sorted(self.names(directory))

    def names(self, directory: str) -> Iterator[str]:
        """The same one after the other and in no order; what comes or goes meanwhile may be among them or not."""
        try:
            entries = os.scandir(self._path(directory))
        except FileNotFoundError:
            return
        with entries:
            for entry in entries:
                if entry.is_file():
                    yield entry.name

    def walk(self, directory: str = "", failed: Callable[[str, OSError], None] | None = None) -> Iterator[str]:
        """
        Every file in a folder, or below a directory, as a path below the root with ``/`` between its parts.

        ``failed`` is called with each directory that cannot be listed, and the rest follows.

        :raises OSError: a directory cannot be listed, and there is no ``failed``
        """

        def report(error: OSError) -> None:
            if isinstance(error, FileNotFoundError):
                return  # it went meanwhile
            if failed is None:
                raise error
            failed(Path(error.filename).relative_to(self.root).as_posix(), error)

        start = self._path(directory) if directory else self.root
        for folder, directories, names in os.walk(start, onerror=report):
            directories[:] = sorted(name for name in directories if name != TEMPORARY)
            for name in [] if folder == str(self.root) else sorted(names):
                yield Path(folder, name).relative_to(self.root).as_posix()

    def remove(self, path: str) -> None:
        """Remove a file, and the directories that it leaves empty."""
        target = self.file(path)
        target.unlink(missing_ok=True)
        with suppress(OSError):
            for parent in target.parents:
                if parent == self.root:
                    break
                parent.rmdir()

    def folders(self) -> list[str]:
        """The names of the directories right below the root."""
        try:
            entries = list(os.scandir(self.root))
        except FileNotFoundError:
            return []
        return sorted(e.name for e in entries if e.name != TEMPORARY and e.is_dir(follow_symlinks=False))

    def discard(self, folder: str) -> None:
        """
        Take away a directory with all that is in it, if it is there: out of sight at once, then from the disk.

        What a crash leaves of it is swept with the temporaries.

        :raises OSError: it is as it was
        """
        source = self._path(folder)
        if not os.path.lexists(source):
            return
        aside = self._temporary()
        self._into(os.rename, source, aside)
        _remove_all(Path(aside))

    def shows(self, locator: str) -> bool:
        """Whether the blob at ``locator`` is linked from anywhere in the layout."""
        try:
            return (self._blobs / locator).stat().st_nlink > 1
        except FileNotFoundError:
            return False

    def sweep(self, before: float) -> int:
        """Remove temporaries that were made before a time, in seconds since the epoch; how many that were."""
        removed = 0
        try:
            entries = list(os.scandir(self.root / TEMPORARY))
        except FileNotFoundError:
            return 0
        for entry in entries:
            with suppress(OSError):
                # Of a link only the time of the last change of its inode is its own.
                if entry.stat(follow_symlinks=False).st_ctime < before:
                    removed += _remove_all(Path(entry.path))
        return removed

    def _path(self, path: str) -> str:
        # Not a Path: making one takes longer than to ask the disk about it.
        if "\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/")):
            raise Invalid(f"{path!r} is no path of a readable layout")
        return f"{self.root}/{path}"

    def _temporary(self) -> str:
        return f"{self.root}/{TEMPORARY}/{os.urandom(8).hex()}"

    @contextmanager
    def _temporary_for(self, target: str) -> Iterator[str]:
        """Somewhere to make what is put at ``target`` after the block; no temporary stays, even if that fails."""
        temporary = self._temporary()
        try:
            yield temporary
            self._into(os.replace, temporary, target)
        finally:
            # POSIX: a rename of one link of a file onto another does nothing, and leaves both.
            with suppress(OSError):
                os.unlink(temporary)

    def _into(self, act: Callable[[Any, Any], None], source: str | bytes, target: str | Path) -> None:
        """Make something at ``target``, and the directories above it only when they turn out to be missing."""
        try:
            act(source, target)
        except FileNotFoundError:
            folder = os.path.dirname(target)
            if os.path.isdir(folder):
                raise
            self._make_folder(folder)
            act(source, target)

    def _make_folder(self, folder: str | Path) -> None:
        """Make a folder of the layout, unless the whole storage is missing: its disk may not be mounted."""
        self._blobs.stat()
        os.makedirs(folder, exist_ok=True)


def layout_folder_of(store: IBlobStore) -> LayoutFolder | None:
    """Return the readable layout beside a store's blobs, or None where the blobs are no files."""
    return LayoutFolder(store.paths.root) if isinstance(store, FilesystemBlobStore) else None


def _shortened(name: str) -> str:
    whole = name.encode()
    if len(whole) <= LONGEST:
        return name
    ending = os.path.splitext(whole)[1]
    mark = b"~" + hashlib.sha256(whole).hexdigest()[:16].encode() + (ending if len(ending) <= ENDING else b"")
    return whole[: LONGEST - len(mark)].decode(errors="ignore") + mark.decode()


def _write(data: bytes, path: str) -> None:
    with open(path, "wb") as file:
        file.write(data)


def _remove_all(path: Path) -> bool:
    """Remove a file, or a directory with everything in it; whether nothing is left."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        return True
    return False
