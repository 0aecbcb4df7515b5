"""What one process keeps for all Maven repositories: documents, permits of listings, and running deployments."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from attrs import Factory, frozen
from twisted.internet import reactor as _reactor
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.fair_semaphore import FairSemaphore
from pkgrepo.concurrency.services import Service
from pkgrepo.gateway.folders.pages import ListingTurns
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.gateway.services import Context

DEPLOYMENTS_AT_ONCE: Final = (
    2  # deployments that one process validates at the same time; the others wait for their turn
)


log = Logger()

T = TypeVar("T")


class Running:
    """
    Runs the work on deployments, ``DEPLOYMENTS_AT_ONCE`` of it at the same time.

    ``turns`` are the permits for that; repositories and users get theirs in turn.
    """

    def __init__(self) -> None:
        reactor: Any = _reactor
        self.turns = FairSemaphore(DEPLOYMENTS_AT_ONCE, reactor)
        self._works: set[Deferred[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> Deferred[T]:
        """
        Start a work, which no caller cancels. Returns its result, which the caller may cancel waiting for.

        An error is for the caller; it is logged if the caller has left.
        """
        outcome: Deferred[T] = Deferred()
        running = Deferred.fromCoroutine(work)
        self._works.add(running)

        def done(result: Any) -> None:
            self._works.discard(running)
            if not outcome.called:
                (outcome.errback if isinstance(result, Failure) else outcome.callback)(result)
            elif isinstance(result, Failure) and not result.check(CancelledError):
                log.info("a deployment ended after its client had left: {error}", error=str(result.value))

        running.addBoth(done)
        return outcome

    async def stop(self) -> None:
        """Cancel all work, and wait until it has ended."""
        works = list(self._works)
        ended = DeferredList([_ended(each) for each in works])
        for each in works:
            each.cancel()
        await ended


class StopWithServer(Service):
    """Stops the work on deployments when the server stops."""

    def __init__(self, running: Running) -> None:
        self._running = running

    def stopService(self) -> Deferred[None]:
        """Cancel the work, and wait for its end."""
        super().stopService()
        return Deferred.fromCoroutine(self._running.stop())


def _ended(work: Deferred[Any]) -> Deferred[None]:
    ended: Deferred[None] = Deferred()

    def fire(result: Any) -> Any:
        ended.callback(None)
        return result

    work.addBoth(fire)
    return ended


@frozen(eq=False)
class MavenCaches:
    """The parts that the handlers of all repositories share."""

    documents: SplicedDocuments
    running: Running = Factory(Running)
    listing_turns: ListingTurns = Factory(ListingTurns)


MavenContext = Context[MavenCaches]
