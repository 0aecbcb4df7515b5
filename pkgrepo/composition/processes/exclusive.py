"""
Services that run in one process at a time, of all that serve the same catalog.

The process that has the lease runs them. When it ends, however it ends, the kernel releases its lock, and another
process takes over within ``TRY_S``. With several nodes, of the processes that have the lease of their node the one runs
them that also has the right to the work of all; see L{pkgrepo.storage.catalog.postgresql.nodes}.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from pkgrepo.concurrency.services import MultiService, Service
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Repository
from pkgrepo.process.workers.peers import Peers, Topic
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.process_lock import Lease

if TYPE_CHECKING:
    from pkgrepo.storage.catalog.postgresql import Nodes

TRY_S: Final = 1.0  # seconds between two attempts to get the lease
WATCH_S: Final = 30.0  # seconds between two looks for commits of which no process has told, since it was killed
WATCH_NODES_S: Final = 2.0  # as above with several nodes, of which one may have vanished
RELAY_S: Final = 0.2  # seconds in which changes are collected before other processes are told of them
CHANGED: Final = Topic("layout", list[int])  # ids of repositories

log = Logger()

Follow = Callable[[Repository | None], None]  # has events followed that may have come; None: of any repository


class ExclusiveServices(Service):
    """
    Runs the services added to ``services`` while this process has the lease of the file ``path``.

    With ``nodes`` it also needs the right to work for all of them; without it the services stop, until it is back.
    """

    def __init__(self, path: Path, reactor: IReactorTime, nodes: Nodes | None = None) -> None:
        self.services = MultiService()
        self._lease = Lease(path)
        self._nodes = nodes
        self._attempt: Deferred[None] | None = None
        self._trying = LoopingCall(self._begin_attempt)
        self._trying.clock = reactor

    def startService(self) -> None:
        """Start the services now, or as soon as the lease can be had."""
        super().startService()
        self._trying.start(TRY_S)

    def stopService(self) -> Deferred[None]:
        """Stop the services if they run here, and then release the lease."""
        super().stopService()
        if self._trying.running:
            self._trying.stop()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        try:
            if self._attempt is not None:
                await self._attempt
            if self.services.running:
                await maybeDeferred(self.services.stopService)
            if self._nodes is not None:
                await self._nodes.release_work()
        finally:
            self._lease.release()

    def _begin_attempt(self) -> Deferred[None]:
        self._attempt = Deferred.fromCoroutine(self._try())
        self._attempt.addErrback(lambda failure: log.failure("work in the background failed", failure=failure))
        return self._attempt

    async def _try(self) -> None:
        if not self._lease.acquire():
            return
        if self._nodes is None:
            self._trying.stop()
        holds = self._nodes is None or await self._nodes.hold_work()
        if not self.running:
            return
        if holds and not self.services.running:
            log.debug("this process does the work in the background")
            self.services.startService()
        elif not holds and self.services.running:
            log.info("this process has lost the right to do the work in the background")
            await maybeDeferred(self.services.stopService)


class CommitWatch(Service):
    """Has those who follow events look, every ``every_s`` seconds, for commits of which they were not told."""

    def __init__(self, catalog: ICatalog, follow: Follow, reactor: IReactorTime, every_s: float = WATCH_S) -> None:
        self._every_s = every_s
        self._catalog = catalog
        self._follow = follow
        self._seen: int | None = None
        self._looking = LoopingCall(self._look)
        self._looking.clock = reactor

    def startService(self) -> None:
        """Begin to look."""
        super().startService()
        self._looking.start(self._every_s, now=False)

    def stopService(self) -> None:
        """Stop looking."""
        super().stopService()
        self._looking.stop()

    def _look(self) -> None:
        generation = self._catalog.generation()
        if generation != self._seen:
            self._seen = generation
            self._follow(None)


class ChangeRelay(Service):
    """Tells those who follow events about changes, in the process in which they run."""

    def __init__(self, follow: Follow, registry: Registry, peers: Peers, reactor: IReactorTime) -> None:
        self._follow = follow
        self._registry = registry
        self._peers = peers
        self._reactor = reactor
        self._changed: set[int] = set()
        self._sending: IDelayedCall | None = None
        CHANGED.subscribe(peers, self._receive)

    def stopService(self) -> None:
        """Send what was collected."""
        super().stopService()
        if self._sending is not None and self._sending.active():
            self._sending.cancel()
            self._send()

    def notify(self, repository: Repository) -> None:
        """Note a change of this process."""
        self._follow(repository)
        self._changed.add(repository.id)
        if self._sending is None:
            self._sending = self._reactor.callLater(RELAY_S, self._send)

    def _send(self) -> None:
        self._sending = None
        changed, self._changed = self._changed, set()
        CHANGED.publish(self._peers, sorted(changed))

    def _receive(self, changed: list[int]) -> None:
        for each in changed:
            self._follow(self._registry.find_id(each))
