"""
Keeps the readable layout in step with the catalog.

It follows the events. Most name a package and a version, and whatever that version is *now* is what its directory is
made to show, so that an event may be seen twice and none is needed in its order. Only with the removal of a repository
its folder goes, before anything is shown of another that has got its name since. The last event that was followed is
kept in the catalog; a crash repeats some work and loses none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from attrs import evolve, frozen
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.descriptors import is_out_of_descriptors
from pkgrepo.errors import BlobMissing, NotFound
from pkgrepo.interfaces import IBlobStore, ICatalog, IFormat, Reader
from pkgrepo.model import Repository
from pkgrepo.storage.catalog import events, settings
from pkgrepo.storage.catalog.events import Event
from pkgrepo.storage.pools import Pools
from pkgrepo.storage.readable import ReadableLayout
from pkgrepo.storage.yielding import Yielding

from .image_changes import ImageChanges
from .image_layout import ImageLayoutWriter
from .image_parts import ImageParts
from .layout_writer import FileLayoutWriter, LayoutWriter
from .registry import Registry
from .removed import discard_folder
from .stores import Stores

log = Logger()

CURSOR = "readable_layout_cursor"
BATCH = 1000  # events; however many versions of a package they are about, what is told of the package is shown once
AT_ONCE = 32  # entries that a thread shows in one go: some 10 ms of a fast disk
ATTEMPTS = 2  # to show an image part by part
DESCRIPTORS_S = 1.0  # seconds until what failed for want of a file descriptor is tried again
PAUSE_S = 0.1  # seconds at least between two rounds while changes come without end
LONGEST_PAUSE_S = 10.0
RESTS = 3  # times as long as a round took, so that much work leaves time to others
BYTES_PER_S = 16 * 1024 * 1024  # of documents of big images; each change of one writes its index again


def pause_after(round_s: float, written: int = 0) -> float:
    """How many seconds to let changes gather after a round that took so many, and wrote so many bytes of documents."""
    return max(PAUSE_S, min(LONGEST_PAUSE_S, max(RESTS * round_s, written / BYTES_PER_S)))


@frozen
class _Entry:
    """What an event names: a version, or with empty words for it the package alone."""

    repository_id: int
    package_key: str
    version_key: str
    version: str


@frozen
class _Task:
    """An entry, and who shows it."""

    writer: LayoutWriter[Any]
    entry: _Entry


class LayoutFollower(Service):
    """
    Follows the events of all repositories, a batch at a time, whenever it is poked.

    ``image_formats`` are the names of the formats whose packages are images.
    """

    def __init__(
        self,
        *,
        catalog: ICatalog,
        registry: Registry,
        stores: Stores,
        pools: Pools,
        formats: Mapping[str, IFormat],
        layout_of: Callable[[IBlobStore], ReadableLayout | None],
        image_formats: Collection[str] = (),
    ) -> None:
        self._catalog = catalog
        self._registry = registry
        self._stores = stores
        self._pools = pools
        self._formats = formats
        self._image_formats = image_formats
        self.layout_of = layout_of
        self.parts = ImageParts(catalog, pools)
        self._following: Deferred[None] | None = None
        self._again = False
        self._configuration = -1
        self._pausing: Deferred[None] | None = None

    def startService(self) -> None:
        """Catch up with what happened since the last run."""
        super().startService()  # type: ignore[no-untyped-call]
        self.poke()

    def stopService(self) -> Deferred[None] | None:
        """Finish the batch in hand."""
        super().stopService()  # type: ignore[no-untyped-call]
        if self._pausing is not None:
            self._pausing.cancel()
        return self._following

    def poke(self, _repository: Repository | None = None) -> None:
        """Something changed: follow soon."""
        self._again = True
        if self._following is None and self.running:
            following = self._following = Deferred.fromCoroutine(self._follow())
            following.addErrback(lambda failure: log.failure("the readable layout fell behind", failure=failure))
            following.addCallback(self._done)

    def _done(self, _: object) -> None:
        self._following = None

    async def _follow(self) -> None:
        while self._again and self.running:
            self._again = False
            began, written = monotonic(), self.parts.written
            await self._show_repositories()
            cursor = int(self._catalog.look(settings.get, CURSOR) or 0)
            more = True
            while more and self.running:
                batch = await self._catalog.scan(events.events_after, cursor, BATCH)
                more = len(batch) == BATCH
                if batch:
                    await self._show_batch(batch)
                    cursor = batch[-1].seq
                    await self._catalog.write(settings.put, CURSOR, str(cursor))
            if self._again:
                await self._pause(pause_after(monotonic() - began, self.parts.written - written))

    async def _pause(self, seconds: float) -> None:
        """Let changes gather while they come without end: one of ten at once costs a fifth of one by itself."""
        if not self.running:
            return
        self._pausing = deferLater(IReactorTime(self._pools.reactor), seconds)
        with suppress(CancelledError):
            await self._pausing

    async def _show_batch(self, batch: Sequence[Event]) -> None:
        touched: dict[_Entry, list[Event]] = {}
        for event in batch:
            if event.kind == events.REPOSITORY_REMOVED:
                await self._show(touched)
                touched.clear()
                await self._discard(**event.data)
            elif event.package_key:
                version = event.data.get("version", "")
                entry = _Entry(event.repository_id, event.package_key, event.version_key, version)
                touched.setdefault(entry, []).append(event)
        await self._show(touched)

    async def _show_repositories(self) -> None:
        if self._registry.serial == self._configuration:
            return
        self._configuration = self._registry.serial
        for repository in self._registry.all():
            writer = await self.writer(repository)
            if writer is not None:
                await self._pools.disk(writer.show_repository)

    async def _discard(self, uid: str, storage_id: int, name: str) -> None:
        """Take away what shows a removed repository."""
        self.parts.forget_all()
        try:
            storage = self._registry.storage(storage_id)
        except NotFound:
            return  # its files stay as they are: they may have been given to another server
        layout = self.layout_of(await self._stores.of(storage))
        if layout is None:
            return
        heir = self._registry.find(storage.name, name)
        try:
            await self._pools.disk(discard_folder, layout, name, {uid} if heir is None else {uid, heir.uid})
        except OSError:
            log.failure(
                "{repository} was removed, and its folder in the readable layout cannot be; run verify --repair",
                repository=f"{storage.name}/{name}",
            )
        writer = None if heir is None else await self.writer(heir)
        if writer is not None:
            await self._pools.disk(writer.show_repository)

    async def _show(self, touched: Mapping[_Entry, Sequence[Event]]) -> None:
        """Make the layout show what these are now; several of them for one hop to a thread and back."""
        writers: dict[int, LayoutWriter[Any] | None] = {}
        tasks: dict[_Task, list[Event]] = {}
        for each, told in touched.items():
            if each.repository_id not in writers:
                repository = self._registry.find_id(each.repository_id)
                writers[each.repository_id] = None if repository is None else await self.writer(repository)
            writer = writers[each.repository_id]
            if writer is None:
                continue
            if each.version and not writer.shows_packages:
                tasks.setdefault(_Task(writer, each), [])
            tasks.setdefault(_Task(writer, evolve(each, version_key="", version="")), []).extend(told)
        waiting = list(tasks)
        while waiting:
            some, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
            found = list(zip(some, await self._catalog.scan(_read, some), strict=True))
            whole = [each for each in found if not _is_in_parts(*each)]
            for failed in await self._pools.disk(_show, whole):
                await self._show_again(*failed)
            for task, shown in found:
                if _is_in_parts(task, shown):
                    await self._show_parts(task, ImageChanges.of(tasks[task]))

    async def _show_parts(self, task: _Task, changes: ImageChanges) -> None:
        """Show an image part by part, by what changed of it."""
        assert isinstance(task.writer, ImageLayoutWriter)
        attempts = ATTEMPTS
        while attempts:
            try:
                await self.parts.show(task.writer, task.entry.package_key, changes)
            except (OSError, BlobMissing) as error:  # which may be the gc: it can be faster than this
                if await self._waits_for_descriptors(error):
                    continue
                attempts -= 1
                if not attempts:
                    self._tell(task, Failure())
            else:
                return

    async def _waits_for_descriptors(self, error: BaseException | None) -> bool:
        """Whether what failed is worth another try, once there may be file descriptors again."""
        if not self.running or not is_out_of_descriptors(error):
            return False
        await self._pause(DESCRIPTORS_S)
        return True

    async def _show_again(self, task: _Task, shown: object, failure: Failure) -> None:
        """Show what could not be shown as it was read a moment ago, or tell that it cannot."""
        while True:
            before, shown = shown, (await self._catalog.scan(_read, [task]))[0]
            if shown == before and not await self._waits_for_descriptors(failure.value):
                self._tell(task, failure)
                return
            if _is_in_parts(task, shown):
                await self._show_parts(task, ImageChanges(whole=True))
                return
            # It was taken back meanwhile, and the gc was faster than this.
            failed = await self._pools.disk(_show, [(task, shown)])
            if not failed:
                return
            failure = failed[0][2]

    def _tell(self, task: _Task, failure: Failure) -> None:
        if isinstance(task.writer, ImageLayoutWriter):
            self.parts.forget(task.writer, task.entry.package_key)
        log.failure(
            "{package} {version} of {repository} is not in the readable layout; run verify --repair",
            package=task.entry.package_key,
            version=task.entry.version,
            repository=task.writer.repository.path,
            failure=failure,
        )

    async def writer(self, repository: Repository) -> LayoutWriter[Any] | None:
        """The writer for a repository, or None where its storage has no files or is gone."""
        format_ = self._formats.get(repository.format)
        try:
            storage = self._registry.storage(repository.storage_id)
        except NotFound:
            return None  # both were removed at this moment
        store = await self._stores.of(storage)
        layout = self.layout_of(store)
        if format_ is None or layout is None:
            return None
        if repository.format in self._image_formats:
            return ImageLayoutWriter(layout, repository)
        return FileLayoutWriter(layout, repository, format_)


def _read(reader: Reader, tasks: Sequence[_Task]) -> list[object]:
    """What every entry is now."""
    return [task.writer.read(reader, task.entry.package_key, task.entry.version_key) for task in tasks]


def _is_in_parts(task: _Task, shown: object) -> bool:
    """Whether an entry is an image that is not shown at once."""
    return shown is None and isinstance(task.writer, ImageLayoutWriter)


def _show(tasks: Sequence[tuple[_Task, object]]) -> list[tuple[_Task, object, Failure]]:
    """Have the layout show each; those that it could not, and why."""
    failed = []
    yielding = Yielding()
    for task, shown in tasks:
        yielding.now_and_then()
        try:
            task.writer.show(task.entry.package_key, task.entry.version, shown)
        except (OSError, BlobMissing):
            failed.append((task, shown, Failure()))
    return failed
