"""
Keeps up what searches and lists know of packages: their descriptions, and what they need.

A publish does not write these: the events of the catalog are followed a moment later, many at a time. Who asks for them
has to have a L{Described}, for which the events are followed first that there were when it was asked for. After
``WAIT_S``, or where nothing can be written, it is what is known so far, and says so.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import Service, spawn
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.concurrency.time_limits import TimedOut, within
from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog
from pkgrepo.storage.catalog.descriptions import describe_packages, find_described
from pkgrepo.storage.catalog.packages.facts import Described

log = Logger()

DELAY_S: Final = 0.1  # seconds from a change until events are followed; publishes of that time share a transaction
WAIT_S: Final = 1.0  # seconds that a search waits for events; 10,000 are followed in that time


class Descriptions(Service):
    """Follows events soon after L{notify} while it runs as a service, and at once for L{current} at any time."""

    def __init__(self, catalog: ICatalog, reactor: IReactorTime) -> None:
        self._catalog = catalog
        self._reactor = reactor
        self._waiting: IDelayedCall | None = None
        self._follows = False
        self._flight: SingleFlight[None, None] = SingleFlight()  # one transaction of this process waits for the writer

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
        Follow the events that there are, if that was not done. Returns the value that queries demand.

        It is behind if that takes too long, or cannot be written.

        :raises StorageFailed: the catalog cannot be read
        """
        found: Described = await self._catalog.look(find_described)
        if not found.is_behind:
            return found
        wanted, until = found.last, self._reactor.seconds() + WAIT_S
        while found.is_behind and (left := until - self._reactor.seconds()) > 0:
            try:
                await within(left, Deferred.fromCoroutine(self._step()), self._reactor, "there are too many events")
            except TimedOut:
                break
            except (StorageFailed, StorageFull) as error:
                log.debug("a search is behind: {error}", error=str(error))
                break
            found = await self._described(wanted)
        return found

    async def _described(self, wanted: int) -> Described:
        """How far events were followed, of those up to ``wanted`` that are still there."""
        found: Described = await self._catalog.look(find_described)
        return evolve(found, last=min(found.last, wanted))

    async def _step(self) -> None:
        """Follow the next events, together with others in this process that want to."""
        await self._flight.run(None, lambda: self._catalog.write(describe_packages))

    def _begin(self) -> None:
        self._waiting = None
        if self._follows:  # events of many seconds: it may have looked for the last time
            self.notify()
        else:
            self._follows = True
            spawn(self._follow(), "following the events of packages")

    async def _follow(self) -> None:
        try:
            while self.running and (await self._catalog.look(find_described)).is_behind:
                await self._step()
        except (StorageFailed, StorageFull) as error:
            log.warn("what packages say of themselves is behind: {error}", error=str(error))
        finally:
            self._follows = False
