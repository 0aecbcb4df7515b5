"""
The routes that look into archives: what is in them, and the text of a small file.

Archives are read one at a time, since a large one keeps a thread busy for a second; lists are kept in memory by the
digest and the name of the archive.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar, cast

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from pkgrepo.archives.listing import list_archive, read_text_entry
from pkgrepo.concurrency.fair_semaphore import FairSemaphore, QueueFull
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import NotFound
from pkgrepo.http.answers import NO_STORE, Answer, Refusal
from pkgrepo.http.response_cache import ResponseCache
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.management.packages.schema import ArchiveContents, ArchiveEntryRecord
from pkgrepo.model import File
from pkgrepo.storage.catalog.packages.files import find_file

MOST_WAITING: Final = 32  # requests that wait for their turn
CACHE_SIZE: Final = 8 * 1024 * 1024  # bytes
ENTRY_SIZE: Final = 300  # bytes of an entry in memory, besides its name

T = TypeVar("T")


@frozen
class _Listing:
    """The records of an archive's entries, which are made in the thread that reads it: there may be thousands."""

    entries: list[ArchiveEntryRecord]
    complete: bool


class Contents(Handlers):
    """Lists what is inside an archive, and shows small files of it."""

    table = Table("packages")

    def __init__(self, services: ManagementServices) -> None:
        super().__init__(services)
        self._turns = FairSemaphore(1, cast("IReactorTime", services.shared.pools.reactor), most_waiting=MOST_WAITING)
        self._kept: ResponseCache[_Listing] = ResponseCache(CACHE_SIZE)
        self._flight: SingleFlight[tuple[str, str], _Listing] = SingleFlight()

    @table.route(
        "GET",
        "/repository/<repository>/contents/<path:path>",
        access=CONTENT_READERS,
        summary="List what is inside an archive",
        answer=ArchiveContents,
    )
    async def entries(self, call: Call, path: str) -> ArchiveContents:
        """
        The path is that of a file in the repository, as in its tree: wheels, jars, tarballs, gems, conda packages...

        complete is false if the archive has more entries than are returned, or is too large to be read to its end. It
        is read in a second at most, and nothing is unpacked to the disk.
        """
        file = await self._find(call, path)
        key = file.sha256, _name(file)
        listing = self._kept.get(key)
        if listing is None:
            listing = await self._flight.run(key, lambda: self._list(call, file))
        return ArchiveContents(path=file.path, size=file.size, complete=listing.complete, entries=listing.entries)

    @table.route(
        "GET",
        "/repository/<repository>/text/<path:path>",
        access=CONTENT_READERS,
        summary="Show a small text file in an archive",
        media_type="text/plain",
        query=[Parameter("entry", "The name of the file, as the list of the archive has it.")],
    )
    async def text(self, call: Call, path: str) -> Answer:
        """Files of up to 64 KiB that are UTF-8 are sent, as text/plain in a sandbox; others are answered with 422."""
        file, entry = await self._find(call, path), call.query("entry")
        found = await self._read(call, file, partial(read_text_entry, filename=_name(file), name=entry))
        if found is None:
            raise NotFound("file in the archive", entry)
        return Answer(
            body=found.encode(),
            content_type=b"text/plain; charset=utf-8",
            headers=(
                *NO_STORE,
                (b"X-Content-Type-Options", b"nosniff"),
                (b"Content-Security-Policy", b"sandbox; default-src 'none'"),
            ),
        )

    async def _find(self, call: Call, path: str) -> File:
        file: File | None = await self._catalog.look(find_file, call.repository.id, path)
        if file is None:
            raise NotFound("file", path)
        return file

    async def _list(self, call: Call, file: File) -> _Listing:
        listing = await self._read(call, file, partial(_listing, filename=_name(file)))
        size = sum(ENTRY_SIZE + len(each.name) + len(each.link) for each in listing.entries)
        self._kept.put((file.sha256, _name(file)), listing, size)
        return listing

    async def _read(self, call: Call, file: File, look: Callable[[int | bytes], T]) -> T:
        shared = self._services.shared
        try:
            async with self._turns.hold((call.request.client_address,)):
                return await shared.files.inspect(shared.pools.cpu, file.storage_id, file, look)
        except QueueFull:
            raise Refusal(503, "too many archives are looked into at the same time; try again", "busy") from None


def _listing(content: int | bytes, filename: str) -> _Listing:
    found = list_archive(content, filename)
    return _Listing([ArchiveEntryRecord.from_attributes(each) for each in found.entries], found.complete)


def _name(file: File) -> str:
    return file.path.rpartition("/")[2]
