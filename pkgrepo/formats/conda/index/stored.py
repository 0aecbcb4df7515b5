"""Documents of channels as they are sent, the long ones in temporary files."""

from __future__ import annotations

import bz2
import hashlib
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import zstandard
from attrs import Factory, frozen

from pkgrepo.gateway.answers.temporary_files import TemporaryFile
from pkgrepo.http.answers import Content
from pkgrepo.http.response_cache import ResponseCache

from .shards import Shard

SMALL: Final = 16 * 1024  # bytes; up to this a document is kept in memory
ZSTD_LEVEL: Final = 3
GZIP_LEVEL: Final = 3
BZ2_CACHE_SIZE: Final = 16 * 1024 * 1024  # bytes of compressed pieces of all channels

PLAIN: Final = ""
GZIP: Final = "gzip"
ZSTD: Final = "zstd"
BZ2: Final = "bz2"

Coding = Callable[[Iterable[bytes], int], Iterator[bytes]]  # texts and their size -> the bytes of a document


@frozen(eq=False)
class StoredDocument:
    """
    A document in one coding, which shows a channel at a serial.

    ``digest`` (hex) is that of what it shows, so that it differs whenever the document does. The index of shards has
    them too, by their own digests, and in ``superseded`` those that the index before had and that nobody has saved yet.
    """

    serial: int
    digest: str
    body: bytes | Content
    shards: Mapping[bytes, Shard] = Factory(dict)
    superseded: list[Shard] = Factory(list)


def store(pieces: Iterable[bytes]) -> bytes | Content:
    """Pieces as the body of an answer. Blocks. :raises StorageFull: there is no room for temporary files"""
    file: TemporaryFile | None = None
    written, waiting = 0, bytearray()
    for piece in pieces:
        waiting += piece
        if len(waiting) > SMALL:
            file = file or TemporaryFile()
            file.write(bytes(waiting), written)
            written += len(waiting)
            waiting.clear()
    if file is None:
        return bytes(waiting)
    file.write(bytes(waiting), written)
    return file.content(written + len(waiting))


def plain(texts: Iterable[bytes], _size: int) -> Iterator[bytes]:
    """The texts themselves."""
    return iter(texts)


def gzipped(texts: Iterable[bytes], _size: int) -> Iterator[bytes]:
    """Compressed with gzip."""
    packer = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, 31)
    yield from map(packer.compress, texts)
    yield packer.flush()


def zstandardised(texts: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Compressed with zstd, in one frame with its size: clients read only the first frame."""
    packer = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compressobj(size=size)
    yield from map(packer.compress, texts)
    yield packer.flush()


class BzippedPieces:
    """
    Compresses texts with bzip2, each as a stream of its own, and keeps the results for the texts that do not change.

    A megabyte takes 100 ms. Several threads may use it.
    """

    def __init__(self) -> None:
        self._cache: ResponseCache[bytes] = ResponseCache(BZ2_CACHE_SIZE)
        self._lock = threading.Lock()

    def __call__(self, texts: Iterable[bytes], _size: int) -> Iterator[bytes]:
        """The streams, which are one document together."""
        return map(self._stream, texts)

    def _stream(self, text: bytes) -> bytes:
        digest = hashlib.sha256(text).digest()
        with self._lock:
            found = self._cache.get(digest)
        if found is None:
            found = bz2.compress(text)
            with self._lock:
                self._cache.put(digest, found, size=len(found))
        return found


CODINGS: Final[Mapping[str, Coding]] = {PLAIN: plain, GZIP: gzipped, ZSTD: zstandardised, BZ2: BzippedPieces()}
