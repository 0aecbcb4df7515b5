"""
The layout of a parts file.

=======  ==============================================================================================
header   L{HEADER}, which names the version of the format
groups   per group of entries in order: a block with the entries without their fragments, then for each
         kind of fragment a block of (sort, key, fragment)
top      a block with ``Normalised.top``
paths    a block with 12 bytes for each file, sorted: L{hash_path}, and the number of its group
table    a block with L{Table}
trailer  L{TRAILER}: offset, stored size, length and checksum of the table
=======  ==============================================================================================

A block is compressed with zstd; all but the one of the paths contain msgpack. So one look-up reads the table and two
or three blocks, and a document reads only the fragments of its kind.
"""

from __future__ import annotations

import hashlib
import struct
import threading
from typing import Annotated, Any, Final

import msgspec
import zstandard

from pkgrepo.errors import PkgrepoError
from pkgrepo.proxy.parts.values import Entry

HEADER: Final = b"pkgrepo parts 1\n"
TRAILER: Final = struct.Struct(">QIII")
PATH: Final = struct.Struct(">QI")
GROUP_ENTRIES: Final = 128
GROUP_SIZE: Final = 256 * 1024  # bytes, one entry more or less: msgspec decodes that in 0.1 ms, and keeps the GIL
LARGEST_BLOCK: Final = 64 * 1024 * 1024  # bytes uncompressed; a block is read into memory
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]

HEADS: Final = msgspec.msgpack.Decoder(list[Entry])
FRAGMENTS: Final = msgspec.msgpack.Decoder(list[tuple[bytes, str, bytes]])
TOP: Final = msgspec.msgpack.Decoder(dict[str, Any])

LEVEL: Final = 1  # 5 to 10 times smaller for JSON, at 400 MB/s


class PartsDamaged(PkgrepoError):  # noqa: N818 - named for what is the case
    """The parts file is damaged, or was written by another version of the program: fetch the document again."""

    def __str__(self) -> str:
        return "the stored upstream document cannot be read"


class Block(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a block is: offset and stored size, its uncompressed length, and the CRC-32 of the stored bytes."""

    offset: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
    size: Count
    length: Count
    checksum: Count


class Group(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Consecutive entries: ``sort`` and ``key`` of the first one, their heads, and their fragments by kind."""

    sort: bytes
    key: str
    heads: Block
    fragments: dict[str, Block]


class Table(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where everything is; ``count`` is the number of entries."""

    count: Count
    top: Block
    paths: Block
    groups: list[Group]


TABLE: Final = msgspec.msgpack.Decoder(Table)


def hash_path(path: str) -> int:
    """Return 64 bits of BLAKE2b: an upstream chooses paths, and must not be able to choose equal hashes."""
    return int.from_bytes(hashlib.blake2b(path.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


class _Contexts(threading.local):
    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_contexts = _Contexts()


def compress(data: bytes) -> bytes:
    """One frame that says its own size."""
    return _contexts.compressor.compress(data)


def decompress(frame: bytes, length: int) -> bytes | None:
    """The ``length`` bytes of a frame, or None if it says another size, which decides how much memory it takes."""
    try:
        if zstandard.frame_content_size(frame) != length:
            return None
        return _contexts.decompressor.decompress(frame)
    except zstandard.ZstdError:
        return None
