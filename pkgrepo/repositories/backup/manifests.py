"""
What a backup consists of: its manifest, and the list of its blobs.

The name of a manifest has the time of the backup and the digest of its own bytes, and the manifest has those of all
others: a changed byte anywhere is found. The list has a line for each blob, sorted: its sha256, its size in bytes, and
its locator in the place; ``-`` for one that could not be copied, because the server itself had lost it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.model import BlobInfo
from pkgrepo.untrusted.strict_json import ERRORS

FORM: Final = "pkgrepo backup 1"
LOST: Final = "-"  # the locator of a blob that the server had lost
_NAME: Final = re.compile(r"backups/(\d{8}T\d{9}Z)\.([0-9a-f]{64})\.json")
_LINE: Final = re.compile(r"([0-9a-f]{64}) (\d{1,19}) (\S{1,200})\n")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A blob of the place that is a part of the backup itself; ``size`` in bytes."""

    sha256: str
    size: int
    locator: str

    @property
    def info(self) -> BlobInfo:
        """It as a blob of the place's store."""
        return BlobInfo(self.sha256, self.size, self.locator, {"sha256": self.sha256})

    @classmethod
    def of(cls, info: BlobInfo) -> Part:
        """The part that a stored blob is."""
        return cls(sha256=info.sha256, size=info.size, locator=info.locator)


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """
    One backup: when its snapshot of the catalog was taken, of which server, and its parts.

    ``blobs`` is how many blobs the catalog names, with ``bytes`` in all, of which ``lost`` could not be copied.
    ``key_fingerprint`` is that of the key of the server, ``key_sha256`` the digest of its file if the backup has it.
    """

    form: str
    made_at: datetime
    server: str
    version: str
    schema: int
    catalog: Part
    list: Part
    blobs: int
    bytes: int
    lost: int
    key_fingerprint: str
    key_sha256: str | None = None


@frozen
class Entry:
    """A line of the list."""

    sha256: str
    size: int
    locator: str

    @property
    def line(self) -> str:
        """It as text."""
        return f"{self.sha256} {self.size} {self.locator}\n"


def encode(manifest: Manifest) -> tuple[str, bytes]:
    """Return the name and the content of the file of a manifest."""
    data = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    return f"backups/{stamp(manifest.made_at)}.{hashlib.sha256(data).hexdigest()}.json", data


def decode(name: str, data: bytes) -> Manifest:
    """Return the manifest in a file. :raises Invalid: its bytes are not those that were written"""
    found = _NAME.fullmatch(name)
    if found is None or hashlib.sha256(data).hexdigest() != found[2]:
        raise Invalid(f"the manifest {name} is damaged: its bytes do not have the digest in its name")
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except ERRORS as error:
        raise Invalid(f"the manifest {name} cannot be read by this version: {error}") from error
    if manifest.form != FORM:
        raise Invalid(f"the backup {name} has the form {manifest.form!r}, and this version reads {FORM!r}")
    return manifest


def is_manifest(name: str) -> bool:
    """Whether a file in ``backups`` has the name of a manifest."""
    return _NAME.fullmatch(name) is not None


def id_of(name: str) -> str:
    """The id of the backup with a manifest of this name: its time."""
    found = _NAME.fullmatch(name)
    assert found is not None
    return found[1]


def key_name(backup_id: str) -> str:
    """The name of the file that holds the key of the server as of a backup."""
    return f"keys/{backup_id}.key"


def stamp(moment: datetime) -> str:
    """A time (aware) in UTC, with milliseconds, as names have it."""
    utc = moment.astimezone(UTC)
    return f"{utc:%Y%m%dT%H%M%S}{utc.microsecond // 1000:03d}Z"


def sha256_of(content: bytes | Path) -> str:
    """The digest of bytes or of a file, in hex. Blocks. :raises OSError: it cannot be read"""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with content.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_list(path: Path) -> Iterator[Entry]:
    """The entries of a list. Blocks. :raises Invalid: a line is malformed; :raises OSError: it cannot be read"""
    with path.open(encoding="ascii", errors="replace", newline="") as file:
        for line in file:
            found = _LINE.fullmatch(line)
            if found is None:
                raise Invalid("the list of blobs of the backup is damaged")
            yield Entry(found[1], int(found[2]), found[3])
