"""
Services that run in one process at a time, of all that serve the same catalog.

The process that has the lease runs them. When it ends, however it ends, the kernel releases its lock, and another
process takes over within ``TRY_S``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
from twisted.application.service import MultiService, Service
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Repository
from pkgrepo.process.workers.peers import Peers
from pkgrepo.repositories.layout.follower import LayoutFollower
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.process_lock import Lease

TRY_S: Final = 1.0  # seconds between two attempts to get the lease
WATCH_S: Final = 30.0  # seconds between two looks for commits of which no process has told, since it was killed
RELAY_S: Final = 0.2  # seconds in which changes are collected before other processes are told of them
CHANGED: Final = "layout"  # the topic: ids of repositories

log = Logger()


class ExclusiveServices(Service):
    """Runs the services added to ``services`` while this process has the lease of the file ``path``."""

    def __init__(self, path: Path, reactor: IReactorTime) -> None:
        self.services = MultiService()
        self._lease = Lease(path)
        self._trying = LoopingCall(self._try)
        self._trying.clock = reactor

    def startService(self) -> None:
        """Start the services now, or as soon as the lease can be had."""
        super().startService()  # type: ignore[no-untyped-call]
        self._trying.start(TRY_S)

    def stopService(self) -> Deferred[None]:
        """Stop the services if they run here, and then release the lease."""
        super().stopService()  # type: ignore[no-untyped-call]
        if self._trying.running:
            self._trying.stop()
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        try:
            if self.services.running:
                await maybeDeferred(self.services.stopService)
        finally:
            self._lease.release()

    def _try(self) -> None:
        if self._lease.acquire():
            self._trying.stop()
            log.debug("this process does the work in the background")
            self.services.startService()


class CommitWatch(Service):
    """Has the follower of the readable layout look for commits of which nobody has told it."""

    def __init__(self, catalog: ICatalog, follower: LayoutFollower, reactor: IReactorTime) -> None:
        self._catalog = catalog
        self._follower = follower
        self._seen: int | None = None
        self._looking = LoopingCall(self._look)
        self._looking.clock = reactor

    def startService(self) -> None:
        """Begin to look."""
        super().startService()  # type: ignore[no-untyped-call]
        self._looking.start(WATCH_S, now=False)

    def stopService(self) -> None:
        """Stop looking."""
        super().stopService()  # type: ignore[no-untyped-call]
        self._looking.stop()

    def _look(self) -> None:
        generation = self._catalog.generation()
        if generation != self._seen:
            self._seen = generation
            self._follower.notify()


class ChangeRelay(Service):
    """Tells the follower of the readable layout about changes, in the process in which it runs."""

    def __init__(self, follower: LayoutFollower, registry: Registry, peers: Peers, reactor: IReactorTime) -> None:
        self._follower = follower
        self._registry = registry
        self._peers = peers
        self._reactor = reactor
        self._changed: set[int] = set()
        self._sending: IDelayedCall | None = None
        peers.subscribe(CHANGED, self._receive)

    def stopService(self) -> None:
        """Send what was collected."""
        super().stopService()  # type: ignore[no-untyped-call]
        if self._sending is not None and self._sending.active():
            self._sending.cancel()
            self._send()

    def notify(self, repository: Repository) -> None:
        """Note a change of this process."""
        self._follower.notify(repository)
        self._changed.add(repository.id)
        if self._sending is None:
            self._sending = self._reactor.callLater(RELAY_S, self._send)

    def _send(self) -> None:
        self._sending = None
        changed, self._changed = self._changed, set()
        self._peers.publish(CHANGED, msgspec.msgpack.encode(sorted(changed)))

    def _receive(self, data: bytes) -> None:
        for each in msgspec.msgpack.decode(data, type=list[int]):
            self._follower.notify(self._registry.find_id(each))
