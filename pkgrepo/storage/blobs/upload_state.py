"""What a suspended upload needs to go on, as the catalog keeps it between two requests."""

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
    ``offset`` bytes are durable and have these ``digests``; no more than ``limit`` bytes may come in all.

    The digests make the usual case cheap: an upload that moved to another process and gets no further byte need not
    be read again.
    """

    offset: int
    limit: int | None
    digests: Mapping[str, str]

    def encode(self) -> bytes:
        """At most 4 KiB: all of hashlib's algorithms together have less than 2 KiB of hex."""
        return msgspec.json.encode(_Wire(VERSION, self.offset, self.limit, dict(self.digests)))

    @classmethod
    def decode(cls, data: bytes) -> UploadState:
        """
        The state that ``encode`` wrote.

        :raises ValueError: something else wrote it
        """
        wire = msgspec.json.decode(data, type=_Wire)  # its errors are ValueErrors
        if wire.version != VERSION or wire.offset < 0 or "sha256" not in wire.digests:
            raise ValueError("not the state of an upload")
        return cls(wire.offset, wire.limit, wire.digests)
