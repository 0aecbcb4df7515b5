"""
Synthetic wheels of any size, valid to the last byte.

A wheel is composed of parts: a few bytes of its own, and one stored member of incompressible padding that all wheels
share. Nothing but the padding's block is ever in memory, so that a hundred uploads of 50 MiB or one of 5 GiB cost the
loading side next to nothing.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any

from attrs import define

from .filler import Content, filler

DATE = (2024, 1, 1, 0, 0, 0)


class _Parts:
    """A file of the pieces that a zip archive is written in, which are not copied."""

    def __init__(self) -> None:
        self.pieces: dict[int, bytes | memoryview] = {}  # by offset
        self._at = 0

    def write(self, piece: bytes | memoryview) -> int:
        self.pieces[self._at] = piece  # a member's header is written twice, in the same length
        self._at += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._at

    def seek(self, at: int) -> None:
        self._at = at

    def flush(self) -> None:
        """Do nothing: the pieces are here."""


@define(slots=False)
class Wheel(Content):
    """A pure wheel of one project; ``padding`` is the size of its big member in bytes."""

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
        return sum(map(len, self._pieces))

    def chunks(self) -> Iterator[bytes | memoryview]:
        return iter(self._pieces)

    @property
    def _stem(self) -> str:
        return f"{self.project.replace('-', '_')}-{self.version}"

    @cached_property
    def _pieces(self) -> list[bytes | memoryview]:
        package, info = self.project.replace("-", "_"), f"{self._stem}.dist-info"
        small = {
            f"{package}/__init__.py": f'__version__ = "{self.version}"\n'.encode(),
            f"{info}/METADATA": self.metadata,
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        big = f"{package}/padding.bin"
        rows = [_record_row(name, hashlib.sha256(data).digest(), len(data)) for name, data in small.items()]
        rows += [_record_row(big, _padding_digest(self.padding), self.padding), f"{info}/RECORD,,"]
        parts: Any = _Parts()
        with zipfile.ZipFile(parts, "w") as archive:
            for name, data in small.items():
                archive.writestr(zipfile.ZipInfo(name, DATE), data)
            with archive.open(
                zipfile.ZipInfo(big, DATE), "w", force_zip64=self.padding > zipfile.ZIP64_LIMIT
            ) as member:
                for piece in filler(self.padding):
                    member.write(piece)
            archive.writestr(zipfile.ZipInfo(f"{info}/RECORD", DATE), "\n".join([*rows, ""]))
        return list(parts.pieces.values())


def wheels(project: str, count: int, padding: int = 8000, start: int = 0) -> list[Wheel]:
    """Wheels of one project, one version each."""
    return [Wheel(project, f"1.0.{number}", padding) for number in range(start, start + count)]


@lru_cache(maxsize=64)
def _padding_digest(size: int) -> bytes:
    digest = hashlib.sha256()
    for part in filler(size):
        digest.update(part)
    return digest.digest()


def _record_row(name: str, digest: bytes, size: int) -> str:
    return f"{name},sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()},{size}"
