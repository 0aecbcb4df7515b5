"""
Keeps up what searches and lists know of packages: their descriptions, and what they need.

A publish does not write these: the events of the catalog are followed a moment later, many at a time. Who asks for them
has to have a L{Described}, for which the events are followed to the last one first, so that no answer is behind.
"""

from __future__ import annotations

from typing import Final

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import Service, spawn
from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog
from pkgrepo.storage.catalog.descriptions import describe_packages, described_so_far, find_described
from pkgrepo.storage.catalog.packages.facts import Described

log = Logger()

DELAY_S: Final = 0.1  # seconds from a change until events are followed; publishes of that time share a transaction


class Descriptions(Service):
    """Follows events soon after L{notify} while it runs as a service, and at once for L{current} at any time."""

    def __init__(self, catalog: ICatalog, reactor: IReactorTime) -> None:
        self._catalog = catalog
        self._reactor = reactor
        self._waiting: IDelayedCall | None = None

    def startService(self) -> None:
        """Follow what happened since the last run."""
        super().startService()
        self.notify()

    def stopService(self) -> None:
        """Follow nothing more; the next start goes on."""
        super().stopService()
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.cancel()

    def notify(self, _: object = None) -> None:
        """Note that something has changed."""
        if self.running and self._waiting is None:
            self._waiting = self._reactor.callLater(DELAY_S, self._begin)

    async def current(self) -> Described:
        """
        Follow the events to the last one, if that was not done. Returns the value that queries demand.

        While the disk is full nothing can be written, and what was known before is returned.

        :raises StorageFailed: the catalog cannot be read or written
        """
        found: Described | None = await self._catalog.look(find_described)
        try:
            while found is None:
                found = await self._catalog.write(describe_packages)
        except StorageFull:
            return await self._catalog.look(described_so_far)
        return found

    def _begin(self) -> None:
        self._waiting = None
        spawn(self._follow(), "following the events of packages")

    async def _follow(self) -> None:
        try:
            await self.current()
        except StorageFailed as error:
            log.warn("what packages say of themselves is behind: {error}", error=str(error))
