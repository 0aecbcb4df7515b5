"""The events that a caller may see, and the streams that wait for new ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall

from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Action, Identity, Repository, Visibility
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.packages.events import Event, events_after, events_before, last_seq

from .envelopes import Announcement, announce

BATCH: Final = 500  # events that are read at once
MOST_READ: Final = 10_000  # events that are looked at for one page: a caller may see few of them
LOOK_S: Final = 0.25  # seconds between two looks at the generation of the catalog
MOST_STREAMS: Final = 200  # of one process
MOST_OF_CALLER: Final = 10  # of them, of one user or address


@frozen
class Found:
    """Events in their order; ``seq`` is the last one that was looked at, and ``more`` whether there are others."""

    items: Sequence[Announcement]
    seq: int
    more: bool


class EventFeed:
    """Reads the event log for callers, and wakes streams when something was committed, by any process."""

    def __init__(
        self, catalog: ICatalog, registry: Registry, authorizer: Authorizer, source: str, reactor: Any
    ) -> None:
        self._catalog = catalog
        self._registry = registry
        self._authorizer = authorizer
        self._source = source
        self._waiting: list[Deferred[None]] = []
        self._open: dict[str, int] = {}
        self._generation = 0
        self._looking = LoopingCall(self._look)
        self._looking.clock = reactor

    async def after(self, identity: Identity, seq: int, limit: int, wanted: Callable[[str], bool]) -> Found:
        """At most ``limit`` events after ``seq`` whose type is ``wanted``, of those that the caller may see."""
        items: list[Announcement] = []
        read, full = 0, True
        while full and len(items) < limit and read < MOST_READ:
            some: Sequence[Event] = await self._catalog.scan(events_after, seq, BATCH)
            full = len(some) == BATCH
            read += len(some)
            for each in await self._seen(identity, some, wanted):
                if len(items) == limit:
                    return Found(items, items[-1].seq, more=True)
                items.append(each)
            seq = some[-1].seq if some else seq
        return Found(items, seq, more=full)

    async def latest(self, identity: Identity, limit: int, wanted: Callable[[str], bool]) -> Found:
        """The ``limit`` newest events whose type is ``wanted``, of those that the caller may see."""
        last: int = await self._catalog.look(last_seq)
        items: list[Announcement] = []
        before, read = last + 1, 0
        while len(items) < limit and read < MOST_READ:
            some: Sequence[Event] = await self._catalog.scan(events_before, before, BATCH)
            items += await self._seen(identity, some, wanted)
            read += len(some)
            if len(some) < BATCH:
                break
            before = some[-1].seq
        return Found(items[:limit][::-1], last, more=False)

    async def last(self) -> int:
        """The number of the newest event."""
        found: int = await self._catalog.look(last_seq)
        return found

    def enter(self, caller: str) -> bool:
        """Count a stream of a caller, until L{leave}. Returns False if there are too many."""
        if sum(self._open.values()) >= MOST_STREAMS or self._open.get(caller, 0) >= MOST_OF_CALLER:
            return False
        self._open[caller] = self._open.get(caller, 0) + 1
        if not self._looking.running:
            self._generation = self._catalog.generation()
            self._looking.start(LOOK_S, now=False)
        return True

    def leave(self, caller: str) -> None:
        """A stream of a caller has ended."""
        self._open[caller] -= 1
        if not self._open[caller]:
            del self._open[caller]
        if not self._open and self._looking.running:
            self._looking.stop()

    def changed(self) -> Deferred[None]:
        """A Deferred that fires after the next commit; it may be cancelled."""
        waiter: Deferred[None] = Deferred(self._waiting.remove)
        self._waiting.append(waiter)
        return waiter.addErrback(lambda _: None)  # of one that is cancelled

    def _look(self) -> None:
        generation = self._catalog.generation()
        if generation != self._generation:
            self._generation = generation
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                each.callback(None)

    async def _seen(
        self, identity: Identity, some: Sequence[Event], wanted: Callable[[str], bool]
    ) -> list[Announcement]:
        """The public forms of those events that the caller may see."""
        await self._registry.refresh()
        found: list[tuple[Event, Announcement, Repository | None]] = []
        for event in some:
            repository = self._registry.find_id(event.repository_id)
            announcement = announce(event, repository, self._source)
            if announcement is not None and wanted(announcement.type):
                found.append((event, announcement, repository))
        questions = {
            (repository.id, event.package_key, _action(event, repository)): repository
            for event, _, repository in found
            if repository is not None
        }
        asked = [(action, repository, key or None) for (_, key, action), repository in questions.items()]
        answers = await self._authorizer.may_each(identity, asked)
        seen = {each for each, may in zip(questions, answers, strict=True) if may}
        manages = await self._authorizer.may_use(identity, "system")
        return [
            announcement
            for event, announcement, repository in found
            if (
                manages
                if repository is None
                else (repository.id, event.package_key, _action(event, repository)) in seen
            )
        ]


def _action(event: Event, repository: Repository) -> Action:
    """
    What a caller must be allowed to do, to see an event.

    Readers of a hidden repository have to know its name, and what is in quarantine is not for readers. Events that are
    about no package are for those who look after the repository.
    """
    hidden = repository.authority.visibility is Visibility.HIDDEN
    return Action.EDIT if hidden or event.data.get("quarantined") or not event.package_key else Action.READ
