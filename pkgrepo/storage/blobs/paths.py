"""
The folders and file names of a filesystem store, the grammar of names that may become paths, and lists of the files.

==================================  ====================================================================
``format``                          version of this layout and the storage's id, one line each
``blobs/ab/<sha256>.<generation>``  a committed copy, mode 0444, never written again
``uploads/<id>/data``               a named upload: suspended, or on a file system without unnamed files
==================================  ====================================================================

A locator is ``ab/<sha256>.<generation>``. The generation is random, so no two commits share a locator, even of
the same bytes. Upload ids and locators also come from requests; only those that match the grammar are used in paths.
Lists and clean-up block: call them on the disk threads.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from uuid import uuid4

from pkgrepo.errors import Conflict
from pkgrepo.storage.blobs.durability import Durability, forget_pages, link_descriptor

VERSION = 1
BLOB_MODE = 0o444
FAN_OUT = tuple(f"{n:02x}" for n in range(256))

_DRAWN = 128  # generations or halves of ids, which are drawn at once: each call of the kernel gives up the GIL
_LOCATOR = re.compile(r"([0-9a-f]{2})/\1[0-9a-f]{62}\.[0-9a-f]{16}")
FIRST_FILE = "data"
_FILE = re.compile(r"data(?:-([1-9][0-9]{0,8})-[0-9a-f]{16})?")
_UPLOAD_ID = re.compile(r"[0-9a-f]{32}")
# Names allowed in a folder without ``format``: made by processes that start at the same time, or by the file system.
_OWN = re.compile(r"blobs|uploads|repositories|format(\.[0-9a-f]{16})?|lost\+found|\..*")
_FORMAT = re.compile(r"pkgrepo blobs ([0-9]+)\nstorage ([^\n]+)\n")


def new_locator(sha256: str) -> str:
    """Return a new locator for the bytes with this digest."""
    return f"{sha256[:2]}/{sha256}.{_random_digits()}"


def is_locator(text: str) -> bool:
    """Whether the text is a well-formed locator."""
    return _LOCATOR.fullmatch(text) is not None


def new_upload_id() -> str:
    """Return a new upload id, which cannot be guessed."""
    return _random_digits() + _random_digits()


def _random_digits() -> str:
    """Sixteen random hexadecimal digits, which nobody can guess; several threads may ask."""
    while True:
        with suppress(IndexError):
            return _drawn.pop()
        digits = secrets.token_hex(8 * _DRAWN)
        _drawn.extend(digits[at : at + 16] for at in range(0, len(digits), 16))


_drawn: deque[str] = deque()
os.register_at_fork(after_in_child=_drawn.clear)  # two processes must not have the same


def is_upload_id(text: str) -> bool:
    """Whether the text is a well-formed upload id."""
    return _UPLOAD_ID.fullmatch(text) is not None


def is_upload_file(name: str) -> bool:
    """Whether the text is a well-formed name of an upload's file."""
    return _FILE.fullmatch(name) is not None


def file_turn(name: str) -> int:
    """How often an upload was taken over until this file was made; 0 for a file of another name."""
    found = _FILE.fullmatch(name)
    return 0 if found is None else int(found[1] or 0)


def next_file(name: str) -> str:
    """Return a new name for the copy of an upload's file."""
    return f"{FIRST_FILE}-{file_turn(name) + 1}-{secrets.token_hex(8)}"


