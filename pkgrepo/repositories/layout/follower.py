"""
Keeps the readable layout up to date by following the events of the catalog.

Most events name a package and a version. The follower reads what that version is *now* and makes its directory show
it, so an event may be handled twice, and the order of events does not matter. The removal of a repository is the
exception: its folder is removed before anything is shown of a later repository with the same name.

==================  ==================================  ========================================================
kept in             what                                changed by
==================  ==================================  ========================================================
setting (cursor)    the last event that was handled     each batch of events, once shown or recorded as pending
setting (mark)      the last event that was handled     ``mark_after_s`` after a change, each ``mark_events`` events,
                    when all files were made durable    and at a stop
``layout_pending``  entries that could not be shown     added in the transaction that moves the cursor; removed
                    (full disk, missing blob), and      once they are shown: retried at each start, then with
                    packages to compare as a whole      exponential back-off, or soon after a full disk has room
==================  ==================================  ========================================================

A crash repeats some work and loses none. While the catalog cannot be written, the cursor does not move.

Files of the layout are not made durable one by one: after a power cut, new ones may be empty or missing. (Measured with
ext4 and the two sidecars of a small version: 1.3 ms, with fsync of both and of their folders 6.3 ms, with one syncfs
2.0 ms, all of it competing with the fsyncs of publishes; to compare 600 changes again takes a start 1 s.) Each start
therefore returns the cursor to the mark, and what is shown of the events after it is compared with the catalog and
mended, beside the requests. After a clean stop there are no such events. While some are left, the layout counts as
behind. Of a file that was removed again meanwhile its event alone may know where it was: a power cut may keep a link,
and lose the sidecar that was written after it.

What a proxy keeps is shown when it has kept nothing more for a moment: during an install the threads that show it
would take the interpreter and the disk from the requests, and show a package once for each of its files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.services import Service
from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.repositories.context import FAILURES, MaintenanceContext, reason_of
from pkgrepo.repositories.layout.retries import PACE, Pace
from pkgrepo.storage.catalog.packages import events
from pkgrepo.storage.catalog.packages.events import Event
from pkgrepo.storage.catalog.server import layout_pending
from pkgrepo.storage.catalog.server.layout_pending import Backlog, Entry

from .retries import Retries
from .storage_layouts import StorageLayouts
from .updater import LayoutUpdater

log = Logger()


class LayoutFollower(Service):
    """Handles the events of all repositories in batches, whenever ``notify`` is called."""

    def __init__(self, context: MaintenanceContext, pace: Pace = PACE) -> None:
        self.pace = pace
        self._catalog = context.catalog
        self._registry = context.registry
        self._pools = context.pools
        self._updater = LayoutUpdater(context)
        self._storages = StorageLayouts(context)
        self._retries = Retries(context, self._show_pending, self._sync, self.notify, pace)
        self._following: Deferred[None] | None = None
        self._open = False  # whether more work may begin
        self._notified = False
        self._config_serial = -1
        self._pauses = True
        self._pausing: Deferred[None] | None = None
        self._returns = False  # whether the cursor must be returned to the mark first
        self._doubtful = 0  # the last event of which a run before this one may have shown a part
        self._marked: int | None = None  # the event at the mark; None in a process that must not move it
        self._sound = True  # whether each sync has succeeded: after a failure the next one would, too, and mean nothing
        self._mark_due = False
        self._mark_timer: IDelayedCall | None = None
        self._quiet: IDelayedCall | None = None
        self._quiet_until = 0.0  # in the reactor's seconds, at most

    def startService(self) -> None:
        """Handle what happened since the last run, and retry what could not be shown."""
        super().startService()
        self._pauses = True
        self._returns = True
        self._begin()

    def stopService(self) -> Deferred[None] | None:
        """Stop after the current batch, and move the mark; L{catch_up_and_mark_closed} handles the rest."""
        super().stopService()
        self._close()
        stopping = Deferred.fromCoroutine(self._stop(self._following))
        stopping.addErrback(_report_failure)
        return stopping

    async def _stop(self, following: Deferred[None] | None) -> None:
        if following is not None:
            await following
        try:
            await self._move_mark()
        finally:
            self._marked = None  # another process may be the follower now

    async def mark_open(self, *, joining: bool = False) -> None:
        """
        Mark every layout as possibly behind the catalog; to be called before anything changes.

        With ``joining`` other processes serve the catalog.
        """
        await self._storages.mark_open(joining=joining)

    def skip_pauses(self) -> None:
        """End the current pause, and make no more of them."""
        self._pauses = False
        self._retries.stop_scheduling()
        if self._pausing is not None:
            self._pausing.cancel()

    async def catch_up_and_mark_closed(self, timeout_s: float) -> None:
        """
        After the stop: handle all events, and mark every layout with the number of changes that it lacks.

        No new batch begins after ``timeout_s`` seconds; the next start handles the rest.
        """
        timeout = IReactorTime(self._pools.reactor).callLater(max(0.0, timeout_s), self._close)
        self._returns = True  # it goes back nowhere if the last follower has stopped in order
        await self.catch_up()
        if timeout.active():
            timeout.cancel()
        try:
            if await self._move_mark(always=True):  # before the layout may look complete
                await self._storages.mark_closed(await self.backlog())
        except FAILURES:
            log.failure("it is not known what the readable layout lacks")

    async def catch_up(self) -> None:
        """
        Handle all events, without the service being started.

        The markers stay: they are those of a server that runs beside this process, or of the last one that ran.
        """
        self.skip_pauses()
        self._begin()
        while self._following is not None:
            await self._following
        self._close()

    def notify(self, repository: Repository | None = None) -> None:
        """Look for new events soon; for those of a proxy when it has been quiet for some time."""
        if repository is not None and repository.type is RepositoryType.PROXY and self._open and self._pauses:
            self._wait_for_quiet()
            return
        self._end_quiet()
        self._notified = True
        if self._following is None and self._open:
            following = self._following = Deferred.fromCoroutine(self._follow())
            following.addErrback(_report_failure)
            following.addCallback(self._done)

    async def backlog(self) -> Backlog:
        """Return how far the layout is behind the catalog."""
        found: Backlog = await self._catalog.scan(layout_pending.backlog)
        return found

    def _wait_for_quiet(self) -> None:
        reactor = IReactorTime(self._pools.reactor)
        now = reactor.seconds()
        if self._quiet is None:
            self._quiet = reactor.callLater(self.pace.quiet_s, self.notify)
            self._quiet_until = now + self.pace.longest_quiet_s
        else:
            self._quiet.reset(min(self.pace.quiet_s, max(self._quiet_until - now, 0.0)))

    def _end_quiet(self) -> None:
        quiet, self._quiet = self._quiet, None
        if quiet is not None and quiet.active():
            quiet.cancel()

    def _begin(self) -> None:
        self._open = True
        self._retries.open(scheduling=self._pauses)
        self.notify()

    def _done(self, _: object) -> None:
        self._following = None

    def _close(self) -> None:
        self._open = False
        self._end_quiet()
        self._cancel_mark_timer()
        self._retries.close()
        if self._pausing is not None:
            self._pausing.cancel()

    async def _follow(self) -> None:
        while self._open and (self._notified or self._retries.under_way):
            self._notified = False
            began, written = monotonic(), self._updater.large_images.written
            try:
                if self._returns:
                    await self._return_to_mark()
                await self._show_repositories()
                await self._retries.run_page()
                await self._handle_events()
                if self._mark_due:
                    await self._move_mark()
            except FAILURES:  # of the catalog; what cannot be shown is recorded as pending instead
                self._retries.abandon()
                raise
            if self._notified or self._retries.under_way:
                written = self._updater.large_images.written - written
                await self._pause(self.pace.pause_after(monotonic() - began, written))

    async def _pause(self, seconds: float) -> None:
        """Let changes accumulate: ten that are shown together cost two that are shown one by one."""
        if not self._open or not self._pauses:
            return
        self._pausing = deferLater(IReactorTime(self._pools.reactor), seconds)
        with suppress(CancelledError):
            await self._pausing

    async def _handle_events(self) -> None:
        cursor = await self._catalog.look(layout_pending.cursor)
        more = True
        while more and self._open:
            batch = await self._catalog.scan(events.events_after, cursor, self.pace.batch)
            more = len(batch) == self.pace.batch
            if not batch:
                break
            failed = await self._show_batch(batch)
            cursor = batch[-1].seq
            await self._catalog.write(layout_pending.move_cursor, cursor, failed)
            if self._marked is not None and cursor - self._marked >= self.pace.mark_events:
                await self._move_mark()
            elif self._marked is not None and self._mark_timer is None and self._open:
                reactor = IReactorTime(self._pools.reactor)
                self._mark_timer = reactor.callLater(self.pace.mark_after_s, self._mark_timer_fired)
            if failed:
                self._report(failed)
                self._retries.schedule()
            else:
                self._retries.schedule_sooner()

    async def _return_to_mark(self) -> None:
        """Have the events handled again whose files may be lost or empty, if the last run has not ended with a stop."""
        again = await self._catalog.write(layout_pending.return_to_mark)
        self._doubtful = await self._catalog.look(events.last_seq)
        self._marked = await self._catalog.look(layout_pending.cursor) if self._sound else None
        self._returns = False
        if again:
            log.info(
                "the readable layout is compared with the last {count} changes: it was not closed by a clean stop",
                count=again,
            )

    async def _move_mark(self, *, always: bool = False) -> bool:
        """
        Make what was shown durable, also without new events if ``always``, and note that it is. Returns whether it is.

        :raises OSError: some of it may be lost; :raises PkgrepoError: the catalog cannot be written
        """
        self._mark_due = False
        self._cancel_mark_timer()
        if self._marked is None:
            return False
        seq = await self._catalog.look(layout_pending.cursor)
        if seq == self._marked and not always:
            return True
        await self._sync()
        if seq != self._marked:
            await self._catalog.write(layout_pending.move_mark, seq)
            self._marked = seq
        return True

    async def _sync(self) -> None:
        """Make everything durable that was shown. :raises OSError: some of it may be lost, and the mark stays"""
        try:
            await self._storages.sync()
        except OSError:
            self._sound, self._marked = False, None
            raise

    def _mark_timer_fired(self) -> None:
        self._mark_timer = None
        self._mark_due = True
        self.notify()

    def _cancel_mark_timer(self) -> None:
        timer, self._mark_timer = self._mark_timer, None
        if timer is not None:
            timer.cancel()

    async def _show_batch(self, batch: Sequence[Event]) -> dict[Entry, str]:
        """Show what some events name. Returns what could not be shown, with the reasons."""
        failed: dict[Entry, str] = {}
        changed: dict[Entry, list[Event]] = {}
        doubtful = batch[0].seq <= self._doubtful
        for event in batch:
            if event.kind == events.REPOSITORY_REMOVED:
                failed |= await self._updater.show(changed, doubtful=doubtful)
                changed.clear()
                await self._discard(event, failed)
            elif event.kind == events.REPOSITORY_RESTORED:  # after its removal, which discarded what was shown of it
                await self._catalog.write(layout_pending.add_repositories, [event.repository_id])
                self._retries.begin()
            elif event.package_key:
                version = event.version_key, event.data.get("version", "")
                changed.setdefault(Entry(event.repository_id, event.package_key, *version), []).append(event)
            elif "path" in event.data:
                changed.setdefault(Entry.of_file(event.repository_id, event.data["path"]), []).append(event)
        return failed | await self._updater.show(changed, doubtful=doubtful)

    async def _show_repositories(self) -> None:
        """After a change of configuration: switch layouts on or off, and show every repository's own document."""
        await self._registry.refresh()
        serial = self._registry.serial
        if serial == self._config_serial:
            return
        await self._storages.apply_settings()
        self._retries.begin()  # a layout that was switched on has all its packages pending
        failed: dict[Entry, str] = {}
        for repository in self._registry.all():
            await self._show_repository(repository, failed)
        if failed:
            await self._catalog.write(layout_pending.record_attempts, (), failed)
            self._report(failed)
            self._retries.schedule()
        self._config_serial = serial

    async def _show_repository(self, repository: Repository, failed: dict[Entry, str]) -> None:
        reason = await self._updater.show_repository(repository)
        if reason is not None:
            failed[Entry(repository.id)] = reason

    async def _discard(self, removal: Event, failed: dict[Entry, str]) -> Repository | None:
        """Remove the folder of a removed repository. Returns the repository that has its name now."""
        self._updater.large_images.forget_all()
        try:
            successor = await self._storages.discard_removed(removal)
        except FAILURES as error:
            failed[Entry(removal.repository_id)] = reason_of(error)
            return None
        if successor is not None:
            await self._show_repository(successor, failed)
        return successor

    async def _show_pending(self, entry: Entry) -> dict[Entry, str]:
        """Show a pending entry. Returns what of it could not be shown, with the reasons."""
        if entry.of_repository:
            failed: dict[Entry, str] = {}
            await self._show_pending_repository(entry, failed)
            return failed
        try:
            entries = await self._updater.expand(entry) if entry.whole else [entry]
        except FAILURES as error:
            return {entry: reason_of(error)}
        return await self._updater.show(dict.fromkeys(entries, ()))

    async def _show_pending_repository(self, entry: Entry, failed: dict[Entry, str]) -> None:
        await self._registry.refresh()
        repository = self._registry.find_id(entry.repository_id)
        if repository is not None:
            await self._show_repository(repository, failed)
            return
        removal = await self._catalog.scan(events.find_removal_event, entry.repository_id)
        successor = None if removal is None else await self._discard(removal, failed)
        if successor is not None:  # what was shown of it before went with the folder
            await self._catalog.write(layout_pending.add_repositories, [successor.id])

    def _report(self, failed: Mapping[Entry, str]) -> None:
        entry, reason = next(iter(failed.items()))
        repository = self._registry.find_id(entry.repository_id)
        log.error(
            "{count} entries are not in the readable layout and are tried again, such as {package} {version} of "
            "{repository}: {reason}",
            count=len(failed),
            package=entry.package_key,
            version=entry.version,
            repository="a removed repository" if repository is None else repository.path,
            reason=reason,
        )


def _report_failure(failure: Failure) -> None:
    if not failure.check(StorageFull, StorageFailed):  # which the catalog has logged
        log.failure("the readable layout fell behind", failure=failure)
