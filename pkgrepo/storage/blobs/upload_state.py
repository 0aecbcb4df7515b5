"""The state of a suspended upload, which the catalog stores between two requests."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from attrs import frozen

from .paths import FIRST_FILE, is_upload_file

VERSION = 1


class _Wire(msgspec.Struct, omit_defaults=True):
    version: int
    offset: int
    limit: int | None
    digests: dict[str, str]
    file: str = FIRST_FILE


@frozen
class UploadState:
    """
    The first ``offset`` bytes are durable and have these ``digests``; the upload may have at most ``limit`` bytes.
    They are in the file with the name ``file`` in the upload's folder.

    With the digests, another process can commit the upload without reading the bytes again, if no more bytes arrive.
    """

    offset: int
    limit: int | None
    digests: Mapping[str, str]
    file: str = FIRST_FILE

    def encode(self) -> bytes:
        """Return at most 4 KiB: the digests of all of hashlib's algorithms have less than 2 KiB of hex."""
        return msgspec.json.encode(_Wire(VERSION, self.offset, self.limit, dict(self.digests), self.file))

    @classmethod
    def decode(cls, data: bytes) -> UploadState:
        """
        Return the state that ``encode`` wrote.

        :raises ValueError: the data has another form
        """
        wire = msgspec.json.decode(data, type=_Wire)  # its errors are ValueErrors
        if wire.version != VERSION or wire.offset < 0 or "sha256" not in wire.digests or not is_upload_file(wire.file):
            raise ValueError("not the state of an upload")
        return cls(wire.offset, wire.limit, wire.digests, wire.file)
