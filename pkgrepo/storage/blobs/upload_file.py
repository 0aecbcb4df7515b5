"""
The file that an upload is written to, until it becomes a blob or is removed.

=========  =======================================  ==================================  ==========================
state      on the disk                              next states by                      after a crash
=========  =======================================  ==================================  ==========================
no file    nothing                                  ``append``, ``keep``, ``place``     nothing
unnamed    a file without a name                    ``keep``, ``place``, ``discard``    freed by the kernel
named      ``uploads/<id>/data``, or ``data-...``   ``place``, ``discard``, a sweep     remains until it is swept
placed     ``blobs/ab/<sha256>.<generation>``;      ``discard`` (the commit was         remains; collected, because
           with ``keeps_name`` named as well        aborted), ``unname``, otherwise     no row refers to it; what is
                                                    final                               named can be resumed
=========  =======================================  ==================================  ==========================

On a file system without unnamed files an upload is named from the start. Everything here blocks, and is called by one
thread at a time.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from pkgrepo.small_files import write_at
from pkgrepo.storage.blobs.durability import link_descriptor, reserve

from .durability import Durability
from .paths import BLOB_MODE, FIRST_FILE, StorePaths, file_turn, next_file

_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_OPEN_MODE = 0o600  # of a file that can be reopened
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


class UploadFile:
    """
    The bytes of one upload on the disk.

    ``file`` is its name in the upload's folder, when it has one. ``reserve`` is the disk space in bytes to reserve when
    the file is created. A disk error is kept and raised again by
    every later call except ``discard``, because the content of the file is then unknown. With ``keeps_name`` a file
    that was reopened keeps its name until ``unname``, so that it can be reopened again with the same size.
    """

    def __init__(
        self,
        paths: StorePaths,
        durability: Durability,
        upload_id: str,
        file: str = FIRST_FILE,
        *,
        unnamed: bool,
        reserve: int = 0,
    ) -> None:
        self.file = file
        self._paths = paths
        self.durability = durability
        self._upload_id = upload_id
        self._unnamed = unnamed
        self._reserve = reserve
        self._fd: int | None = None
        self._named = False
        self._name_durable = False
        self._copied = False
        self._placed: Path | None = None
        self._mode = _OPEN_MODE
        self._error: OSError | None = None
        self.keeps_name = False
        self.size = 0

    @cached_property
    def _folder(self) -> Path:
        """The folder of a named file; most are never named."""
        return self._paths.upload(self._upload_id)

    def reopen(self, size: int, copied: bool = False) -> None:
        """
        Open a named file, and cut it off after ``size`` bytes: further bytes were never acknowledged.

        With a ``size`` of 0 the file may be missing. ``copied`` leaves it as it is, and opens a copy with a new name: a
        process that has it open, or will open it still, never finds this one. It is removed at the end. A file that is
        the copy of a blob, too, is copied in any case: its process was killed before it could record the blob.

        :raises FileNotFoundError: the file is missing or shorter
        """
        path = self._path
        try:
            copied = copied or os.stat(path, follow_symlinks=False).st_nlink > 1
            fd = os.open(path, _READ_FLAGS if copied else _FLAGS)
        except FileNotFoundError:
            if size:
                raise
            fd = None
        if copied:
            self.file = next_file(self.file)
        if fd is None:
            return
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode) or found.st_size < size:
                raise FileNotFoundError(errno.ENOENT, "an unfinished upload lost bytes", str(self._folder))
            if copied:
                fd = self._copy(fd, size)
            os.ftruncate(fd, size)
            os.utime(fd)  # the sweep compares this time
        except BaseException:
            os.close(fd)
            raise
        self._fd, self.size = fd, size
        self._named, self._name_durable, self._copied = True, not copied, copied

    def append(self, data: bytes) -> None:
        """Write at the end."""
        fd = self._ready()
        try:
            write_at(fd, data, self.size)
        except OSError as error:
            self._error = error
            raise
        self.size += len(data)

    def check(self) -> None:
        """Check that no call has failed. :raises OSError: the first error"""
        if self._error is not None:
            raise self._error

    def read(self, start: int, count: int) -> bytes:
        """Return ``count`` bytes that were written before; fewer only at the end."""
        return os.pread(self._ready(), count, start)

    def duplicate(self) -> int:
        """Return a new descriptor of the file; the caller closes it."""
        return os.dup(self._ready())

    def name(self) -> None:
        """Give the file the upload's name, under which other processes find it; after a crash a sweep removes it."""
        fd = self._ready()
        if not self._named:
            with self._recording_error():
                if self._mode != _OPEN_MODE:
                    os.fchmod(fd, _OPEN_MODE)
                    self._mode = _OPEN_MODE
                self._make_folder()
                link_descriptor(fd, str(self._path))

    def keep(self) -> None:
        """Make the bytes durable under the upload's name and close the file."""
        fd = self._ready()
        try:
            self.durability.sync_data(fd)
            self.name()
            if not self._name_durable:
                self.durability.sync_own_directory(self._folder)
                self.durability.sync_directory(self._paths.uploads)
        except OSError as error:
            self._error = error
            raise
        self.release()

    def finalize(self, data: bytes | None, *, start_writeback: bool) -> None:
        """
        Set length, time and mode of the blob, whose bytes are ``data`` if there is no file yet.

        With ``start_writeback`` the disk starts to write them.
        """
        if data is not None:
            self.append(data)
        with self._recording_error():
            fd = self._ready()
            if data is None:
                if self._reserve > self.size:
                    os.ftruncate(fd, self.size)  # frees reserved space that was not used
                os.utime(fd)  # the time of commit, also for an upload that was suspended
            if self._mode != BLOB_MODE:
                os.fchmod(fd, BLOB_MODE)
                self._mode = BLOB_MODE
            if start_writeback:
                self.durability.start_writeback(fd)

    def sync(self) -> None:
        """Make the bytes durable."""
        with self._recording_error():
            self.durability.sync_data(self._ready())

    def link(self, locator: str) -> Path:
        """Give the file its name as a blob. Returns the directory to sync."""
        fd = self._ready()
        with self._recording_error():
            self._placed = target = self._paths.blob(locator)
            if self._named:
                self._check_latest()
                if self.keeps_name and not self._copied and _link(self._path, target):
                    return target.parent
                self._path.rename(target)
                self._named = False
                if not (self.keeps_name and self._copied):
                    self._remove_folder()
            else:
                link_descriptor(fd, str(target))
        return target.parent

    def discard(self) -> None:
        """Remove the file in any state; also twice. After an error the next sweep removes it."""
        self.release()
        if self._placed is not None:
            with suppress(OSError):
                self._placed.unlink()
            self._placed = None
        if not self.keeps_name:
            self.unname()
        elif self._copied and self._named:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            self._named = False

    def unname(self) -> None:
        """Remove all names of the upload; a blob that was placed stays. After an error the next sweep removes them."""
        if self._named:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
        if self._named or self._copied:
            self._remove_folder()
        self._named = False

    def release(self) -> None:
        """Close the file, and leave it on the disk if it is named; also twice."""
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(OSError):
                os.close(fd)

    @property
    def _path(self) -> Path:
        return self._folder / self.file

    def _copy(self, fd: int, size: int) -> int:
        """Copy the first ``size`` bytes to a file with this one's name, and close ``fd``. Returns its descriptor."""
        new = os.open(self._path, _FLAGS | os.O_CREAT | os.O_EXCL, _OPEN_MODE)
        try:
            copied = 0
            while copied < size:
                count = os.copy_file_range(fd, new, size - copied, copied, copied)
                if not count:
                    raise FileNotFoundError(errno.ENOENT, "an unfinished upload lost bytes", str(self._folder))
                copied += count
        except BaseException:
            os.close(new)
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            raise
        os.close(fd)
        return new

    def _check_latest(self) -> None:
        """:raises FileNotFoundError: another process has taken the upload over meanwhile"""
        if any(file_turn(name) > file_turn(self.file) for name in os.listdir(self._folder)):
            raise FileNotFoundError(errno.ENOENT, "an upload was taken over", str(self._folder))

    def _remove_folder(self) -> None:
        """Remove the folder, and the files that this one is a copy of; a later copy remains, and the folder with it."""
        with suppress(OSError):
            for name in os.listdir(self._folder):
                if file_turn(name) < file_turn(self.file):
                    (self._folder / name).unlink()
            self._folder.rmdir()

    @contextmanager
    def _recording_error(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._error = error
            raise

    def _ready(self) -> int:
        """Return the descriptor of the file, which is created if needed."""
        self.check()
        if self._fd is not None:
            return self._fd
        try:
            self._fd = self._make()
            if self._reserve:
                reserve(self._fd, self._reserve)
        except OSError as error:
            self._error = error
            raise
        return self._fd

    def _make(self) -> int:
        if self._unnamed:
            self._mode = BLOB_MODE if self._paths.exact_modes else _OPEN_MODE
            return os.open(self._paths.uploads, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, self._mode)
        self._make_folder()
        return os.open(self._path, _FLAGS | os.O_CREAT | os.O_EXCL, _OPEN_MODE)

    def _make_folder(self) -> None:
        # It exists if a crash happened before the file was linked.
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._named = True


def _link(path: Path, target: Path) -> bool:
    """Give a file a second name. False if the file system has no second names."""
    try:
        os.link(path, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return False
    return True
