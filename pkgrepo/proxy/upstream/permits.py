"""How many requests may be under way at one host, over all routes of this process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.fair_semaphore import FairSemaphore
from pkgrepo.outbound.urls import Origin

from .deadlines import Deadline

MOST_WAITING = 2000  # requests that wait for one host
LONGEST_WAIT_S = 60.0  # seconds; clients give up after about as long


class HostPermits:
    """At most ``count`` requests at a time for each host; clients that wait for one host are served in turn."""

    def __init__(self, count: int, reactor: IReactorTime) -> None:
        self._count = count
        self._reactor = reactor
        self._semaphores: dict[Origin, FairSemaphore] = {}
        self._users: Counter[Origin] = Counter()  # who hold or wait; a semaphore without any is dropped

    async def acquire(self, origin: Origin, client: Hashable, deadline: Deadline) -> None:
        """
        Wait for a permit, which the caller releases once.

        ``client`` is the one of a route in a repository: others have routes of this name.

        :raises QueueFull: too many wait for one; :raises TimedOut: there was none for ``LONGEST_WAIT_S``
        """
        semaphore = self._semaphores.get(origin)
        if semaphore is None:
            semaphore = FairSemaphore(self._count, self._reactor, most_waiting=MOST_WAITING)
            self._semaphores[origin] = semaphore
        self._users[origin] += 1
        if semaphore.acquire_now():
            return
        try:
            reason = f"{self._count} other requests to it are under way (proxy.max_connections_per_host)"
            acquiring = Deferred.fromCoroutine(semaphore.acquire((client,)))
            await deadline.wait(acquiring, LONGEST_WAIT_S, reason)
        except BaseException:
            self._leave(origin)
            raise

    def release(self, origin: Origin) -> None:
        """Return a permit."""
        self._semaphores[origin].release()
        self._leave(origin)

    def _leave(self, origin: Origin) -> None:
        self._users[origin] -= 1
        if not self._users[origin]:
            del self._users[origin], self._semaphores[origin]
