"""A zip archive of files, written while it is read: nothing is kept on disk or, beyond a piece, in memory."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from .staging import StagedFile

PIECE: Final = 256 * 1024  # bytes
PACKED: Final = frozenset({"jar", "war", "ear", "aar", "zip", "gz", "tgz", "xz", "bz2"})  # stored as they are
TIME: Final = (1980, 1, 1, 0, 0, 0)  # of all entries, so that the same files give the same archive


def zip_pieces(files: Iterable[StagedFile], on_file: Callable[[], None]) -> Iterator[bytes]:
    """
    Yield an archive of the files in pieces; ``on_file`` is called after each file.

    :raises OSError: a file cannot be read
    """
    sink = _Sink()
    with zipfile.ZipFile(sink, "w") as archive:
        for each in files:
            entry = zipfile.ZipInfo(each.path, TIME)
            packed = each.path.rpartition(".")[2].lower() in PACKED
            entry.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
            entry.file_size = each.size  # decides whether the entry needs 64-bit sizes
            with each.file.open("rb") as content, archive.open(entry, "w") as target:
                while piece := content.read(PIECE):
                    target.write(piece)
                    if len(sink) >= PIECE:
                        yield sink.take()
            on_file()
    yield sink.take()


class _Sink(io.RawIOBase):
    """A file that cannot seek; what was written is taken from it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def writable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """False, so that sizes and checksums stand behind the data of each entry."""
        return False

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Keep bytes until they are taken."""
        self._parts.append(bytes(data))
        self._size += len(data)
        return len(data)

    def take(self) -> bytes:
        """What was written since the last call."""
        parts, self._parts, self._size = self._parts, [], 0
        return b"".join(parts)
