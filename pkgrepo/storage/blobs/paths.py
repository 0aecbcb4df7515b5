"""
Where a filesystem store keeps what, and which names may become paths.

==================================  ====================================================================
``format``                          version of this layout and the storage's id, one line each
``blobs/ab/<sha256>.<generation>``  a committed copy, mode 0444, never written again
``uploads/<id>/data``               an upload that has a name: suspended, or where unnamed files are not to be had
==================================  ====================================================================

A locator is ``ab/<sha256>.<generation>``. The generation is random, so no two commits share a locator, not even of
the same bytes. Upload ids and locators come back from outside; only what matches their grammar is joined to a path.
"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from pkgrepo.errors import Conflict

from .durability import Durability
from .syscalls import link_descriptor

VERSION = 1
FAN_OUT = tuple(f"{n:02x}" for n in range(256))

_LOCATOR = re.compile(r"([0-9a-f]{2})/\1[0-9a-f]{62}\.[0-9a-f]{16}")
_UPLOAD_ID = re.compile(r"[0-9a-f]{32}")
# What a root may hold without a format: what starts at the same time make, and what file systems have of their own.
_OWN = re.compile(r"blobs|uploads|repositories|format(\.[0-9a-f]{16})?|lost\+found|\..*")
_FORMAT = re.compile(r"pkgrepo blobs ([0-9]+)\nstorage ([^\n]+)\n")


def new_locator(sha256: str) -> str:
    """A locator for these bytes that was never used."""
    return f"{sha256[:2]}/{sha256}.{secrets.token_hex(8)}"


def is_locator(text: str) -> bool:
    """Whether the text follows the grammar of locators."""
    return _LOCATOR.fullmatch(text) is not None


def new_upload_id() -> str:
    """A name for an upload that was never used, and that cannot be guessed."""
    return secrets.token_hex(16)


def is_upload_id(text: str) -> bool:
    """Whether the text follows the grammar of upload ids."""
    return _UPLOAD_ID.fullmatch(text) is not None


def find_storage_id(root: Path) -> str | None:
    """The id of the storage that the store at ``root`` belongs to, None where there is no store. Blocks."""
    try:
        match = _FORMAT.fullmatch(StorePaths(root).format.read_text("utf-8", "replace"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return None if match is None else match[2]


class StorePaths:
    """The paths of one store under its root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.blobs = root / "blobs"
        self.uploads = root / "uploads"
        self.format = root / "format"

    def blob(self, locator: str) -> Path:
        """The path of a locator that ``is_locator`` accepted."""
        return self.blobs / locator

    def upload(self, upload_id: str) -> Path:
        """The directory of an upload whose id ``is_upload_id`` accepted."""
        return self.uploads / upload_id

    def prepare(self, durability: Durability, uid: str | None, *, create: bool = True) -> str:
        """
        Make or check everything above; the storage's id. Blocks. Processes that start together may all do this.

        Without ``create`` a root that holds no storage is left as it is: its disk may not be mounted.

        :raises Conflict: the root holds other things, belongs to another storage or a newer version, or its folders
            are on two devices
        :raises OSError: the root cannot be used, or is missing and not to be made
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

    def supports_unnamed_files(self) -> bool:
        """Whether a file can be written without a name and get one when it is whole (Linux, most file systems)."""
        probe = self.uploads / f"probe-{secrets.token_hex(8)}"
        try:
            fd = os.open(self.uploads, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
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
        text = f"pkgrepo blobs {VERSION}\nstorage {uid or uuid4()}\n"
        draft = self.root / f"format.{secrets.token_hex(8)}"
        try:
            with draft.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                durability.sync_data(file.fileno())
            # Linked, not renamed: of processes that start together the first one's id must stay.
            with suppress(FileExistsError):
                os.link(draft, self.format)
        finally:
            draft.unlink(missing_ok=True)
        return self._check(self.format.read_text("utf-8", "replace"), uid)

    def _check(self, text: str, uid: str | None) -> str:
        match = _FORMAT.fullmatch(text)
        if match is None or int(match[1]) != VERSION:
            raise Conflict(f"{self.format} is not of version {VERSION}, the only one that this release reads")
        if uid is not None and match[2] != uid:
            raise Conflict(f"{self.root} belongs to storage {match[2]}, not to {uid}; is another disk mounted there?")
        return match[2]
