"""
Retries the entries that could not be shown in the readable layout.

A pass tries every pending entry once, a page at a time between batches of events. When entries are left after it, a
timer starts the next pass. Its delay doubles after each pass in which nothing succeeded.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable
from typing import Final

from attrs import Factory, define, frozen
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from pkgrepo.repositories.context import MaintenanceContext, MaintenanceWork
from pkgrepo.storage.catalog.server import layout_pending
from pkgrepo.storage.catalog.server.layout_pending import Entry

log = Logger()

MAX_RETRY_S = 300.0
NO_ROOM = frozenset({os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT)})

PAUSE_FACTOR: Final = 3  # times the duration of a round, so that the follower uses a quarter of the time at most
BYTES_PER_S: Final = 4 * 1024 * 1024  # of documents of large images; each change of such an image rewrites its index


@frozen
class Pace:
    """How much is handled at once, and what is waited for; times in seconds."""

    batch: int = 1000  # events; a package that many of them name is shown once
    pause_s: float = 0.1  # at least between two rounds while changes keep coming
    max_pause_s: float = 10.0
    quiet_s: float = 2.0  # without a change of a proxy, after which its changes are shown; installs have shorter pauses
    longest_quiet_s: float = 30.0  # that its first change waits at most
    mark_after_s: float = 600.0  # from a change until the mark is moved, which syncs the file system
    mark_events: int = 10_000  # after the mark until it is moved; to compare them again takes some seconds
    retry_page: int = 100  # pending entries that are tried between two batches of events
    retry_s: float = 10.0  # until the next pass over them; doubled after each pass in which nothing succeeded

    def pause_after(self, round_s: float, written: int = 0) -> float:
        """The seconds to pause after a round of this duration that wrote this many bytes of documents."""
        return max(self.pause_s, min(self.max_pause_s, max(PAUSE_FACTOR * round_s, written / BYTES_PER_S)))


PACE: Final = Pace()


@define
class _Pass:
    after: Entry | None = None  # the last entry that was tried
    shown: int = 0
    reasons: set[str] = Factory(set)


class Retries(MaintenanceWork):
    """
    The passes over the pending entries, and the timer between them.

    ``show`` shows an entry and returns what of it could not be shown, with the reasons. ``sync`` makes what it wrote
    durable. ``notify`` has the follower call ``run_page`` soon.
    """

    def __init__(
        self,
        context: MaintenanceContext,
        show: Callable[[Entry], Awaitable[dict[Entry, str]]],
        sync: Callable[[], Awaitable[None]],
        notify: Callable[[], None],
        pace: Pace,
    ) -> None:
        super().__init__(context)
        self._show = show
        self._sync = sync
        self._notify = notify
        self._open = False
        self._scheduling = True
        self._pass: _Pass | None = None
        self._page = pace.retry_page
        self._retry_s = self._delay_s = pace.retry_s
        self._out_of_room = False  # whether entries of the last pass failed for lack of room on the disk
        self._timer: IDelayedCall | None = None

    @property
    def under_way(self) -> bool:
        """Whether a pass has begun and not ended."""
        return self._pass is not None

    def open(self, *, scheduling: bool) -> None:
        """Begin a pass, and with ``scheduling`` start the timer for further ones when entries are left."""
        self._open = True
        self._scheduling = scheduling
        self._pass = _Pass()

    def close(self) -> None:
        """Begin nothing more, neither an entry nor a pass."""
        self._open = False
        self._cancel_timer()

    def stop_scheduling(self) -> None:
        """Start no timer any more."""
        self._scheduling = False

    def begin(self) -> None:
        """Begin a pass, unless one is under way."""
        self._pass = self._pass or _Pass()

    def abandon(self) -> None:
        """End the pass after a failure of the catalog, and try again later."""
        self._pass = None
        self.schedule()
        self._delay_s = min(MAX_RETRY_S, 2 * self._delay_s)

    async def run_page(self) -> None:
        """Try the next page of pending entries, if a pass is under way."""
        current = self._pass
        if current is None or not self._open:
            return
        page = await self._catalog.scan(layout_pending.list_pending, current.after, self._page)
        if not page:
            self._end(current)
            return
        failed: dict[Entry, str] = {}
        tried = []
        for each in page:
            if not self._open:
                break
            failed |= await self._show(each)
            tried.append(each)
        if not tried:
            return
        if any(each not in failed for each in tried):
            await self._sync()  # their events are before the mark, so that only the entries know what to show
        await self._catalog.write(layout_pending.record_attempts, tried, failed)
        current.after = tried[-1]
        current.reasons.update(failed.values())
        current.shown += sum(each not in failed for each in tried)

    def schedule(self) -> None:
        """Start the timer for the next pass, unless it runs."""
        if self._timer is None and self._open and self._scheduling:
            self._timer = IReactorTime(self._pools.reactor).callLater(self._delay_s, self._timer_fired)

    def schedule_sooner(self) -> None:
        """Start the timer anew with the shortest delay, if entries wait for room: the disk has some again."""
        if self._out_of_room and self._timer is not None and self._delay_s > self._retry_s:
            self._cancel_timer()
            self._delay_s = self._retry_s
            self.schedule()

    def _end(self, ended: _Pass) -> None:
        self._pass = None
        if ended.shown:
            log.info("the readable layout shows {count} entries that were pending", count=ended.shown)
        in_vain = ended.reasons and not ended.shown
        self._delay_s = min(MAX_RETRY_S, 2 * self._delay_s) if in_vain else self._retry_s
        self._out_of_room = not NO_ROOM.isdisjoint(ended.reasons)
        if ended.reasons:
            self.schedule()

    def _timer_fired(self) -> None:
        self._timer = None
        self.begin()
        self._notify()

    def _cancel_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
