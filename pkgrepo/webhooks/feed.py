"""
The events that a caller may see, and the streams that wait for new ones.

A *position* is a place in the log: the id of the last event that was looked at. Unlike its number alone it tells that
the log is not the one any more that it was read from, since the catalog was restored from an older backup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall, deferLater

from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.errors import Invalid, PositionLost
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Action, Identity, Repository, Visibility
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.packages.events import (
    Event,
    events_after,
    events_before,
    find_event,
    kinds_after,
    last_seq,
    last_seq_of_repository,
)
from pkgrepo.storage.catalog.rows import batches

from .envelopes import Announcement, announce, id_of

BATCH: Final = 500  # events that are read at once
MOST_READ: Final = 10_000  # events that are looked at for one page: a caller may see few of them
LOOK_S: Final = 0.25  # seconds between two looks at the generation of the catalog
MOST_STREAMS: Final = 200  # of one process
MOST_OF_CALLER: Final = 10  # of them, of one user, or one address or network of IPv6
MOST_COUNTED: Final = 10_000  # events after a page that are looked at
BEGIN: Final = "evt_0_0"  # the position before all events
_POSITION: Final = re.compile(r"evt_([0-9]{1,18})_([0-9a-f]{1,16})", re.ASCII)


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

    async def after(
        self,
        identity: Identity,
        seq: int,
        limit: int,
        wanted: Callable[[str], bool],
        repository: Repository | None = None,
    ) -> Found:
        """
        At most ``limit`` events after ``seq`` whose type is ``wanted``, of those that the caller may see.

        With a ``repository``, which the caller has named, only its events.
        """
        items: list[Announcement] = []
        read, full = 0, True
        of = None if repository is None else repository.id
        while full and len(items) < limit and read < MOST_READ:
            some: Sequence[Event] = await self._catalog.scan(events_after, seq, BATCH, of)
            full = len(some) == BATCH
            read += len(some)
            for each in await self._seen(identity, some, wanted, named=of):
                if len(items) == limit:
                    return Found(items, items[-1].seq, more=True)
                items.append(each)
            seq = some[-1].seq if some else seq
        return Found(items, seq, more=full)

    async def latest(
        self, identity: Identity, limit: int, wanted: Callable[[str], bool], repository: Repository | None = None
    ) -> Found:
        """The ``limit`` newest events whose type is ``wanted``, as in ``after``."""
        of = None if repository is None else repository.id
        last: int = await (
            self._catalog.look(last_seq) if of is None else self._catalog.look(last_seq_of_repository, of)
        )
        items: list[Announcement] = []
        before, read = last + 1, 0
        while len(items) < limit and read < MOST_READ:
            some: Sequence[Event] = await self._catalog.scan(events_before, before, BATCH, of)
            items += await self._seen(identity, some, wanted, named=of)
            read += len(some)
            if len(some) < BATCH:
                break
            before = some[-1].seq
        return Found(items[:limit][::-1], last, more=False)

    async def last(self) -> int:
        """The number of the newest event."""
        found: int = await self._catalog.look(last_seq)
        return found

    async def position(self, seq: int) -> str:
        """The position of an event by its number; the beginning of the log if there is no such event."""
        event: Event | None = await self._catalog.look(find_event, seq)
        return BEGIN if event is None else id_of(event)

    async def seq_at(self, position: str, repository: Repository | None) -> int:
        """
        The number of the event at a position, of a repository if one is given.

        :raises Invalid: it is no position; :raises PositionLost: the log does not have this event (any more)
        """
        found = _POSITION.fullmatch(position)
        if found is None:
            raise Invalid("this is neither the seq nor the id of an event", "after")
        seq = int(found[1])
        if position == BEGIN:
            return 0
        event: Event | None = await self._catalog.look(find_event, seq)
        if event is None or id_of(event) != position or repository not in (None, self._of(event)):
            raise PositionLost(position)
        return seq

    def _of(self, event: Event) -> Repository | None:
        return self._registry.find_id(event.repository_id)

    async def left(self, identity: Identity, repository: Repository, seq: int, wanted: Callable[[str], bool]) -> int:
        """
        How many of the ``MOST_COUNTED`` events of a repository after one the caller may see and are ``wanted``.

        The caller may read the whole repository.
        """
        found: list[tuple[Event, int]] = await self._catalog.scan(kinds_after, repository.id, seq, MOST_COUNTED)
        left = 0
        for some in batches(found, BATCH):
            seen = await self._seen(identity, [each for each, _ in some], wanted, named=repository.id)
            left += sum(found[each.seq][1] for each in seen)
            await deferLater(self._looking.clock, 0)  # others need the reactor
        return left

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
        self, identity: Identity, some: Sequence[Event], wanted: Callable[[str], bool], *, named: int | None
    ) -> list[Announcement]:
        """The public forms of those events that the caller may see, who has ``named`` a repository (its id)."""
        await self._registry.refresh()
        found: list[tuple[Event, Announcement, Repository | None]] = []
        for event in some:
            repository = self._registry.find_id(event.repository_id)
            announcement = announce(event, repository, self._source)
            if announcement is not None and wanted(announcement.type):
                found.append((event, announcement, repository))
        questions = {
            (repository.id, event.package_key, _action(event, repository, named)): repository
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
                else (repository.id, event.package_key, _action(event, repository, named)) in seen
            )
        ]


def _action(event: Event, repository: Repository, named: int | None) -> Action:
    """
    What a caller must be allowed to do, to see an event.

    Readers of a hidden repository have to know its name, as those who have ``named`` it do, and what is in quarantine
    is not for readers. Events that are about no package are for those who look after the repository.
    """
    hidden = repository.authority.visibility is Visibility.HIDDEN and repository.id != named
    return Action.EDIT if hidden or event.data.get("quarantined") or not event.package_key else Action.READ
