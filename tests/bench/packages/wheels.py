"""
Synthetic wheels of any size, valid to the last byte.

A wheel is composed of parts: a few bytes of its own, and one stored member of incompressible padding that all wheels
share. Nothing but the padding's block is ever in memory, so that a hundred uploads of 50 MiB or one of 5 GiB cost the
loading side next to nothing.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from collections.abc import Iterator
from functools import cached_property, lru_cache

from attrs import define

from .filler import Content, filler

ZIP64_FROM = 0xFFFFFFFF  # the first size that does not fit into the fields of a plain zip
ELSEWHERE = 0xFFFFFFFF  # in such a field: the value is in the zip64 part
DATE = (2024 - 1980) << 9 | 1 << 5 | 1  # 1 January 2024, as zip writes dates


@define(slots=False)
class Wheel(Content):
    """A pure wheel of one project; C{padding} is the size of its big member in bytes."""

    project: str
    version: str
    padding: int = 8000

    @property
    def filename(self) -> str:
        """Its file name, which also says the project and the version."""
        return f"{self._stem}-py3-none-any.whl"

    @property
    def metadata(self) -> bytes:
        """Its core metadata."""
        lines = [
            "Metadata-Version: 2.1",
            f"Name: {self.project}",
            f"Version: {self.version}",
            "Summary: A package made to be weighed",
            "Requires-Python: >=3.8",
            "Requires-Dist: attrs>=20",
        ]
        return "\n".join([*lines, "", ""]).encode()

    @cached_property
    def size(self) -> int:
        """Its size in bytes."""
        head, padding, tail = self._parts
        return len(head) + padding + len(tail)

    def chunks(self) -> Iterator[bytes | memoryview]:
        head, padding, tail = self._parts
        yield head
        yield from filler(padding)
        yield tail

    @property
    def _stem(self) -> str:
        return f"{self.project.replace('-', '_')}-{self.version}"

    @cached_property
    def _parts(self) -> tuple[bytes, int, bytes]:
        info = f"{self._stem}.dist-info"
        small = {
            f"{self.project.replace('-', '_')}/__init__.py": f'__version__ = "{self.version}"\n'.encode(),
            f"{info}/METADATA": self.metadata,
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        big = f"{self.project.replace('-', '_')}/padding.bin"
        crc, digest = _padding_sums(self.padding)
        rows = [_record_row(name, hashlib.sha256(data).digest(), len(data)) for name, data in small.items()]
        rows += [_record_row(big, digest, self.padding), f"{info}/RECORD,,"]
        record = ("\n".join(rows) + "\n").encode()

        head, tail, directory = b"", b"", b""
        for name, data in small.items():
            directory += _central(name, zlib.crc32(data), len(data), len(head))
            head += _local(name, zlib.crc32(data), len(data)) + data
        directory += _central(big, crc, self.padding, len(head))
        head += _local(big, crc, self.padding)
        name = f"{info}/RECORD"
        directory += _central(name, zlib.crc32(record), len(record), len(head) + self.padding)
        tail += _local(name, zlib.crc32(record), len(record)) + record
        end = _end(len(small) + 2, len(directory), len(head) + self.padding + len(tail))
        return head, self.padding, tail + directory + end


def wheels(project: str, count: int, padding: int = 8000, start: int = 0) -> list[Wheel]:
    """Wheels of one project, one version each."""
    return [Wheel(project, f"1.0.{number}", padding) for number in range(start, start + count)]


@lru_cache(maxsize=64)
def _padding_sums(size: int) -> tuple[int, bytes]:
    crc, digest = 0, hashlib.sha256()
    for part in filler(size):
        crc = zlib.crc32(part, crc)
        digest.update(part)
    return crc, digest.digest()


def _record_row(name: str, digest: bytes, size: int) -> str:
    return f"{name},sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()},{size}"


def _short(value: int) -> int:
    return value if value < ZIP64_FROM else ELSEWHERE


def _local(name: str, crc: int, size: int) -> bytes:
    # APPNOTE 4.3.7, and 4.5.3 for sizes that need zip64
    extra = struct.pack("<HHQQ", 1, 16, size, size) if size >= ZIP64_FROM else b""
    short = _short(size)
    need = 45 if extra else 20
    fields = (0x04034B50, need, 0, 0, 0, DATE, crc, short, short, len(name), len(extra))
    return struct.pack("<IHHHHHIIIHH", *fields) + name.encode() + extra


def _central(name: str, crc: int, size: int, offset: int) -> bytes:
    # APPNOTE 4.3.12: only the fields that do not fit are in the zip64 extra
    wide = [each for each in (size, size) if each >= ZIP64_FROM]
    wide += [offset] if offset >= ZIP64_FROM else []
    extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    need = 45 if extra else 20
    short = _short(size)
    mode = 0o100644 << 16
    fields = (0x02014B50, 3 << 8 | need, need, 0, 0, 0, DATE, crc, short, short)
    places = (len(name), len(extra), 0, 0, 0, mode, _short(offset))
    return struct.pack("<IHHHHHHIIIHHHHHII", *fields, *places) + name.encode() + extra


def _end(count: int, size: int, offset: int) -> bytes:
    short = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, size, _short(offset), 0)
    if offset < ZIP64_FROM:
        return short
    # APPNOTE 4.3.14 and 4.3.15
    wide = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 3 << 8 | 45, 45, 0, 0, count, count, size, offset)
    return wide + struct.pack("<IIQI", 0x07064B50, 0, offset + size, 1) + short
