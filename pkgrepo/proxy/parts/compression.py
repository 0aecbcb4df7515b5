"""Compresses blocks with one pair of zstd contexts for each thread: making one takes as long as a small block."""

from __future__ import annotations

import threading
from typing import Final

import zstandard

LEVEL: Final = 1  # 5 to 10 times smaller for JSON, at 400 MB/s


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
