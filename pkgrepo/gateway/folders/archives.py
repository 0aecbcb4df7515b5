"""
All files below a folder as one archive, which is made while it is sent.

Its length is not known before, so the connection ends with it. Both kinds end with sums, by which clients find out that
one is cut off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from gzip import GzipFile
from tarfile import BLOCKSIZE, NUL, PAX_FORMAT, TarInfo
from typing import IO, Final, Protocol, cast
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from twisted.internet.interfaces import IConsumer

from pkgrepo.concurrency.pools import Pool
from pkgrepo.gateway.folders.pages import busy
from pkgrepo.gateway.responses.content import SAFE, Files
from pkgrepo.gateway.responses.long_bodies import deliver_pieces
from pkgrepo.http.responses import NO_STORE, Content, Response
from pkgrepo.model import File

LEVEL: Final = 1  # of compression: most files are compressed already
LARGEST: Final = 1 << 62
FIRST_YEAR: Final = 1980  # of a zip file
MOST_ZIPPED: Final = 50_000  # files of a zip file, whose list is in memory until its end
MOST: Final = 8  # archives that one process sends at the same time
MOST_OF_CLIENT: Final = 2  # of these to one address

Walk = Callable[[], AsyncIterator[tuple[str, File]]]  # the files, with their paths in the archive


class _Sink:
    """What an archive is written to, which cannot be sought in."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing waits here."""

    def take(self) -> bytes:
        """What was written since the last time."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


class _Writer(Protocol):
    """Writes one kind of archive."""

    def begin(self, path: str, file: File) -> None: ...

    def add(self, chunk: bytes) -> None: ...

    def end(self) -> None: ...

    def close(self) -> None: ...


class _Tar:
    def __init__(self, sink: IO[bytes]) -> None:
        self._out = GzipFile(mode="wb", fileobj=sink, compresslevel=LEVEL, mtime=0)
        self._padding = 0

    def begin(self, path: str, file: File) -> None:
        info = TarInfo(path)
        info.size, info.mtime, self._padding = file.size, int(file.created_at.timestamp()), -file.size % BLOCKSIZE
        self._out.write(info.tobuf(PAX_FORMAT))

    def add(self, chunk: bytes) -> None:
        self._out.write(chunk)

    def end(self) -> None:
        self._out.write(NUL * self._padding)

    def close(self) -> None:
        self._out.write(NUL * 2 * BLOCKSIZE)
        self._out.close()


class _Zip:
    def __init__(self, sink: IO[bytes]) -> None:
        self._out = ZipFile(sink, "w", ZIP_DEFLATED, compresslevel=LEVEL)
        self._file: IO[bytes] | None = None

    def begin(self, path: str, file: File) -> None:
        at = file.created_at
        info = ZipInfo(path, (max(at.year, FIRST_YEAR), at.month, at.day, at.hour, at.minute, at.second))
        info.compress_type, info.file_size = ZIP_DEFLATED, file.size
        self._file = self._out.open(info, "w", force_zip64=file.size >= 1 << 31)

    def add(self, chunk: bytes) -> None:
        assert self._file is not None, "it was begun"
        self._file.write(chunk)

    def end(self) -> None:
        assert self._file is not None, "it was begun"
        self._file.close()

    def close(self) -> None:
        self._out.close()


_KINDS: Final[Mapping[str, tuple[Callable[[IO[bytes]], _Writer], bytes]]] = {
    "tar.gz": (_Tar, b"application/gzip"),
    "zip": (_Zip, b"application/zip"),
}
KINDS: Final = tuple(_KINDS)


def answer_archive(files: Files, cpu: Pool, kind: str, walk: Walk, sent: Counter[str], client: str) -> Response:
    """
    The archive of a kind, one of ``KINDS``, with the files that ``walk`` yields. It is for nobody's cache.

    ``sent`` counts those that are being sent, by the address of the ``client``; one too many is refused (503).
    """
    make, media_type = _KINDS[kind]

    async def deliver(consumer: IConsumer, start: int, end: int) -> None:
        if sent[client] >= MOST_OF_CLIENT or sent.total() >= MOST:
            raise busy("archives are sent")
        sent[client] += 1
        try:
            await deliver_pieces(partial(_pieces, files, cpu, make, walk), consumer, start, end)
        finally:
            sent[client] -= 1
            if not sent[client]:
                del sent[client]

    body = Content(LARGEST, deliver=deliver, endless=True)
    return Response(body=body, content_type=media_type, headers=(*NO_STORE, *SAFE))


async def _pieces(files: Files, cpu: Pool, make: Callable[[IO[bytes]], _Writer], walk: Walk) -> AsyncIterator[bytes]:
    """The bytes of an archive; one piece of a file is in memory."""
    sink = _Sink()
    writer = make(cast("IO[bytes]", sink))
    async for path, file in walk():
        await cpu(writer.begin, path, file)
        async for chunk in files.chunks(file.storage_id, file.locator, file.size):
            await cpu(writer.add, chunk)
            yield sink.take()
        await cpu(writer.end)
    await cpu(writer.close)
    yield sink.take()
