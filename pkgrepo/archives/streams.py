"""The bytes of a file, plain or decompressed (gzip, bzip2, zstd), as a stream with a limit on their number."""

from __future__ import annotations

import bz2
import zlib
from abc import ABC, abstractmethod
from typing import IO, Final, cast

import zstandard

from pkgrepo.archives.source import Source, unpacked_budget

MOST_STREAMS = 1000  # gzip or bzip2 streams in one file: an empty one costs time; parallel bzip2 writes one per 900 KB

WINDOW: Final = 128 * 1024 * 1024  # bytes; the largest that zstd itself takes without being told (--ultra -22)
BLOCK_SIZE: Final = 64  # bytes of the data per block, beyond FREE_BLOCKS; a block usually has kilobytes
FREE_BLOCKS: Final = 1000
MOST_BLOCKS: Final = 1_000_000  # a block usually unpacks to 128 KiB
_MAGIC: Final = 0xFD2FB528
_SKIPPABLE: Final = 0x184D2A50  # with any last digit
_RLE, _RESERVED = 1, 3


class PlainStream:
    """Reads the bytes of a file in order."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._at = 0

    @property
    def position(self) -> int:
        """The offset of the next byte in the file."""
        return self._at

    def read(self, count: int) -> bytes:
        """The next ``count`` bytes; fewer at the end of the file."""
        data = self._source.read(self._at, min(count, self._source.size - self._at))
        self._at += len(data)
        return data

    def skip(self, count: int) -> int:
        """Skip ``count`` bytes. Returns the number of bytes skipped, which is smaller at the end of the file."""
        skipped = min(count, self._source.size - self._at)
        self._at += skipped
        return skipped

    def only_zeros_follow(self) -> bool:
        """Whether all remaining bytes are zero. Reads to the first piece with another byte, or to the end."""
        while piece := self.read(self._source.limits.piece):
            if piece.strip(b"\x00"):
                return False
        return True


class UnpackedStream(ABC):
    """
    Reads decompressed bytes in order. A subclass decompresses them piece by piece.

    They are at most ``most`` bytes; by default as many as L{unpacked_budget} allows.
    """

    def __init__(self, source: Source, most: int | None = None) -> None:
        self._source = source
        self._most = unpacked_budget(source) if most is None else most
        self._budget = self._most
        self._decompressed = memoryview(b"")

    @abstractmethod
    def _next_piece(self) -> bytes:
        """
        The next decompressed bytes, at most a piece; empty at the end.

        :raises Invalid: the file is damaged or truncated
        """

    def read(self, count: int) -> bytes:
        """
        The next ``count`` bytes; fewer at the end of the data.

        :raises Invalid: the file is damaged or truncated, or its decompressed size exceeds the limit
        """
        parts: list[memoryview] = []
        while count > 0 and (self._decompressed or self._fill()):
            part, self._decompressed = self._decompressed[:count], self._decompressed[count:]
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def read_some(self) -> bytes:
        """
        The next bytes as they come, at most a piece; empty at the end of the data.

        After an error of the source, such as L{PartMissing}, it may be called again.
        """
        if not self._decompressed:
            self._fill()
        found, self._decompressed = self._decompressed, memoryview(b"")
        return found.tobytes()

    def skip(self, count: int) -> int:
        """Skip ``count`` bytes. Returns the number of bytes skipped, which is smaller at the end of the data."""
        left = count
        while left > 0 and (self._decompressed or self._fill()):
            taken = min(left, len(self._decompressed))
            self._decompressed = self._decompressed[taken:]
            left -= taken
        return count - left

    def only_zeros_follow(self) -> bool:
        """Whether all remaining bytes are zero. Reads to the first other byte, or to the end."""
        while self._decompressed or self._fill():
            if self._decompressed.tobytes().strip(b"\x00"):  # any() takes 1000 times as long
                return False
            self._decompressed = memoryview(b"")
        return True

    def _fill(self) -> bool:
        """Decompress the next piece; False at the end."""
        piece = self._next_piece()
        self._budget -= len(piece)
        if self._budget < 0:
            raise self._source.refuse(f"would unpack to more than {self._most} bytes, far more than it is packed")
        self._decompressed = memoryview(piece)
        return bool(piece)


class Gunzip(UnpackedStream):
    """
    Reads the decompressed bytes of a gzip file in order.

    The contents of several gzip streams in one file are concatenated, as gzip does. Zero bytes after the last stream
    are padding. They are at most ``most_streams``.
    """

    def __init__(self, source: Source, *, most_streams: int = MOST_STREAMS) -> None:
        super().__init__(source)
        self._most_streams = most_streams
        self._at = 0
        self._streams = 1
        self._compressed = b""
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)

    def _next_piece(self) -> bytes:
        while True:
            if self._inflater.eof and not self._next_stream():
                return b""
            if not self._compressed:
                self._compressed = self._read_more()
                if not self._compressed:
                    raise self._source.refuse("is truncated")
            try:
                piece = self._inflater.decompress(self._compressed, self._source.limits.piece)
            except zlib.error:
                raise self._source.refuse("is damaged, or not a gzip archive") from None
            self._compressed = self._inflater.unused_data if self._inflater.eof else self._inflater.unconsumed_tail
            if piece:
                return piece

    def _next_stream(self) -> bool:
        """Start the next gzip stream of the file; False if there is none."""
        while not (rest := self._compressed.lstrip(b"\x00")):
            self._compressed = self._read_more()
            if not self._compressed:
                return False
        self._compressed = rest
        if len(rest) == 1:
            self._compressed += self._read_more()
        if not self._compressed.startswith(b"\x1f\x8b"):
            raise self._source.refuse("has data after the end of its gzip archive")
        self._streams += 1
        if self._streams > self._most_streams:
            raise self._source.refuse(f"is made of more than {self._most_streams} gzip streams")
        self._inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        return True

    def _read_more(self) -> bytes:
        data = self._source.read(self._at, min(self._source.limits.piece, self._source.size - self._at))
        self._at += len(data)
        return data


class Bunzip2(UnpackedStream):
    """
    Reads the decompressed bytes of a bzip2 file in order; several streams are concatenated, as bzip2 does.

    A megabyte takes 60 ms, so that callers say how much may be read: ``most_packed`` bytes of the file, and ``most``
    bytes after decompression.
    """

    def __init__(self, source: Source, *, most_packed: int, most: int) -> None:
        super().__init__(source, most)
        self._most_packed = most_packed
        self._at = 0
        self._streams = 1
        self._compressed = b""
        self._decompressor = bz2.BZ2Decompressor()

    def _next_piece(self) -> bytes:
        while True:
            if self._decompressor.eof and not self._next_stream():
                return b""
            if self._decompressor.needs_input and not self._compressed:
                self._compressed = self._read_more()
                if not self._compressed:
                    raise self._source.refuse("is truncated")
            data, self._compressed = self._compressed, b""
            try:
                piece = self._decompressor.decompress(data, self._source.limits.piece)
            except OSError:
                raise self._source.refuse("is damaged, or not a bzip2 archive") from None
            if piece:
                return piece

    def _next_stream(self) -> bool:
        """Start the next stream of the file; False at its end."""
        self._compressed = self._decompressor.unused_data or self._read_more()
        if not self._compressed:
            return False
        self._streams += 1
        if self._streams > MOST_STREAMS:
            raise self._source.refuse(f"is made of more than {MOST_STREAMS} bzip2 streams")
        self._decompressor = bz2.BZ2Decompressor()
        return True

    def _read_more(self) -> bytes:
        data = self._source.read(self._at, min(self._source.limits.piece, self._source.size - self._at))
        self._at += len(data)
        if self._at - len(data) >= self._most_packed:
            raise self._source.refuse(f"has what is looked for not within its first {self._most_packed} bytes")
        return data


class Unzstd(UnpackedStream):
    """
    Reads the decompressed bytes of zstd data in order.

    The data must be one frame: of several, some programs read the first one only. With ``frames`` there may be any
    number of frames, with skippable ones between them (RFC 8878 section 3.1.2).

    :raises Invalid: it is not one frame
    """

    def __init__(self, source: Source, *, frames: bool = False) -> None:
        super().__init__(source)
        end, blocks = _frame_end(source, skippable=frames)
        if end != source.size and not frames:
            raise source.refuse("has data after its zstd frame")
        while end < source.size:
            end, blocks = _frame_end(source, end, blocks, skippable=True)
        decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW)
        plain = cast("IO[bytes]", PlainStream(source))
        self._reader = decompressor.stream_reader(plain, read_across_frames=frames)

    def _next_piece(self) -> bytes:
        try:
            return self._reader.read(self._source.limits.piece)
        except zstandard.ZstdError:
            raise self._source.refuse("is damaged, or has a zstd window that is too large") from None


def _frame_end(source: Source, start: int = 0, blocks: int = 0, *, skippable: bool = False) -> tuple[int, int]:
    """
    The offset behind the frame that begins at an offset (RFC 8878 section 3.1), which may be ``skippable``.

    ``blocks`` are those of the frames before it; also returned are those with this frame.
    """
    most = min(source.size // BLOCK_SIZE, MOST_BLOCKS) + FREE_BLOCKS
    magic = int.from_bytes(source.read(start, 4), "little") if source.size - start >= 6 else 0
    if skippable and magic & 0xFFFFFFF0 == _SKIPPABLE and source.size - start >= 8 and blocks < most:
        end = start + 8 + int.from_bytes(source.read(start + 4, 4), "little")
        if end > source.size:
            raise source.refuse("is truncated zstd data")
        return end, blocks + 1
    if magic != _MAGIC:
        raise source.refuse("is not zstd data, or is truncated")
    descriptor = source.read(start + 4, 1)[0]
    single_segment = descriptor >> 5 & 1
    content_size = (single_segment, 2, 4, 8)[descriptor >> 6]
    at = start + 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3] + content_size
    for count in range(blocks + 1, most + 1):
        header = int.from_bytes(source.read(at, min(3, max(0, source.size - at))), "little")
        kind, size = header >> 1 & 3, header >> 3
        at += 3 + (1 if kind == _RLE else size)
        if at > source.size or kind == _RESERVED:
            raise source.refuse("is damaged or truncated zstd data")
        if header & 1:
            return at + 4 * (descriptor >> 2 & 1), count
    raise source.refuse("has too many zstd blocks")
