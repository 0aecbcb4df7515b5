"""The requests of ``npm audit``, answered from an export of known vulnerabilities on this machine's disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from twisted.logger import Logger

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.limits import AUDIT_SIZE
from pkgrepo.gateway.bodies import read_body
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, Refusal, json_answer
from pkgrepo.http.request import Request
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.pools import Pools

from . import matching as audit
from .export import EMPTY, AdvisoryBook, read_export

LOOK_EVERY_MS: Final = 60_000
NO_STORE: Final = ((b"Cache-Control", b"no-store"),)

log = Logger()


class AdvisoryShelf:
    """
    The advisories of this process, read when first needed, and again when the export has changed.

    ``path`` is a folder or a zip; None when there is no export. An export that cannot be read is logged, and what was
    known before stays.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._book = EMPTY
        self._changed_ns = -1
        self._look_at_ms = 0
        self._flight: SingleFlight[str, None] = SingleFlight()

    async def book(self, pools: Pools, clock: Clock) -> AdvisoryBook:
        """The advisories as of a minute ago at most."""
        path = self._path
        if path is not None and clock.now_ms() >= self._look_at_ms:
            await self._flight.run("look", lambda: self._look(path, pools))
            self._look_at_ms = clock.now_ms() + LOOK_EVERY_MS
        return self._book

    async def _look(self, path: Path, pools: Pools) -> None:
        try:
            changed_ns = (await pools.disk(path.stat)).st_mtime_ns
            if changed_ns == self._changed_ns:
                return
            self._book = await pools.cpu(read_export, path)
        except (OSError, Invalid) as error:
            log.warn("the advisories in {path} cannot be read: {error}", path=str(path), error=str(error))
            return
        self._changed_ns = changed_ns
        log.info("advisories on {count} packages were read", count=len(self._book.by_package))


class Auditing:
    """Answers audits; callers have been let in already."""

    def __init__(self, services: Services, shelf: AdvisoryShelf) -> None:
        self._services = services
        self._shelf = shelf

    async def bulk(self, request: Request) -> Answer:
        """The advisories on packages and versions."""
        return await self._work(request, _bulk)

    async def quick(self, request: Request) -> Answer:
        """The advisories on a tree of packages."""
        return await self._work(request, _quick)

    async def _work(self, request: Request, work: Callable[[bytes, AdvisoryBook], Answer]) -> Answer:
        body = await read_body(request, AUDIT_SIZE)
        book = await self._shelf.book(self._services.pools, self._services.clock)
        try:
            return await self._services.pools.cpu(work, body, book)
        except RecursionError:
            raise Refusal(400, "the tree is nested too deeply") from None


def _bulk(body: bytes, book: AdvisoryBook) -> Answer:
    return json_answer(audit.bulk_answer(audit.read_bulk(body), book), headers=NO_STORE)


def _quick(body: bytes, book: AdvisoryBook) -> Answer:
    return json_answer(audit.quick_answer(audit.read_tree(body), book), headers=NO_STORE)