def find_storage_id(root: Path) -> str | None:
    """Return the id of the storage in the folder ``root``, or None if there is none. Blocks."""
    try:
        match = _FORMAT.fullmatch(StorePaths(root).format.read_text("utf-8", "replace"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return None if match is None else match[2]


def format_text(storage_id: str) -> str:
    """Return the content of ``format``."""
    return f"pkgrepo blobs {VERSION}\nstorage {storage_id}\n"


def read_format(text: str, where: str) -> str:
    """Return the storage's id in ``format``, which is at ``where``. :raises Conflict: it is of another version"""
    match = _FORMAT.fullmatch(text)
    if match is None or int(match[1]) != VERSION:
        raise Conflict(f"{where} is not of version {VERSION}, the only one that this release reads")
    return match[2]


class StorePaths:
    """The paths of one store under its root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.blobs = root / "blobs"
        self.uploads = root / "uploads"
        self.format = root / "format"
        self.exact_modes = False  # whether an unnamed file gets the mode that it is created with

    def blob(self, locator: str) -> Path:
        """Return the path of a blob; ``is_locator`` must have accepted the locator."""
        return self.blobs / locator

    def upload(self, upload_id: str) -> Path:
        """Return the directory of an upload; ``is_upload_id`` must have accepted the id."""
        return self.uploads / upload_id

    def prepare(self, durability: Durability, uid: str | None, *, create: bool = True) -> str:
        """
        Create or check the folders. Returns the storage's id. Blocks; several processes may do this at the same time.

        Without ``create`` a root that holds no storage is not changed: its disk may not be mounted.

        :raises Conflict: the root holds other things, belongs to another storage or a newer version, or its folders
            are on two devices
        :raises OSError: the root cannot be used, or is missing and may not be created
        """
        if create:
            self.root.mkdir(parents=True, exist_ok=True)
            found = self._identify(durability, uid)
        else:
            found = self._check(self.format.read_text("utf-8", "replace"), uid)
        self.blobs.mkdir(mode=0o750, exist_ok=True)
        self.uploads.mkdir(mode=0o700, exist_ok=True)
        if self.blobs.stat().st_dev != self.uploads.stat().st_dev:
            raise Conflict(f"{self.blobs} and {self.uploads} must be on one file system: uploads are moved, not copied")
        missing = set(FAN_OUT) - set(os.listdir(self.blobs))
        for name in missing:
            (self.blobs / name).mkdir(mode=0o750, exist_ok=True)
        if missing:
            durability.sync_directory(self.blobs)
        durability.sync_directory(self.root)
        return found

    def check(self, uid: str | None, locator: str) -> None:
        """
        Read from the disk whose storage this is, and look for the folder of a copy. Blocks.

        :raises Conflict: it is another storage; :raises OSError: it is not there, or cannot be read
        """
        with self.format.open("rb") as file:
            forget_pages(file.fileno())
            self._check(file.read().decode("utf-8", "replace"), uid)
        if is_locator(locator):
            self.blob(locator).parent.stat()

    def supports_unnamed_files(self) -> bool:
        """Whether a file can be written unnamed and linked when it is complete (O_TMPFILE on most file systems)."""
        probe = self.uploads / f"probe-{secrets.token_hex(8)}"
        try:
            fd = os.open(self.uploads, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, BLOB_MODE)
        except OSError:
            return False
        try:
            # A umask, or an access control list of the folder, may take bits away.
            self.exact_modes = stat.S_IMODE(os.fstat(fd).st_mode) == BLOB_MODE
            link_descriptor(fd, str(probe))
        except OSError:
            return False
        finally:
            os.close(fd)
        probe.unlink()
        return True

    def _identify(self, durability: Durability, uid: str | None) -> str:
        with suppress(FileNotFoundError):
            return self._check(self.format.read_text("utf-8", "replace"), uid)
        foreign = sorted(name for name in os.listdir(self.root) if not _OWN.fullmatch(name))
        if foreign:
            raise Conflict(f"{self.root} holds other things already, such as {foreign[0]!r}; a storage begins empty")
        text = format_text(uid or str(uuid4()))
        draft = self.root / f"format.{secrets.token_hex(8)}"
        try:
            with draft.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                durability.sync_data(file.fileno())
            # A link, not a rename: if several processes start together, the id of the first one must stay.
            with suppress(FileExistsError):
                os.link(draft, self.format)
        finally:
            draft.unlink(missing_ok=True)
        return self._check(self.format.read_text("utf-8", "replace"), uid)

    def _check(self, text: str, uid: str | None) -> str:
        found = read_format(text, str(self.format))
        if uid is not None and found != uid:
            raise Conflict(f"{self.root} belongs to storage {found}, not to {uid}; is another disk mounted there?")
        return found


def scan_blobs(paths: StorePaths, after: str, limit: int) -> list[tuple[str, int, datetime]]:
    """
    Return up to ``limit`` copies as (locator, size, time of commit) after ``after``, ordered by locator.

    Holds at most ``limit`` names in memory, however many a directory has. Copies removed meanwhile are left out.
    """
    return list(islice(_copies(paths, after, limit), limit))


def _copies(paths: StorePaths, after: str, limit: int) -> Iterator[tuple[str, int, datetime]]:
    for folder in FAN_OUT:
        if folder < after[:2]:
            continue
        last = after
        while True:
            with os.scandir(paths.blobs / folder) as entries:
                locators = (f"{folder}/{entry.name}" for entry in entries)
                page = nsmallest(limit, (each for each in locators if each > last and is_locator(each)))
            for locator in page:
                with suppress(FileNotFoundError):
                    found = paths.blob(locator).lstat()
                    yield locator, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC)
            if len(page) < limit:
                break
            last = page[-1]


def sweep_uploads(paths: StorePaths, older_than: datetime, in_use: Callable[[str], bool]) -> int:
    """Remove the files of uploads last written before ``older_than`` and not in use. Returns their number."""
    limit = older_than.timestamp()
    removed = 0
    with os.scandir(paths.uploads) as entries:
        candidates = [entry.name for entry in entries if is_upload_id(entry.name) and not in_use(entry.name)]
    for upload_id in candidates:
        folder = paths.upload(upload_id)
        # An upload that has just ended has no files left; one that cannot be removed is tried by the next sweep.
        with suppress(OSError):
            if _modified_at(folder) < limit:
                for file in folder.iterdir():  # the data, and copies of it
                    file.unlink()
                folder.rmdir()
                removed += 1
    return removed


def _modified_at(folder: Path) -> float:
    files = [each.lstat().st_mtime for each in folder.iterdir()]
    return max(files, default=folder.lstat().st_mtime)
