"""
Records downloads: counted for each package, and logged for each client. Counts how caches of proxies are used.

=====================================  =========  ======
what a client gets                     counted    logged
=====================================  =========  ======
the whole of a file, 200               yes        yes
a range that begins at the first byte  no         yes
another range, HEAD, 304, an error     no         no
a manifest, by tag or digest           a pull     yes
a manifest that an index lists         no         yes
a blob of an image                     no         no
=====================================  =========  ======

A download is recorded when its response begins: a client that goes away before the end may have the file. One that is
sent while it arrives from an upstream is recorded once all of it has come.
"""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Final, Protocol

from attrs import frozen
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.fair_semaphore import FairSemaphore
from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog, NotNow, Transaction
from pkgrepo.model import Identity
from pkgrepo.storage.catalog.download_log import find_names, log_downloads
from pkgrepo.storage.catalog.usage_counts import (
    DAY_MS,
    CacheCounts,
    Download,
    Names,
    Place,
    add_cache_counts,
    record_downloads,
)

from .clock import Clock

log = Logger()
FLUSH_S = 10.0  # seconds between two writes; a crash loses the downloads of that time
FLUSH_ROWS = 1000  # written by one transaction, in some 30 ms
MAX_PENDING = 50_000  # rows, some 40 MB: those of minutes in which the catalog cannot be written
# Rows with an address that are logged on a day by one process; clients can come from any number of addresses. Further
# ones are logged without it.
MAX_ADDRESSED = 100_000
MAX_NAMED = 100_000  # items, some 15 MB
MAX_PREFIXES = 10_000  # addresses whose prefix is in memory
PREFIX: Final = {4: 24, 6: 48}  # bits by the version of IP: a network of some people, not one of them

_Client = tuple[int | None, int | None, str, str]  # user, token, pipeline, and the prefix of the address
_Key = tuple[str, int, str, int, bool, bool, _Client]
_Named = tuple[str, int, str]  # kind, item and reference, as the log tells items apart
NO_USE: Final = CacheCounts()
_NOBODY: Final[_Client] = (None, None, "", "")


class Item(Protocol):
    """What is recorded when it was sent completely, usually a file."""

    @property
    def id(self) -> int:
        """The catalog key."""

    @property
    def repository_id(self) -> int:
        """The catalog key of the repository."""

    @property
    def package_id(self) -> int | None:
        """The catalog key of the package, if it has one."""

    @property
    def path(self) -> str:
        """The path in the repository."""


@frozen
class ImagePull:
    """
    The manifest of an image. A request for it counts as a pull, whatever layers the client already has.

    ``reference`` is the tag or digest that was asked for. A ``part`` is listed by an index, whose pull counts.
    """

    id: int
    repository_id: int
    package_id: int
    path: str
    reference: str = ""
    part: bool = False


@frozen
class CachedBlob:
    """A blob of an image in a proxy repository: a hit of its cache, and no download, since images are pulled whole."""

    repository_id: int
    package_id: int
    path: str
    size: int
    id: int = 0


