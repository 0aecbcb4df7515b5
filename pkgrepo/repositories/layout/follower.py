"""
Keeps the readable layout in step with the catalog.

It follows the events. Most name a package and a version, and whatever that version is *now* is what its directory is
made to show, so that an event may be seen twice and none is needed in its order. Only with the removal of a repository
its folder goes, before anything is shown of another that has got its name since.

==================  ==================================  ========================================================
kept in             what                                moved by
==================  ==================================  ========================================================
setting (cursor)    the last event that was followed    each batch of events, once it was shown or noted as failed
``layout_pending``  entries that could not be shown     noted in the transaction that moves the cursor; removed
                    (a full disk, a lost copy), and     once they were shown: tried at each start, and then with
                    packages to be compared as a whole  growing pauses, or soon after a full disk has room again
==================  ==================================  ========================================================

A crash repeats some work and loses none. While the catalog cannot be written, the cursor stays where it is.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.errors import NotFound, StorageFailed, StorageFull
from pkgrepo.interfaces import IBlobStore, ICatalog, IFormat
from pkgrepo.model import Repository, Storage
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.stores import Stores
from pkgrepo.storage.catalog.packages import events
from pkgrepo.storage.catalog.packages.events import Event
from pkgrepo.storage.catalog.server import layout_pending, settings
from pkgrepo.storage.catalog.server.layout_pending import Backlog, Entry
from pkgrepo.storage.layout_folder import LayoutFolder
from pkgrepo.storage.pools import Pools

from .marker import MARK, CatalogStatus, discard_layout, read_marker, write_status
from .removed_folders import discard_folder
from .updater import FAILURES, LayoutUpdater, reason_of

log = Logger()

BATCH = 1000  # events; however many versions of a package they are about, what is told of the package is shown once
PAGE = 100  # pending entries that are tried at a time
PAUSE_S = 0.1  # seconds at least between two rounds while changes come without end
LONGEST_PAUSE_S = 10.0
RESTS = 3  # times as long as a round took, so that much work leaves time to others
BYTES_PER_S = 16 * 1024 * 1024  # of documents of big images; each change of one writes its index again
RETRY_S = 10.0  # seconds until what could not be shown is tried again; doubled each time that nothing of it succeeds
LONGEST_RETRY_S = 300.0
NO_ROOM = frozenset({os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT)})


def pause_after(round_s: float, written: int = 0) -> float:
    """How many seconds to let changes gather after a round that took so many, and wrote so many bytes of documents."""
    return max(PAUSE_S, min(LONGEST_PAUSE_S, max(RESTS * round_s, written / BYTES_PER_S)))


class _Retry:
    """One way through all pending entries; ``after`` is the last that was tried."""

    def __init__(self) -> None:
        self.after: Entry | None = None
        self.shown = 0
        self.reasons: set[str] = set()


class LayoutFollower(Service):
    """Follows the events of all repositories, a batch at a time, whenever it is poked."""

    def __init__(
        self,
        *,
        catalog: ICatalog,
        registry: Registry,
        stores: Stores,
        pools: Pools,
        formats: Mapping[str, IFormat],
        layout_of: Callable[[IBlobStore], LayoutFolder | None],
    ) -> None:
        self._catalog = catalog
        self._registry = registry
        self._stores = stores
        self._pools = pools
        self.layout_of = layout_of
        self._updater = LayoutUpdater(
            catalog=catalog,
            registry=registry,
            stores=stores,
            pools=pools,
            formats=formats,
            layout_of=layout_of,
        )
        self.parts = self._updater.parts
        self.writer = self._updater.writer
        self._following: Deferred[None] | None = None
        self._open = False  # whether there may be work in hand
        self._hurrying = False
        self._begun: datetime | None = None  # when the layouts were marked as open
        self._again = False
        self._configuration = -1
        self._pausing: Deferred[None] | None = None
        self._retry: _Retry | None = None
        self._retry_s = RETRY_S
        self._no_room = False  # some of what could not be shown last may be shown as soon as there is room
        self._retry_call: IDelayedCall | None = None

    def startService(self) -> None:
        """Catch up with what happened since the last run, and try again what could not be shown."""
        super().startService()  # type: ignore[no-untyped-call]
        self._open = True
        self._hurrying = False
        self._retry = _Retry()
        self.notify()

    def stopService(self) -> Deferred[None] | None:
        """End with the batch in hand; L{catch_up_and_mark_closed} is for what is left."""
        super().stopService()  # type: ignore[no-untyped-call]
        self._close()
        return self._following

    async def mark_open(self) -> None:
        """Mark every layout as one that may be behind; to be called before anything changes."""
        await self._mark(None)

    def skip_pauses(self) -> None:
        """Make no more pauses."""
        self._hurrying = True
        if self._pausing is not None:
            self._pausing.cancel()

    async def catch_up_and_mark_closed(self, limit_s: float) -> None:
        """
        After the stop: show all that has happened, and mark the layouts accordingly.

        What takes longer than ``limit_s`` seconds, but for a batch, is left to the next start.
        """
        limit = IReactorTime(self._pools.reactor).callLater(max(0.0, limit_s), self._close)
        await self.catch_up()
        if limit.active():
            limit.cancel()
        try:
            await self._mark(await self.backlog())
        except FAILURES:
            log.failure("it is not known what the readable layout lacks")

    async def catch_up(self) -> None:
        """
        Without being started: show all that has happened, until it is done.

        The marks stay as they are: they are those of a server that runs, or was the last that ran.
        """
        self._open = True
        self.skip_pauses()
        self._retry = _Retry()
        self.notify()
        while self._following is not None:
            await self._following
        self._close()

    def notify(self, _repository: Repository | None = None) -> None:
        """Something changed: follow soon."""
        self._again = True
        if self._following is None and self._open:
            following = self._following = Deferred.fromCoroutine(self._follow())
            following.addErrback(_report_failure)
            following.addCallback(self._done)

    async def backlog(self) -> Backlog:
        """How far the layout is behind."""
        found: Backlog = await self._catalog.scan(layout_pending.backlog)
        return found

    def _done(self, _: object) -> None:
        self._following = None

    def _close(self) -> None:
        self._open = False
        self._cancel_retry()
        if self._pausing is not None:
            self._pausing.cancel()

    async def _mark(self, backlog: Backlog | None) -> None:
        """Write into each layout how much of this catalog it lacks; None: that is not known while a server runs."""
        found = self._catalog.look_inline(settings.server_uid)
        catalog = await self._catalog.write(settings.ensure_server_uid) if found is None else found
        known = {repository.uid for repository in self._registry.all()}
        at = datetime.now(UTC)
        if backlog is None:
            begun, self._begun = None, at
        else:
            begun = self._begun
        for storage in (each for each in self._registry.storages() if each.readable_layout):
            missing = None if backlog is None else backlog.behind + backlog.failed.get(storage.id, 0)
            if missing:
                log.warn(
                    "the readable layout of {storage} lacks {count} changes; the next start goes on",
                    storage=storage.name,
                    count=missing,
                )
            try:
                layout = self.layout_of(await self._stores.of(storage))
                if layout is not None:
                    statement = CatalogStatus(at=at, missing=missing, begun=begun)
                    await self._pools.disk(write_status, layout, catalog, statement, known)
            except FAILURES as error:
                log.warn(
                    "the readable layout of {storage} could not be marked: {reason}",
                    storage=storage.name,
                    reason=reason_of(error),
                )

    async def _follow(self) -> None:
        while self._open and (self._again or self._retry is not None):
            self._again = False
            began, written = monotonic(), self.parts.written
            try:
                await self._show_repositories()
                await self._retry_some()
                await self._show_events()
            except FAILURES:  # of the catalog: what could not be shown is noted there
                self._retry = None
                self._retry_later()
                self._retry_s = min(LONGEST_RETRY_S, 2 * self._retry_s)
                raise
            if self._again or self._retry is not None:
                await self._pause(pause_after(monotonic() - began, self.parts.written - written))

    async def _pause(self, seconds: float) -> None:
        """Let changes gather while they come without end: one of ten at once costs a fifth of one by itself."""
        if not self._open or self._hurrying:
            return
        self._pausing = deferLater(IReactorTime(self._pools.reactor), seconds)
        with suppress(CancelledError):
            await self._pausing

    async def _show_events(self) -> None:
        cursor = self._catalog.look_inline(layout_pending.cursor)
        more = True
        while more and self._open:
            batch = await self._catalog.scan(events.events_after, cursor, BATCH)
            more = len(batch) == BATCH
            if not batch:
                break
            failed = await self._show_batch(batch)
            cursor = batch[-1].seq
            await self._catalog.write(layout_pending.move_cursor, cursor, failed)
            if failed:
                self._report(failed)
                self._retry_later()
            else:
                self._hasten_retry()

    async def _show_batch(self, batch: Sequence[Event]) -> dict[Entry, str]:
        """Show what some events are about; what could not be shown, and why."""
        failed: dict[Entry, str] = {}
        touched: dict[Entry, list[Event]] = {}
        for event in batch:
            if event.kind == events.REPOSITORY_REMOVED:
                failed |= await self._updater.show(touched)
                touched.clear()
                await self._discard(event, failed)
            elif event.package_key:
                version = event.data.get("version", "")
                entry = Entry(event.repository_id, event.package_key, event.version_key, version)
                touched.setdefault(entry, []).append(event)
        return failed | await self._updater.show(touched)

    async def _show_repositories(self) -> None:
        serial = self._registry.serial
        if serial == self._configuration:
            return
        for storage in self._registry.storages():
            await self._switch(storage)
        self._retry = self._retry or _Retry()  # packages of a storage whose layout was switched on are pending
        failed: dict[Entry, str] = {}
        for repository in self._registry.all():
            await self._show_repository(repository, failed)
        if failed:
            await self._catalog.write(layout_pending.settle, (), failed)
            self._report(failed)
            self._retry_later()
        self._configuration = serial

    async def _switch(self, storage: Storage) -> None:
        """See that a storage without a readable layout has none, and that the mark of another does not say so."""
        try:
            layout = self.layout_of(await self._stores.of(storage))
            mark = None if layout is None else await self._pools.disk(read_marker, layout)
            if layout is None or storage.readable_layout == (mark is None or mark.kept):
                return
            known = {each.uid for each in self._registry.all() if each.storage_id == storage.id}
            if storage.readable_layout:
                await self._pools.disk(layout.remove, MARK)
            else:
                await self._pools.disk(discard_layout, layout, known)
        except FAILURES as error:
            log.warn(
                "the readable layout of {storage} could not be switched on or off, which the next start tries again: "
                "{reason}",
                storage=storage.name,
                reason=reason_of(error),
            )

    async def _show_repository(self, repository: Repository, failed: dict[Entry, str]) -> None:
        reason = await self._updater.show_repository(repository)
        if reason is not None:
            failed[Entry(repository.id)] = reason

    async def _discard(self, removal: Event, failed: dict[Entry, str]) -> Repository | None:
        """Take away what shows a removed repository; the one that has its name now."""
        self.parts.forget_all()
        uid, name = removal.data["uid"], removal.data["name"]
        try:
            storage = self._registry.storage(removal.data["storage_id"])
        except NotFound:
            return None  # its files stay as they are: they may have been given to another server
        heir = self._registry.find(storage.name, name)
        try:
            layout = self.layout_of(await self._stores.of(storage))
            if layout is not None:
                await self._pools.disk(discard_folder, layout, name, {uid} if heir is None else {uid, heir.uid})
        except FAILURES as error:
            failed[Entry(removal.repository_id)] = reason_of(error)
            return None
        if heir is not None:
            await self._show_repository(heir, failed)
        return heir

    # What could not be shown

    async def _retry_some(self) -> None:
        """Try a page of the pending entries, if it is time to try them."""
        retry = self._retry
        if retry is None or not self._open:
            return
        page = await self._catalog.scan(layout_pending.pending_after, retry.after, PAGE)
        if not page:
            self._end_retry(retry)
            return
        failed: dict[Entry, str] = {}
        tried = []
        for each in page:
            if not self._open:
                break
            failed |= await self._retry_entry(each)
            tried.append(each)
        if not tried:
            return
        await self._catalog.write(layout_pending.settle, tried, failed)
        retry.after = tried[-1]
        retry.reasons.update(failed.values())
        retry.shown += sum(each not in failed for each in tried)

    async def _retry_entry(self, entry: Entry) -> dict[Entry, str]:
        """Show a pending entry; what of it could not be shown, and why."""
        if not entry.package_key:
            failed: dict[Entry, str] = {}
            await self._retry_repository(entry, failed)
            return failed
        try:
            entries = await self._updater.expand(entry) if entry.whole else [entry]
        except FAILURES as error:
            return {entry: reason_of(error)}
        return await self._updater.show(dict.fromkeys(entries, ()))

    async def _retry_repository(self, entry: Entry, failed: dict[Entry, str]) -> None:
        repository = self._registry.find_id(entry.repository_id)
        if repository is not None:
            await self._show_repository(repository, failed)
            return
        removal = await self._catalog.scan(events.removal_of, entry.repository_id)
        heir = None if removal is None else await self._discard(removal, failed)
        if heir is not None:  # what was shown of it meanwhile went with the folder
            await self._catalog.write(layout_pending.add_packages, [heir.id])

    def _end_retry(self, retry: _Retry) -> None:
        self._retry = None
        if retry.shown:
            log.info("the readable layout shows {count} entries that were pending", count=retry.shown)
        futile = retry.reasons and not retry.shown
        self._retry_s = min(LONGEST_RETRY_S, 2 * self._retry_s) if futile else RETRY_S
        self._no_room = not NO_ROOM.isdisjoint(retry.reasons)
        if retry.reasons:
            self._retry_later()

    def _retry_later(self) -> None:
        """Have the pending entries tried again in a while."""
        if self._retry_call is None and self._open and not self._hurrying:
            reactor = IReactorTime(self._pools.reactor)
            self._retry_call = reactor.callLater(self._retry_s, self._retry_now)

    def _hasten_retry(self) -> None:
        """Something could be shown, so there is room: have those tried again soon that wait for it."""
        if self._no_room and self._retry_call is not None and self._retry_s > RETRY_S:
            self._cancel_retry()
            self._retry_s = RETRY_S
            self._retry_later()

    def _retry_now(self) -> None:
        self._retry_call = None
        self._retry = self._retry or _Retry()
        self.notify()

    def _cancel_retry(self) -> None:
        call, self._retry_call = self._retry_call, None
        if call is not None:
            call.cancel()

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
