"""
The files of the readable layout on the disk: stored files under the names that people know them by.

What they show is decided in ``pkgrepo.repositories.layout``; this module only links, writes, lists and removes files.
Each stored file is a hard link to its blob, or a copy if the file system refuses another link, so the layout costs
directory entries only. People may read it, copy from it and back it up. Files are read-only, because editing one would
change the blob. No request is answered from it.

A name of more than ``LONGEST`` bytes, the limit of file systems, is shortened to 255 bytes: its first bytes, ``~``, the
first 16 hex digits of the sha256 of the whole name, and its extension (``.json``, ``.tgz``). The whole names are in the
JSON documents beside the files. No format has a ``~`` in a version or in the name of a file.
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
from pkgrepo.small_files import fsync_path, write_at
from pkgrepo.storage.blobs.durability import sync_file_system
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore

LONGEST = 255  # bytes
ENDING = 16  # bytes; a longer extension of a shortened name is not kept
TEMPORARY = ".tmp"  # folder for temporary files below the root; no repository can have this name
PIECE = 256 * 1024  # bytes of documents that are compared at a time

_NOTHING = (FileNotFoundError, NotADirectoryError)  # nothing is at a path; a file may be where its directory would be
_NO_LINK = (errno.EMLINK, errno.EPERM, errno.EXDEV)  # the file system refuses another link
_OTHERWISE = (errno.EEXIST, *_NO_LINK)


def shorten(path: str) -> str:
    """Return the path with names that are too long for a file system shortened; see above."""
    if len(path) * 4 <= LONGEST or all(len(name.encode()) <= LONGEST for name in path.split("/")):
        return path
    return "/".join(_shortened(name) for name in path.split("/"))


class Draft:
    """
    A temporary file, written piece by piece, for L{LayoutFolder.put}.

    ``path`` is absolute; ``size`` is the number of bytes so far. Every method blocks.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0
        self._file = open(path, "wb")  # noqa: SIM115 - closed by close or discard

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self.size += self._file.write(data)

    def close(self) -> None:
        """Flush and close the file."""
        self._file.close()

    def discard(self) -> None:
        """Close the file, and remove it unless ``put`` has renamed it."""
        with suppress(OSError):  # flushing the buffer fails on a full disk
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
        """Whether ``path`` is a link to the blob at ``locator``, or an unlinked file of the same size (a copy)."""
        try:
            # First the one that may be missing.
            target, source = os.stat(self._path(path)), os.stat(f"{self._blobs}/{locator}")
        except _NOTHING:
            return False
        return os.path.samestat(source, target) or (target.st_nlink == 1 and target.st_size == source.st_size)

    def link(self, locator: str, path: str) -> None:
        """
        Link or copy the blob at ``locator`` to ``path``, in place of a file there.

        :raises FileNotFoundError: there is no such blob
        """
        source = f"{self._blobs}/{locator}"
        target = self._path(path)
        try:
            self._link_new(source, target)
        except OSError as error:
            if error.errno not in _OTHERWISE:
                raise
            self._link_over(source, target)

    def write(self, path: str, data: bytes) -> None:
        """Write a document to ``path`` atomically."""
        target = self._path(path)
        with self._temporary_for(target) as temporary:
            self._into(_write, data, temporary)

    def sync(self, path: str) -> None:
        """Make a document and its name durable (fsync)."""
        for each in (self.file(path), self.file(path).parent):
            fsync_path(each)

    def sync_folder(self, path: str) -> None:
        """Make the names in a folder durable, or that it is gone itself. :raises OSError: they may come back"""
        folder = self.file(path)
        while not folder.is_dir():
            folder = folder.parent
        fsync_path(folder)

    def sync_all(self) -> None:
        """Make all of the layout durable. :raises OSError: some of it may be lost"""
        try:
            descriptor = os.open(self.root, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            sync_file_system(descriptor)
        finally:
            os.close(descriptor)

    def draft(self) -> Draft:
        """Create a temporary file for a document that is too large for memory."""
        path = self._temporary()
        self._make_folder(os.path.dirname(path))
        return Draft(path)

    def differs(self, draft: str, path: str) -> bool:
        """Whether the bytes of a closed draft differ from those at ``path``, or nothing is at ``path``."""
        try:
            with open(draft, "rb") as new, open(self._path(path), "rb") as old:
                while piece := new.read(PIECE):
                    if old.read(PIECE) != piece:
                        return True
                return bool(old.read(1))
        except _NOTHING:
            return True

    def put(self, draft: str, path: str) -> None:
        """Rename a closed draft to ``path``."""
        self._into(os.replace, draft, self._path(path))

    def read(self, path: str) -> bytes | None:
        """Return the content of the document at ``path``, or None."""
        try:
            with open(self._path(path), "rb") as file:
                return file.read()
        except _NOTHING:
            return None

    def is_file(self, path: str) -> bool:
        """Whether a file is at ``path``, and no directory."""
        return os.path.isfile(self._path(path))

    def file(self, path: str) -> Path:
        """Return the absolute path."""
        return Path(self._path(path))

    def files(self, directory: str) -> list[str]:
        """Return the names of the files in a directory, sorted; none if it does not exist."""
        return sorted(self.names(directory))

    def names(self, directory: str) -> Iterator[str]:
        """Iterate over the names of the files in a directory, unsorted; files added meanwhile may be left out."""
        try:
            entries = os.scandir(self._path(directory))
        except _NOTHING:
            return
        with entries:
            for entry in entries:
                if entry.is_file():
                    yield entry.name

    def walk(self, directory: str = "", failed: Callable[[str, OSError], None] | None = None) -> Iterator[str]:
        """
        Iterate over the paths of all files below a directory, or of the whole layout, sorted by directory.

        ``failed`` is called with each directory that cannot be listed; the walk then continues.

        :raises OSError: a directory cannot be listed, and ``failed`` is None
        """

        def report(error: OSError) -> None:
            if isinstance(error, FileNotFoundError):
                return  # it was removed meanwhile
            if failed is None:
                raise error
            failed(Path(error.filename).relative_to(self.root).as_posix(), error)

        start = self._path(directory) if directory else self.root
        for folder, directories, names in os.walk(start, onerror=report):
            directories[:] = sorted(name for name in directories if name != TEMPORARY)
            for name in [] if folder == str(self.root) else sorted(names):
                yield Path(folder, name).relative_to(self.root).as_posix()

    def remove(self, path: str) -> None:
        """Remove a file, if it exists, and the directories that become empty."""
        target = self.file(path)
        target.unlink(missing_ok=True)
        with suppress(OSError):
            for parent in target.parents:
                if parent == self.root:
                    break
                parent.rmdir()

    def folders(self) -> list[str]:
        """Return the names of the directories in the root, sorted: one for each repository."""
        try:
            entries = list(os.scandir(self.root))
        except FileNotFoundError:
            return []
        return sorted(e.name for e in entries if e.name != TEMPORARY and e.is_dir(follow_symlinks=False))

    def discard(self, folder: str) -> None:
        """
        Remove a directory with its content, if it exists: first it is renamed to a temporary name, then deleted.

        After a crash ``sweep`` removes the rest.

        :raises OSError: it cannot be renamed
        """
        source = self._path(folder)
        if not os.path.lexists(source):
            return
        aside = self._temporary()
        self._into(os.rename, source, aside)
        _remove_all(Path(aside))

    def shows(self, locator: str) -> bool:
        """Whether the blob at ``locator`` has a link in the layout."""
        try:
            return (self._blobs / locator).stat().st_nlink > 1
        except FileNotFoundError:
            return False

    def sweep(self, before: float) -> int:
        """Remove temporary files that are older than ``before``, in seconds since the epoch. Returns their number."""
        removed = 0
        try:
            entries = list(os.scandir(self.root / TEMPORARY))
        except FileNotFoundError:
            return 0
        for entry in entries:
            with suppress(OSError):
                # A link shares the inode's mtime with its blob; only ctime shows when the link was made.
                if entry.stat(follow_symlinks=False).st_ctime < before:
                    removed += _remove_all(Path(entry.path))
        return removed

    def _path(self, path: str) -> str:
        # Not a Path: constructing one takes longer than the system call.
        if "\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/")):
            raise Invalid(f"{path!r} is no path of a readable layout")
        return f"{self.root}/{path}"

    def _temporary(self) -> str:
        return f"{self.root}/{TEMPORARY}/{os.urandom(8).hex()}"

    def _link_new(self, source: str, target: str) -> None:
        """Link a blob to a name that most often is new: one system call where its directory exists."""
        try:
            os.link(source, target)
        except FileNotFoundError:
            if not os.path.lexists(source):
                raise
            self._make_folder(os.path.dirname(target))
            os.link(source, target)

    def _link_over(self, source: str, target: str) -> None:
        """Link or copy a blob to a name in place of a file there."""
        with self._temporary_for(target) as temporary:
            try:
                self._into(os.link, source, temporary)
            except OSError as error:
                if error.errno not in _NO_LINK:
                    raise
                self._into(shutil.copyfile, source, temporary)
                os.chmod(temporary, 0o444)
                fsync_path(Path(temporary))  # ``is_linked`` compares no more than the size of a copy
        # POSIX: renaming one link of a file onto another link of it does nothing and leaves both.
        with suppress(OSError):
            os.unlink(temporary)

    @contextmanager
    def _temporary_for(self, target: str) -> Iterator[str]:
        """Yield a temporary name, which is renamed to ``target`` after the block and removed if anything fails."""
        temporary = self._temporary()
        try:
            yield temporary
            self._into(os.replace, temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def _into(self, act: Callable[[Any, Any], None], source: str | bytes, target: str | Path) -> None:
        """Call ``act(source, target)``; if the directory of ``target`` is missing, create it and call again."""
        try:
            act(source, target)
        except FileNotFoundError:
            folder = os.path.dirname(target)
            if os.path.isdir(folder):
                raise
            self._make_folder(folder)
            act(source, target)

    def _make_folder(self, folder: str | Path) -> None:
        """Create a folder of the layout, unless the storage is missing: its disk may not be mounted."""
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
    # Not open(): it makes three system calls more, and each of them gives up the interpreter.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    try:
        write_at(descriptor, data, 0)
    finally:
        os.close(descriptor)


def _remove_all(path: Path) -> bool:
    """Remove a file, or a directory with its content. Returns whether that succeeded."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        return True
    return False
