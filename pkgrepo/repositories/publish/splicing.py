"""
Long documents of one package, ready to be sent, at the cost of what has changed.

A document is spliced from a fragment for each version or file. It is cut into groups of them. Where one ends is decided
by how a fragment begins, so that one more version changes one group; what was compressed before is kept by what it was
made of.
"""

from __future__ import annotations

import hashlib
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import zstandard
from attrs import frozen

from pkgrepo.model import Document

# Stands for the repository's address, without a slash at the end. JSON has no bare control characters, so that
# nothing that was published can look like it; and one byte is found four times as fast as several.
BASE: Final = b"\x00"
GROUP: Final = 64  # fragments, on average
LARGEST_GROUP: Final = 512 * 1024  # bytes, one fragment more or less
COMPRESS_FROM: Final = 1024  # bytes; below that the head of the answer outweighs the gain
CACHE_SIZE: Final = 64 * 1024 * 1024  # bytes of compressed groups; 500 packages of 10 MB
LEVEL: Final = 4  # of deflate; the groups are small and made once

# RFC 1952: deflate, no name and no time, from any system.
_GZIP_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LAST_BLOCK: Final = b"\x03\x00"  # RFC 1951 3.2.3: an empty one, marked as the last


@frozen
class Spliced:
    """A document in its parts; L{BASE} may still be in them."""

    head: bytes
    fragments: Sequence[bytes]
    tail: bytes = b"}}"
    separator: bytes = b","

    def joined(self) -> bytes:
        """The document in one piece."""
        return b"".join((self.head, self.separator.join(self.fragments), self.tail))


class Renderer:
    """Renders documents, and remembers groups that it compressed. It may be used from several threads."""

    def __init__(self, cache_size: int = CACHE_SIZE) -> None:
        self._left = cache_size
        self._kept: OrderedDict[tuple[bytes, bytes], bytes] = OrderedDict()
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
    ) -> Document:
        """
        The document as it is served under ``base_url``, the repository's address without a slash at the end.

        That is empty for documents that do not tell it. With ``zstd`` there is that form, too. A group ends at
        ``group_size`` bytes, if it did not before.
        A large one takes tens of milliseconds, and belongs into a thread.
        """
        base = _escape(base_url)
        texts: list[bytes] = []
        packed: list[bytes] = []
        crc = 0
        validator = hashlib.sha256(base)
        for group in _groups(spliced, group_size):
            digest = hashlib.sha256(group).digest()
            validator.update(digest)
            text = group.replace(BASE, base) if base else group
            crc = zlib.crc32(text, crc)
            texts.append(text)
            packed.append(self._deflate(text, (digest, base)))
        body = b"".join(texts)
        gzip = zpacked = None
        if len(body) >= COMPRESS_FROM:
            sums = crc.to_bytes(4, "little") + (len(body) & 0xFFFFFFFF).to_bytes(4, "little")
            gzip = b"".join((_GZIP_HEAD, *packed, _LAST_BLOCK, sums))
            # In one frame, since clients read no further than the first; it takes 2 ms a megabyte.
            zpacked = zstandard.ZstdCompressor(level=1).compress(body) if zstd else None
        etag = f'"{validator.hexdigest()[:32]}"'
        return Document(content_type=content_type, body=body, etag=etag, serial=serial, gzip=gzip, zstd=zpacked)

    def _deflate(self, text: bytes, key: tuple[bytes, bytes]) -> bytes:
        """A group compressed so that it can stand between others: on its own, and ending on a byte."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        deflater = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        made = deflater.compress(text) + deflater.flush(zlib.Z_SYNC_FLUSH)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self._left -= len(made)
            while self._left < 0:
                _, oldest = self._kept.popitem(last=False)
                self._left += len(oldest)
        return made


def _escape(base_url: str) -> bytes:
    """An address as it stands in a JSON string; it comes from a request's Host field at times."""
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
    """Whether a group ends behind this fragment: one in L{GROUP} does, always the same ones, by how it begins."""
    # Multiplied, since the checksums of names that end alike differ in few bits (Knuth, TAOCP 6.4).
    return (zlib.crc32(fragment[: fragment.find(b",")]) * 0x9E3779B1 >> 16) % GROUP == 0
