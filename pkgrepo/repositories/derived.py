"""Documents over a whole repository: built when somebody reads them after something changed, and kept ready."""

from __future__ import annotations

import time
from collections.abc import Callable

from attrs import define
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.flight import SingleFlight
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Document, Repository
from pkgrepo.storage.catalog import repositories

PATIENCE_S = 2.0  # how long a reader waits for a fresh build when an older one could be served
REST_FACTOR = 5  # a build that took t seconds of a processor is not repeated before 5 t have passed


@define
class _Built:
    document: Document
    rest_until: float


class DerivedDocuments:
    """
    Keeps the latest build of each document, by repository and kind.

    A build runs on a reader thread, once however many wait for it. Readers see their own writes, except that a
    large document is not rebuilt more often than its cost allows, and that nobody waits longer than L{PATIENCE_S}
    when an older build exists.
    """

    def __init__(self, catalog: ICatalog, clock: IReactorTime) -> None:
        self._catalog = catalog
        self._clock = clock
        self._built: dict[tuple[int, str], _Built] = {}
        self._flight: SingleFlight[tuple[int, str], Document] = SingleFlight()

    def ready(self, repository: Repository, kind: str) -> Document | None:
        """The document when it is up to date (or resting after an expensive build), without waiting."""
        built = self._built.get((repository.id, kind))
        if built is None:
            return None
        if built.document.serial == self._serial(repository) or self._clock.seconds() < built.rest_until:
            return built.document
        return None

    async def get(self, repository: Repository, kind: str, build: Callable[[Reader, int, int], Document]) -> Document:
        """
        The document, built by ``build(reader, repository_id, names_serial)`` if need be.

        ``build`` runs outside the reactor thread, in one consistent view of the catalog.
        """
        ready = self.ready(repository, kind)
        if ready is not None:
            return ready
        key = (repository.id, kind)
        older = self._built.get(key)
        running = Deferred.fromCoroutine(self._fresh(key, repository, build))
        if older is None:
            return await running
        try:
            return await running.addTimeout(PATIENCE_S, self._clock)
        except DeferredTimeout:
            return older.document

    async def _fresh(
        self, key: tuple[int, str], repository: Repository, build: Callable[[Reader, int, int], Document]
    ) -> Document:
        """A build that has seen what is committed now: one that was under way before may have looked too early."""
        serial = self._serial(repository)
        document = await self._flight.run(key, lambda: self._build(key, repository.id, build))
        if document.serial < serial and self._clock.seconds() >= self._built[key].rest_until:
            document = await self._flight.run(key, lambda: self._build(key, repository.id, build))
        return document

    async def _build(
        self, key: tuple[int, str], repository_id: int, build: Callable[[Reader, int, int], Document]
    ) -> Document:
        document, cost = await self._catalog.scan(_timed, build, repository_id)
        self._built[key] = _Built(document, self._clock.seconds() + REST_FACTOR * cost if cost > 0.01 else 0.0)
        return document

    def _serial(self, repository: Repository) -> int:
        return self._catalog.look(repositories.names_serial, repository.id)


def _timed(reader: Reader, build: Callable[[Reader, int, int], Document], repository_id: int) -> tuple[Document, float]:
    # What the build itself takes: on a busy machine the rest would grow with the time that others take.
    started = time.thread_time()
    document = build(reader, repository_id, repositories.names_serial(reader, repository_id))
    return document, time.thread_time() - started
