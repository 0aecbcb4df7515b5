"""Local files that are sent or received."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from attrs import frozen

from pkgrepo.client.api import Client
from pkgrepo.client.http import Failed
from pkgrepo.client.locks import try_lock
from pkgrepo.client.terminal import make_progress, printable
from pkgrepo.client.transfers.local_names import WINDOWS
from pkgrepo.errors import Conflict, DigestMismatch, Invalid
from pkgrepo.small_files import fsync_path

# Windows has neither of the middle two, and would change the ends of lines without the last.
_OPEN: Final = os.O_RDWR | os.O_CREAT | sum(getattr(os, each, 0) for each in ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY"))
PIECE: Final = 256 * 1024  # bytes
STAGE: Final = "+stage-"  # in the name of the virtual repository that is the address of a stage
STAGED: Final = "+staged-"  # of the hosted one that has what is staged


async def stored_digest(client: Client, repository: str, path: str) -> str | None:
    """
    The sha256 of a stored file as hex, by its path below the repository.

    None if the server does not tell, as of a document that it makes, or of what a virtual repository has passed on. The
    address of a stage has what is staged on top of the repository.
    """
    base, at, stage = repository.partition(STAGE)
    places = (f"{base}{STAGED}{stage}", base) if at else (repository,)
    for place in places:
        found = await _digest_in(client, place, path)
        if found is not None:
            return found
    return None


async def _digest_in(client: Client, repository: str, path: str) -> str | None:
    try:
        found = await client.get("repository", repository, "tree", *path.split("/"))
    except Failed as error:
        if error.status not in (401, 403, 404):
            raise
        return None
    items = found["items"]
    if len(items) != 1 or items[0]["path"] != path or not items[0]["digest"]:
        return None
    return str(items[0]["digest"]).removeprefix("sha256:")


@frozen
class LocalFile:
    """A file that is uploaded: its size in bytes, and its digest as hex."""

    path: Path
    size: int
    sha256: str

    @classmethod
    def read(cls, path: Path) -> Self:
        """Hash a file. :raises Invalid: it is no regular file; :raises OSError: it cannot be read"""
        if not path.is_file():
            raise Invalid(f"{path} is no file")
        return cls(path, path.stat().st_size, sha256_of(path))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.name


class Draft:
    """
    A file that is being received: it has its name only when it is complete and verified, and is removed otherwise.

    With ``alone`` no other process may write it at the same time; the next one goes on in what a killed one has left.

    :raises Conflict: another file has the name, and ``replace`` is not set, or another process writes it
    :raises OSError: it cannot be written
    """

    def __init__(self, path: Path, *, replace: bool, alone: bool = False) -> None:
        self._path = path
        self._replace = replace
        self._draft = path.with_name(f".{path.name[:200]}.{'part' if alone else secrets.token_hex(8)}")
        self._sha256 = hashlib.sha256()
        self._renamed = False
        if not replace and os.path.lexists(path):
            if alone:
                _remove_second_name(self._draft, path)
            raise Conflict(f"{path} is there already; --force replaces it")
        self._file: IO[bytes] = _open_draft(self._draft, str(path)) if alone else self._draft.open("x+b")
        self._file.truncate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if WINDOWS:  # which neither removes nor renames a file that is open
            self._file.close()
        if not self._renamed:
            self._draft.unlink(missing_ok=True)
        self._file.close()

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self._sha256.update(data)
        self._file.write(data)

    @property
    def sha256(self) -> str:
        """The digest of what was written."""
        return self._sha256.hexdigest()

    @property
    def size(self) -> int:
        """How many bytes were written."""
        return self._file.tell()

    def read(self, start: int, count: int) -> bytes:
        """Return bytes that were written before; fewer only at the end."""
        end = self._file.tell()
        try:
            self._file.seek(start)
            return self._file.read(count)
        finally:
            self._file.seek(end)

    def keep(self, expected: str | None) -> None:
        """Give the file its name. :raises DigestMismatch: its sha256 is not the expected one (None: any)"""
        if expected is not None and expected != self.sha256:
            raise DigestMismatch("sha256", expected, self.sha256)
        self._file.flush()
        if self._replace:
            if WINDOWS:
                self._file.close()
            self._draft.replace(self._path)
            self._renamed = True
            self._file.close()  # after it has its name, for that ends the lock
            return
        try:
            self._path.hardlink_to(self._draft)  # unlike rename, this replaces nothing
        except FileExistsError:
            raise Conflict(f"{self._path} is there already; --force replaces it") from None

    def keep_durably(self, expected: str | None) -> None:
        """Like ``keep``, and a power cut leaves the old file or the new one. :raises DigestMismatch: as for ``keep``"""
        self._file.flush()
        os.fsync(self._file.fileno())
        self.keep(expected)
        fsync_path(self._path.parent)


class Received:
    """Passes pieces on, and shows how many bytes have come; ``size`` 0: it is not known how many will."""

    def __init__(self, label: str, size: int, write: Callable[[bytes], None]) -> None:
        self.count = 0
        self._write = write
        self._progress = make_progress()
        self._progress.begin(printable(label), size)

    def write(self, data: bytes) -> None:
        """Pass a piece on."""
        self._write(data)
        self.count += len(data)
        self._progress.step(len(data))

    def end(self) -> None:
        """End the display."""
        self._progress.end()


def open_alone(path: Path, what: str) -> IO[bytes]:
    """
    Open a file, made if it is not there, which one process at a time may have open; closing it ends that.

    :raises Conflict: another process has it open, to write ``what``; :raises OSError: it cannot be opened or locked
    """
    while True:
        file = os.fdopen(os.open(path, _OPEN, 0o666), "r+b")
        try:
            if not try_lock(file):
                raise Conflict(f"another process writes {what} now: try again when it has ended")
            if _has_name(file, path):
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # the other process has renamed or removed it meanwhile


def _open_draft(path: Path, what: str) -> IO[bytes]:
    """
    Open a draft that one process at a time writes, see L{open_alone}. It is no finished file.

    A process that was killed as it finished a file has left it with two names: its own, wherever it was moved since,
    and that of the draft.
    """
    while True:
        file = open_alone(path, what)
        if os.fstat(file.fileno()).st_nlink == 1:
            return file
        path.unlink()
        file.close()


def _remove_second_name(draft: Path, path: Path) -> None:
    """Remove the name of a draft from a file that was finished, unless the process that finishes it does so."""
    with suppress(OSError, Conflict):
        if draft.samefile(path):
            with open_alone(draft, str(path)) as file:
                if _has_name(file, path):
                    draft.unlink()


def _has_name(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def pieces(path: Path) -> Iterator[bytes]:
    """The bytes of a file. :raises OSError: it cannot be read"""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def sha256_of(path: Path) -> str:
    """The digest of a file as hex. :raises OSError: it cannot be read"""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def shown(label: str, size: int, content: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces; how many have been taken is shown on standard error."""
    progress = make_progress()
    progress.begin(printable(label), size)
    try:
        for piece in content:
            yield piece
            progress.step(len(piece))
    finally:
        progress.end()
