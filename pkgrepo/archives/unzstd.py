"""Streaming decompression of zstd data (RFC 8878), with limits on the decompressed size and on the window."""

from __future__ import annotations

import io
from typing import Final

import zstandard

from .limits import PIECE
from .source import Source
from .unpacked_stream import UnpackedStream

WINDOW: Final = 128 * 1024 * 1024  # bytes; the largest that zstd itself takes without being told (--ultra -22)
BLOCK_SIZE: Final = 64  # bytes of the data per block, beyond FREE_BLOCKS; a block usually has kilobytes
FREE_BLOCKS: Final = 1000

_MAGIC: Final = 0xFD2FB528
_RLE, _RESERVED = 1, 3


class Unzstd(UnpackedStream):
    """
    Reads the decompressed bytes of zstd data in order.

    The data must be one frame: of several, some programs read the first one only.

    :raises Invalid: it is not one frame
    """

    def __init__(self, source: Source, data: bytes) -> None:
        super().__init__(source)
        if _frame_end(source, data) != len(data):
            raise source.refuse("has data after its zstd frame")
        decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW)
        self._reader = decompressor.stream_reader(io.BytesIO(data))

    def _next_piece(self) -> bytes:
        try:
            return self._reader.read(PIECE)
        except zstandard.ZstdError:
            raise self._source.refuse("is damaged, or has a zstd window that is too large") from None


def _frame_end(source: Source, data: bytes) -> int:
    """The offset behind the frame that data begin with (RFC 8878 section 3.1.1)."""
    if len(data) < 6 or int.from_bytes(data[:4], "little") != _MAGIC:
        raise source.refuse("is not zstd data, or is truncated")
    descriptor = data[4]
    single_segment = descriptor >> 5 & 1
    content_size = (single_segment, 2, 4, 8)[descriptor >> 6]
    at = 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3] + content_size
    for _ in range(len(data) // BLOCK_SIZE + FREE_BLOCKS):
        header = int.from_bytes(data[at : at + 3], "little")
        kind, size = header >> 1 & 3, header >> 3
        at += 3 + (1 if kind == _RLE else size)
        if at > len(data) or kind == _RESERVED:
            raise source.refuse("is damaged or truncated zstd data")
        if header & 1:
            return at + 4 * (descriptor >> 2 & 1)
    raise source.refuse("has too many zstd blocks")
