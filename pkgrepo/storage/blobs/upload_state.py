"""The state of a suspended upload, which the catalog stores between two requests."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from attrs import frozen

VERSION = 1


class _Wire(msgspec.Struct):
    version: int
    offset: int
    limit: int | None
    digests: dict[str, str]


@frozen
class UploadState:
    """
    The first ``offset`` bytes are durable and have these ``digests``; the upload may have at most ``limit`` bytes.

    With the digests, another process can commit the upload without reading the bytes again, if no more bytes arrive.
    """

    offset: int
    limit: int | None
    digests: Mapping[str, str]

    def encode(self) -> bytes:
        """Return at most 4 KiB: the digests of all of hashlib's algorithms have less than 2 KiB of hex."""
        return msgspec.json.encode(_Wire(VERSION, self.offset, self.limit, dict(self.digests)))

    @classmethod
    def decode(cls, data: bytes) -> UploadState:
        """
        Return the state that ``encode`` wrote.

        :raises ValueError: the data has another form
        """
        wire = msgspec.json.decode(data, type=_Wire)  # its errors are ValueErrors
        if wire.version != VERSION or wire.offset < 0 or "sha256" not in wire.digests:
            raise ValueError("not the state of an upload")
        return cls(wire.offset, wire.limit, wire.digests)
