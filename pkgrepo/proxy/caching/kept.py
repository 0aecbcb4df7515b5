"""
The responses of upstreams that this server keeps: in memory until they are stored, and in the catalog.

==============  ===================================================================  ==================================
a response       is in                                                                until
==============  ===================================================================  ==================================
new             memory, with a descriptor of its staged parts                        it is stored; if that fails, it is
                                                                                     forgotten, and asked for again
stored          a row, and its parts in a blob                                       it is replaced or purged
confirmed       memory, with its new times; the row gets them in the background      the row has them
an absence      a row if it takes the place of a response, and L{NegativeCache}      it is replaced or purged
==============  ===================================================================  ==================================
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.batches import BatchDelay, Batches
from pkgrepo.concurrency.lru import Lru
from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import BlobMissing, PkgrepoError
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Repository
from pkgrepo.proxy.caching.questions import DocumentRequest, Held, Received
from pkgrepo.proxy.caching.states import NegativeCache
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.stores import Stores
from pkgrepo.storage.blobs.durability import memory_file, reading
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

BATCH: Final = 500  # rows removed by one transaction
STORED_TOGETHER: Final = 64  # answers; one transaction should take some milliseconds
AT_ONCE: Final = 64 * 1024  # bytes of parts, uncompressed, that are read at once: 100 us, as a thread costs
MOST_HELD: Final = 10_000  # answers in memory that are not stored as they are
T = TypeVar("T")
log = Logger()

LARGEST: Final = 64 * 1024  # bytes of a parts file; nearly all packages have less than 20 KiB
MEMORY: Final = 32 * 1024 * 1024  # bytes; some 2,000 packages


class KeptResponses:
    """
    Finds, reads and stores answers, by repository and key. With a ``delay`` more are stored together, later.

    ``on_forget`` is called with what was removed, for other processes. ``absences`` are forgotten with it.
    """

    def __init__(
        self,
        *,
        catalog: ICatalog,
        registry: Registry,
        stores: Stores,
        content: ContentWriter,
        pools: Pools,
        absences: NegativeCache,
        delay: BatchDelay | None = None,
        on_forget: Callable[[Repository, Sequence[str]], None] = lambda _repository, _keys: None,
    ) -> None:
        self._on_forget = on_forget
        self._absences = absences
        self._catalog = catalog
        self._registry = registry
        self._stores = stores
        self._content = content
        self._pools = pools
        self._held: Lru[tuple[int, str], Held] = Lru(MOST_HELD)
        self._under_way: dict[tuple[int, str], Deferred[None]] = {}  # the last that is being stored
        self._recent = RecentParts()
        self._storing: Batches[int, tuple[Repository, UpstreamDocument, Received]] = Batches(
            self._store_together, most=STORED_TOGETHER, delay=delay
        )

    async def find(self, repository: Repository, key: str) -> Held | None:
        """The answer to a question as it is kept, fresh or not; None if there is none."""
        held = self._held.get((repository.id, key))
        document: UpstreamDocument | None = await self._catalog.look(
            upstream_documents.find_document, repository.id, key
        )
        if held is None or (document is not None and document.checked_ms > held.document.checked_ms):
            if document is None:
                return None
            held = Held(document)
        return held

    async def find_grown(self, repository: Repository, request: DocumentRequest) -> Held | None:
        """The same for a question; with what was appended to the response, if it is about a growing document."""
        base = await self.find(repository, request.key)
        if base is None or not base.document.found or request.growing is None:
            return base
        tail = await self.find(repository, request.tail_key)
        if tail is None or tail.document.fetched_ms <= base.document.fetched_ms:
            return base
        # A base that was fetched meanwhile may have other bytes before those that were appended.
        return evolve(tail, base=base) if tail.document.meta.get("base") == base.document.source else base

    async def read(self, repository: Repository, held: Held, work: Callable[..., T]) -> T:
        """
        The result of ``work``, which is called with the parts of a response: on a thread unless they are few.

        Those of its base, if it has one, are the first argument.

        :raises BlobMissing: they are lost; :raises PartsDamaged: they are damaged; :raises StorageFailed: they cannot
            be read
        """
        with reading(self._registry.storage(repository.storage_id).name):
            return await self._read(repository, held, work)

    async def _read(self, repository: Repository, held: Held, work: Callable[..., T]) -> T:
        if held.base is not None:
            first, second = await self._open_both(repository, held.base, held)
            return await self._pools.cpu(_read_both, first, second, work)
        sha256 = held.document.sha256
        # A row without a locator names bytes that were found to be damaged.
        recent = None if held.stored and not held.document.locator else self._recent.find(sha256)
        if recent is not None:
            return work(recent) if recent.length <= AT_ONCE else await self._pools.cpu(work, recent)
        result, small = await self._pools.cpu(_read_and_close, await self._open(repository, held), work)
        if small is not None:
            self._recent.add(sha256, small)
        return result

    async def descriptor(self, repository: Repository, held: Held) -> int:
        """A new descriptor of the parts of a response. :raises BlobMissing: they are not there"""
        content = await self._open(repository, held)
        return memory_file(content) if isinstance(content, bytes) else content

    async def _open_both(self, repository: Repository, base: Held, tail: Held) -> tuple[PartsFile, PartsFile]:
        first = PartsFile(await self._open(repository, base))
        try:
            return first, PartsFile(await self._open(repository, tail))
        except BaseException:
            first.close()
            raise

    async def _open(self, repository: Repository, held: Held) -> int | bytes:
        content = None if held.unstored is None else held.unstored.open()
        if content is not None:
            return content
        document: UpstreamDocument | None = held.document
        if held.unstored is not None:  # it was stored meanwhile, unless that failed
            document = await self._catalog.look(upstream_documents.find_document, repository.id, held.document.key)
        if document is None or not document.locator or document.fetched_ms < held.document.fetched_ms:
            raise BlobMissing(held.document.key)
        store = await self._stores.of(self._registry.storage(document.storage_id))
        descriptor: int = await store.open(document.locator).as_file()
        return descriptor

    def without_delay(self) -> AbstractContextManager[None]:
        """A block in which answers are stored without waiting for others."""
        return self._storing.without_delay()

    def when_stored(self, repository: Repository, key: str, then: Callable[[], None]) -> None:
        """Call a function when nothing of a response is being stored any more: at once, if nothing is."""
        under_way = self._under_way.get((repository.id, key))
        if under_way is None:
            then()
        else:
            under_way.addCallback(lambda _: then())

    async def stored(self, repository: Repository, key: str) -> None:
        """Wait until nothing of a response is being stored any more, which is soon."""
        with self.without_delay():
            ended: Deferred[None] = Deferred()
            self.when_stored(repository, key, lambda: ended.callback(None))
            await ended

    async def settle(self) -> None:
        """Wait until all responses are stored that were given to clients already, which is soon."""
        with self.without_delay():
            for storing in list(self._under_way.values()):
                ended: Deferred[None] = Deferred()
                storing.addCallback(_passing, ended)
                await ended

    def hold(self, repository: Repository, held: Held) -> Held:
        """Keep a response in memory."""
        self._held.put((repository.id, held.document.key), held)
        return held

    def put(self, repository: Repository, held: Held, received: Received) -> Held:
        """Keep a new response, and store it in the background."""
        if isinstance(received.content, bytes):
            self._recent.add(received.parts.sha256, received.content)
        self._spawn(repository, held, self._store(repository, held, received))
        return held

    async def put_absent(self, repository: Repository, document: UpstreamDocument, before_ms: int) -> None:
        """Store, in the place of a response that was confirmed before a time, that no upstream has it."""
        await self.stored(repository, document.key)
        place = (repository.id, document.key)
        try:
            await self._content.change(upstream_documents.put_absence, repository, document, before_ms)
        except PkgrepoError:
            _log_unstored(Failure(), repository, document.key)
        held = self._held.get(place)
        if held is not None and held.document.checked_ms < before_ms:
            self._held.pop(place)

    def renew(self, repository: Repository, held: Held) -> Held:
        """Keep a response that was confirmed, with its new times."""
        if not held.stored:
            return self.hold(repository, held)  # it is renewed as soon as it is stored
        renewal = self._content.change(upstream_documents.renew_document, repository, held.document)
        self._spawn(repository, held, renewal)
        return held

    async def distrust(self, repository: Repository, held: Held) -> None:
        """Forget a response whose parts are lost or damaged, so that they are stored when they are received again."""
        document = held.document
        self._held.pop((repository.id, document.key))
        self._recent.drop(document.sha256)
        if document.locator:  # else the same bytes would count as stored
            await self._catalog.write(blobs.mark_suspect, document.storage_id, document.sha256, document.locator)

    async def lack(self, repository: Repository, key: str, lacking: Mapping[str, str]) -> None:
        """Note in a response that files which it lists cannot be had: their identities by path."""
        await self.stored(repository, key)
        if await self._content.change(upstream_documents.note_lacking, repository, key, lacking):
            self.read_again(repository, [key])

    async def forget(self, repository: Repository, keys: Sequence[str]) -> None:
        """Remove answers: the next client makes upstreams be asked."""
        await self._content.change(upstream_documents.remove_documents, repository, keys)
        self.forget_here(repository.id, keys)
        self._on_forget(repository, keys)

    def read_again(self, repository: Repository, keys: Sequence[str]) -> None:
        """Have the rows of answers read again, in all processes: they were marked as old."""
        self.forget_here(repository.id, keys)
        self._on_forget(repository, keys)

    def forget_here(self, repository_id: int, keys: Sequence[str]) -> None:
        """Forget answers that were removed, in this process."""
        for key in keys:
            self._held.pop((repository_id, key))
        self._absences.drop(repository_id, keys)

    async def forget_unused(self, repository: Repository, before_ms: int) -> None:
        """Remove the responses not confirmed since a time, about packages of which nothing else is kept."""
        remove = upstream_documents.remove_unused_documents
        while await self._content.change(remove, repository, before_ms, BATCH):
            pass

    async def _store(self, repository: Repository, held: Held, response: Received) -> None:
        async with response.stack:
            await self._storing.add(repository.id, (repository, held.document, response), response.parts.size)

    async def _store_together(self, items: Sequence[tuple[Repository, UpstreamDocument, Received]]) -> None:
        """Store answers of one repository: an install brings hundreds, and they share the wait for the disk."""
        repository, _, last = items[-1]
        for _, _, each in items[:-1]:
            last.staged.take_over(each.staged, each.parts)
        await self._content.change_with_blobs(
            upstream_documents.put_documents,
            repository,
            last.staged,
            [each.parts for _, _, each in items],
            [(document, each.parts) for _, document, each in items],
        )

    def _spawn(self, repository: Repository, held: Held, work: Coroutine[Any, Any, object]) -> None:
        """Keep a response while ``work``, which begins now, stores it; then it is read from its row."""
        key = (repository.id, held.document.key)
        self.hold(repository, held)

        def forget(_: object) -> None:
            if self._under_way.get(key) is storing:
                del self._under_way[key]

        def done(result: object) -> None:
            failed = isinstance(result, Failure)
            if isinstance(result, Failure):
                # Upstreams are asked again: what cannot be stored is not held in memory for longer.
                _log_unstored(result, repository, held.document.key)
                self._recent.drop(held.document.sha256)
            if held.unstored is not None:
                held.unstored.close()
            now = self._held.get(key)
            if now is held or (failed and now is not None and now.unstored is not None and now.is_of(held)):
                self._held.pop(key)
            elif now is not None and not now.stored and now.is_of(held):  # it was confirmed while it was stored
                self.renew(repository, evolve(now, stored=True))

        storing = Deferred.fromCoroutine(work).addBoth(done)
        if not storing.called:
            self._under_way[key] = storing
            storing.addCallback(forget)


def _passing(result: T, ended: Deferred[None]) -> T:
    ended.callback(None)
    return result


def _log_unstored(failure: Failure, repository: Repository, key: str) -> None:
    path = repository.path
    if failure.check(PkgrepoError):  # no room, or the repository was switched off
        log.info("{key} of {repository} was not stored: {error}", key=key, repository=path, error=str(failure.value))
    else:
        log.failure("{key} of {repository} was not stored", failure, key=key, repository=path)


def _read_both(first: PartsFile, second: PartsFile, work: Callable[..., T]) -> T:
    with first, second:
        return work(first, second)


def _read_and_close(content: int | bytes, work: Callable[[PartsFile], T]) -> tuple[T, bytes | None]:
    """The result of ``work``, and the bytes of the parts if they are few."""
    # In the thread: it goes on when the client leaves, and must not read from a descriptor number that was reused.
    with PartsFile(content) as parts:
        return work(parts), parts.read_all(LARGEST)


class RecentParts:
    """Parts files by the sha256 (hex) of their bytes, so that none is ever out of date; at most ``memory`` bytes."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._kept: Lru[str, PartsFile] = Lru(memory)

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, sha256: str) -> PartsFile | None:
        """An open parts file, which the caller does not close; several threads may read it. None if it is not here."""
        return self._kept.get(sha256)

    def add(self, sha256: str, content: bytes) -> None:
        """Keep a parts file, unless it is large. :raises PartsDamaged: the bytes are no parts file"""
        if len(content) <= LARGEST:
            parts = PartsFile(content)
            self._kept.put(sha256, parts, parts.memory)

    def drop(self, sha256: str) -> None:
        """Forget a parts file."""
        self._kept.pop(sha256)