class DownloadRecorder(PeriodicTask):
    """
    Collects downloads in memory, one row for each item, client and day, and writes them in batches.

    They are also written to the log, whose rows are kept for ``log_days``, unless these are 0; with ``addressed``
    together with the prefix of the client's address.
    """

    def __init__(
        self, *, catalog: ICatalog, clock: Clock, reactor: IReactorTime, log_days: int = 90, addressed: bool = False
    ) -> None:
        failed = "downloads were not recorded"
        super().__init__(self.flush, reactor, every_s=FLUSH_S, what="downloads", failed=failed, last=self.flush)
        self._catalog = catalog
        self._clock = clock
        self.log_days = log_days
        self._logged = log_days > 0
        self._addressed = self._logged and addressed
        self._pending: dict[_Key, Download] = {}
        self._dropped = 0
        self._seen: set[int] = set()  # the hashes of the keys of this day that have an address
        self._seen_day = 0
        self._prefixes: dict[str, str] = {}
        # of what waits to be written; None: the log has them, or nobody has
        self._names: dict[_Named, Names | None] = {}
        self._looking: set[Deferred[None]] = set()  # questions for names
        self._writing = FairSemaphore(1, reactor)

    def record(
        self, item: Item, identity: Identity, address: str, *, whole: bool = True, fetched: bool = False
    ) -> None:
        """
        Record that an item was sent to an identity at an address.

        What is not ``whole`` is only logged. What was ``fetched`` from an upstream at the same time is no hit of the
        cache. While ``MAX_PENDING`` rows are waiting to be written, what needs a further one is dropped.
        """
        now_ms = self._clock.now_ms()
        kind, reference, counted = _described(item, whole)
        client = self._client(identity, address) if self._logged and kind != "blob" else _NOBODY
        key = (kind, item.id, reference, now_ms // DAY_MS, fetched, counted, client)
        found = self._pending.get(key)
        if found is None and client[3] and self._has_enough(key):
            client = (*client[:3], "")
            key = (*key[:6], client)
            found = self._pending.get(key)
        if found is not None:
            found.count += 1
            found.last_ms = max(found.last_ms, now_ms)
        elif len(self._pending) < MAX_PENDING:
            self._pending[key] = self._with_names(_download(item, key, now_ms))
        else:
            self._dropped += 1

    def _with_names(self, each: Download) -> Download:
        """Note what is fetched is called now, before it can be removed; at once where the catalog answers at once."""
        key = each.kind, each.item_id, each.reference
        if not self._logged or each.kind == "blob":
            return each
        if key in self._names:
            each.names = self._names[key]
            return each
        with suppress(StorageFailed):  # they are looked for when it is written
            found = self._catalog.peek(find_names, each.kind, each.item_id)
            if not isinstance(found, NotNow):
                each.names = self._names[key] = found
                return each
            looking = Deferred.fromCoroutine(self._look_names(each, key))
            self._looking.add(looking)
            looking.addBoth(lambda _: self._looking.discard(looking))
        return each

    async def _look_names(self, each: Download, key: _Named) -> None:
        with suppress(StorageFailed):
            each.names = await self._catalog.look(find_names, each.kind, each.item_id)
            self._names.setdefault(key, each.names)

    async def flush(self) -> None:
        """
        Write the collected downloads, and wait for a write that already runs.

        While the catalog cannot be written, they are kept for the next flush. With any other failure the batch is lost.
        """
        async with self._writing.hold():
            if self._dropped:
                log.warn("{count} downloads were not recorded: too many waited to be written", count=self._dropped)
                self._dropped = 0
            await DeferredList(list(self._looking))
            pending, self._pending = self._pending, {}
            while pending:
                keys = [key for key, _ in zip(pending, range(FLUSH_ROWS), strict=False)]
                batch = [pending.pop(key) for key in keys]
                try:
                    await self._catalog.write(_write, batch, logged=self._logged)
                except (StorageFull, StorageFailed):  # which the catalog has logged
                    self._put_back({**dict(zip(keys, batch, strict=True)), **pending})
                    return
                except BaseException:
                    self._put_back(pending)
                    raise
                if len(self._names) > MAX_NAMED:
                    self._names.clear()
                self._names.update(dict.fromkeys((each.kind, each.item_id, each.reference) for each in batch))

    def _client(self, identity: Identity, address: str) -> _Client:
        prefix = self._prefix(address) if self._addressed else ""
        if identity.pipeline is not None:
            return identity.user_id, None, identity.pipeline.name, prefix
        return identity.user_id, identity.token_id, "", prefix

    def _prefix(self, address: str) -> str:
        found = self._prefixes.get(address)
        if found is None:
            if len(self._prefixes) >= MAX_PREFIXES:
                self._prefixes.clear()
            found = self._prefixes[address] = prefix_of(address)
        return found

    def _has_enough(self, key: _Key) -> bool:
        """Whether a row with an address is one too many on its day."""
        day, place = key[3], hash(key)
        if day != self._seen_day:
            self._seen, self._seen_day = set(), day
        if place in self._seen:
            return False
        if len(self._seen) >= MAX_ADDRESSED or len(self._pending) >= MAX_PENDING:
            return True
        self._seen.add(place)
        return False

    def _put_back(self, pending: dict[_Key, Download]) -> None:
        """Keep what was not written, together with what has come meanwhile."""
        for key, each in self._pending.items():
            earlier = pending.get(key)
            if earlier is not None:
                earlier.count += each.count
                earlier.last_ms = max(earlier.last_ms, each.last_ms)
            elif len(pending) < MAX_PENDING:
                pending[key] = each
            else:
                self._dropped += each.count
        self._pending = pending


def prefix_of(address: str) -> str:
    """The network of an IP address, such as 203.0.113.0/24; empty for what is none."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    mapped = getattr(found, "ipv4_mapped", None)
    found = found if mapped is None else mapped
    return str(ip_network((found, PREFIX[found.version]), strict=False))


def _write(tx: Transaction, batch: list[Download], *, logged: bool) -> None:
    record_downloads(tx, batch)
    if logged:
        log_downloads(tx, [each for each in batch if each.kind != "blob"])


def _described(item: Item, whole: bool) -> tuple[str, str, bool]:
    """The kind of an item, what tells it from others with its id, and whether its download is counted."""
    if isinstance(item, ImagePull):
        return "manifest", item.reference, whole and not item.part
    if isinstance(item, CachedBlob):
        return "blob", f"{item.repository_id}/{item.path}", True
    return "file", "", whole


def _download(item: Item, key: _Key, now_ms: int) -> Download:
    kind, _, reference, _, fetched, counted, (user_id, token_id, pipeline, address) = key
    return Download(
        kind=kind,  # type: ignore[arg-type]
        item_id=item.id,
        repository_id=item.repository_id,
        package_id=item.package_id,
        path=item.path,
        user_id=user_id,
        token_id=token_id,
        at_ms=now_ms,
        last_ms=now_ms,
        size=item.size if isinstance(item, CachedBlob) else None,
        fetched=fetched,
        counted=counted,
        reference="" if kind == "blob" else reference,
        pipeline=pipeline,
        address=address,
    )


class CacheCounters(PeriodicTask):
    """
    Collects counts in memory and adds them to the catalog at times.

    Kept files that are sent are downloads, which are counted when these are written: see L{record_downloads}.
    """

    def __init__(self, *, catalog: ICatalog, clock: Clock, reactor: IReactorTime) -> None:
        failed = "the use of caches was not recorded"
        super().__init__(self.flush, reactor, every_s=FLUSH_S, what="use of caches", failed=failed, last=self.flush)
        self._catalog = catalog
        self._clock = clock
        self._pending: dict[Place, CacheCounts] = {}

    def add(self, repository_id: int, counts: CacheCounts) -> None:
        """Add to the counts of a repository."""
        place = repository_id, self._clock.now_ms() // DAY_MS
        self._pending[place] = self._pending.get(place, NO_USE) + counts

    def add_traffic(self, repository_id: int, size: int, seconds: float) -> None:
        """Add what an upstream of a repository sent: bytes, and the time that it took."""
        self.add(repository_id, CacheCounts(fetched_bytes=size, upstream_ms=round(seconds * 1000)))

    async def flush(self) -> None:
        """Write what was collected; it is kept for the next time while the catalog cannot be written."""
        pending, self._pending = self._pending, {}
        if not pending:
            return
        try:
            await self._catalog.write(add_cache_counts, pending)
        except (StorageFull, StorageFailed):  # which the catalog has logged
            for place, counts in pending.items():
                self._pending[place] = self._pending.get(place, NO_USE) + counts
