"""
Documents, compressed, and their joining from fragments. Processes that load no reactor import this module.

Long documents are joined from groups of fragments, and each compressed group is cached under its content. The start of
a fragment decides whether a group ends after it, so adding a version changes one group.
"""

from __future__ import annotations

import hashlib
import threading
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import zstandard
from attrs import frozen

from pkgrepo.concurrency.lru import SizedCache
from pkgrepo.model import Document

FAST_FROM = 256 * 1024  # bytes; above, time matters more than the best compression

# Placeholder for the repository's address, without a slash at the end. JSON text has no raw control characters, so
# published data cannot contain it; and one byte is found four times as fast as several.
BASE: Final = b"\x00"
GROUP: Final = 64  # fragments, on average
LARGEST_GROUP: Final = 512 * 1024  # bytes, one fragment more or less
COMPRESS_FROM: Final = 1024  # bytes; below, the response head outweighs the gain
KEPT_FROM: Final = 16 * 1024  # bytes of a document; groups of a smaller one are compressed in 200 us, and not kept
ENTRY_BYTES: Final = 512  # of a group in memory beside its bytes, roughly
CACHE_SIZE: Final = 64 * 1024 * 1024  # bytes of compressed groups; 500 packages of 10 MB
LEVEL: Final = 4  # of deflate; groups are small and compressed once
LARGE: Final = 16 * 1024 * 1024  # bytes
# RFC 1952: deflate, no name and no time, from any system.
_GZIP_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LAST_BLOCK: Final = b"\x03\x00"  # RFC 1951 3.2.3: an empty block with the flag of the last one


def render(content_type: str, body: bytes, serial: int) -> Document:
    """Return a document with its ETag and its compressed forms."""
    packed = zpacked = None
    if len(body) >= COMPRESS_FROM:
        fast = len(body) >= FAST_FROM
        gz = zlib.compressobj(1 if fast else 6, zlib.DEFLATED, 31)
        packed = gz.compress(body) + gz.flush()
        zpacked = zstandard.ZstdCompressor(level=1 if fast else 6).compress(body)
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return Document(content_type=content_type, body=body, etag=etag, serial=serial, gzip=packed, zstd=zpacked)


@frozen
class Spliced:
    """The parts of a document, with L{BASE} for the repository's address."""

    head: bytes
    fragments: Sequence[bytes]
    tail: bytes = b"}}"
    separator: bytes = b","

    @property
    def size(self) -> int:
        """Bytes without the separators."""
        return len(self.head) + sum(map(len, self.fragments)) + len(self.tail)

    def joined(self) -> bytes:
        """Return the whole document."""
        return b"".join((self.head, self.separator.join(self.fragments), self.tail))


class Renderer:
    """
    Renders documents, with a ``cache`` of compressed groups. Several threads may use it.

    A document of more than ``large`` bytes is kept in its compressed forms only.
    """

    def __init__(self, cache_size: int = CACHE_SIZE, large: int = LARGE) -> None:
        self._large = large
        self.cache: SizedCache[bytes] = SizedCache(cache_size)
        self._lock = threading.Lock()

    def render(
        self,
        spliced: Spliced,
        base_url: str,
        *,
        content_type: str,
        serial: int,
        zstd: bool = False,
        group_size: int = LARGEST_GROUP,
        algorithms: Sequence[str] = (),
    ) -> Document:
        """
        Return the document with ``base_url``, the repository's address without a slash at the end.

        ``base_url`` is empty for documents that do not contain it. With ``zstd`` the document also has that encoding. A
        group ends at ``group_size`` bytes at the latest. ``algorithms`` are those of the document's digests. A document
        of more than ``large`` bytes has no body. It takes tens of milliseconds: use a thread.
        """
        base = _escape(base_url)
        texts: list[bytes] = []
        packed: list[bytes] = []
        crc = size = 0
        large, compressed, kept = spliced.size > self._large, spliced.size >= COMPRESS_FROM, spliced.size >= KEPT_FROM
        hashes = {name: hashlib.new(name) for name in algorithms}
        # One frame, because clients read only the first one; it takes 2 ms per megabyte.
        zpacker = zstandard.ZstdCompressor(level=1)
        zstream = zpacker.compressobj() if zstd and large else None
        zpacked: list[bytes] = []
        validator = hashlib.sha256(base)
        for group in _groups(spliced, group_size):
            digest = hashlib.sha256(group).digest()
            validator.update(digest)
            text = group.replace(BASE, base) if base else group
            crc = zlib.crc32(text, crc)
            size += len(text)
            for each in hashes.values():
                each.update(text)
            if zstream is not None:
                zpacked.append(zstream.compress(text))
            if not large:
                texts.append(text)
            if compressed:
                packed.append(self._deflate(text, (digest, base)) if kept else _deflated(text))
        body = b"".join(texts)
        if zstream is not None:
            zpacked.append(zstream.flush())
        elif zstd and compressed:
            zpacked.append(zpacker.compress(body))
        gzip = None
        if compressed:
            sums = crc.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")
            gzip = b"".join((_GZIP_HEAD, *packed, _LAST_BLOCK, sums))
        etag = f'"{validator.hexdigest()[:32]}"'
        return Document(
            content_type=content_type,
            body=body,
            etag=etag,
            serial=serial,
            gzip=gzip,
            zstd=b"".join(zpacked) or None,
            digests={name: each.hexdigest() for name, each in hashes.items()},
            size=size,
        )

    def _deflate(self, text: bytes, key: tuple[bytes, bytes]) -> bytes:
        """Compress a group independently of others, ending on a byte boundary, so that groups can be concatenated."""
        with self._lock:
            found = self.cache.get(key)
            if found is not None:
                return found
        made = _deflated(text)
        with self._lock:
            self.cache.put(key, made, len(made) + ENTRY_BYTES)
        return made


def _deflated(text: bytes) -> bytes:
    deflater = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return deflater.compress(text) + deflater.flush(zlib.Z_SYNC_FLUSH)


def _escape(base_url: str) -> bytes:
    """Escape an address for a JSON string; it may come from a request's Host field."""
    return msgspec.json.encode(base_url)[1:-1]


def _groups(spliced: Spliced, group_size: int) -> Iterator[bytes]:
    yield spliced.head
    group: list[bytes] = []
    size = 0
    last = len(spliced.fragments) - 1
    for index, fragment in enumerate(spliced.fragments):
        group.append(fragment)
        size += len(fragment)
        if index != last:
            group.append(spliced.separator)
            if _ends(fragment) or size >= group_size:
                yield b"".join(group)
                group, size = [], 0
    yield b"".join((*group, spliced.tail))


def _ends(fragment: bytes) -> bool:
    """Whether a group ends after this fragment, decided by a checksum of its start; one in L{GROUP} does."""
    # Multiplied, because checksums of names with the same end differ in few bits only (Knuth, TAOCP 6.4).
    return (zlib.crc32(fragment[: fragment.find(b",")]) * 0x9E3779B1 >> 16) % GROUP == 0
