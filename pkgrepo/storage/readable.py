"""
The readable layout: stored files under the names that people know them by.

It is derived from the catalog and never read to answer a request. Every file is a hard link to its blob, or a copy
where the file system refuses another link, so it costs directory entries only. A person may read it, copy from it
and back it up; editing a file in place would change the blob, which is why files are read-only.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pkgrepo.errors import Invalid

TEMPORARY = ".tmp"  # below the root; no repository is called so


class ReadableLayout:
    """The files below ``root``; every method blocks, so call it in a thread."""

    def __init__(self, root: Path, blobs: Path) -> None:
        self.root = root
        self._blobs = blobs

    def is_linked(self, locator: str, path: str) -> bool:
        """Whether ``path`` is the blob at ``locator``, or a copy of its size where links were refused."""
        try:
            source, target = (self._blobs / locator).stat(), self._path(path).stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(source, target) or (target.st_nlink == 1 and target.st_size == source.st_size)

    def link(self, locator: str, path: str) -> None:
        """
        Put the blob at ``locator`` under ``path``.

        :raises FileNotFoundError: there is no such blob
        """
        source = self._blobs / locator
        target = self._path(path)
        temporary = self._temporary(target)
        try:
            os.link(source, temporary)
        except OSError as error:
            if error.errno not in (errno.EMLINK, errno.EPERM, errno.EXDEV):
                raise
            shutil.copyfile(source, temporary)
            temporary.chmod(0o444)
        temporary.replace(target)

    def write(self, path: str, data: bytes) -> None:
        """Put a document under ``path``, whole or not at all."""
        target = self._path(path)
        temporary = self._temporary(target)
        temporary.write_bytes(data)
        temporary.replace(target)

    def read(self, path: str) -> bytes | None:
        """The document under ``path``, or None."""
        try:
            return self._path(path).read_bytes()
        except FileNotFoundError:
            return None

    def file(self, path: str) -> Path:
        """Where ``path`` is on the disk."""
        return self._path(path)

    def files(self, directory: str) -> list[str]:
        """The names of the files directly in a directory; none when it does not exist."""
        try:
            entries = list(os.scandir(self._path(directory)))
        except FileNotFoundError:
            return []
        return sorted(e.name for e in entries if e.is_file())

    def walk(self, directory: str = "") -> Iterator[str]:
        """Every file, or those below a directory, as a path below the root with ``/`` between its parts."""
        start = self._path(directory) if directory else self.root
        for folder, directories, names in os.walk(start):
            directories[:] = sorted(name for name in directories if name != TEMPORARY)
            for name in sorted(names):
                yield Path(folder, name).relative_to(self.root).as_posix()

    def remove(self, path: str) -> None:
        """Remove a file, and the directories that it leaves empty."""
        target = self._path(path)
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
        aside = self._temporary(source)
        source.rename(aside)
        _remove_all(aside)

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

    def _path(self, path: str) -> Path:
        parts = path.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise Invalid(f"{path!r} is no path of a readable layout")
        return self.root.joinpath(*parts)

    def _temporary(self, target: Path) -> Path:
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = self.root / TEMPORARY
        folder.mkdir(exist_ok=True)
        return folder / os.urandom(8).hex()


def _remove_all(path: Path) -> bool:
    """Remove a file, or a directory with everything in it; whether nothing is left."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        return True
    return False
