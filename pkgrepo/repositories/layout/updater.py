"""Brings entries of the readable layout up to date: reads what they are now, and writes what differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from pkgrepo.errors import NotFound, PkgrepoError
from pkgrepo.interfaces import IBlobStore, ICatalog, IFormat, IImageFormat, Reader
from pkgrepo.model import Repository
from pkgrepo.repositories.layout.images.changes import ImageChanges
from pkgrepo.repositories.layout.images.directory import ImageLayoutWriter
from pkgrepo.repositories.layout.images.large_images import LargeImages
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.stores import Stores
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.packages.events import Event
from pkgrepo.storage.catalog.server.layout_pending import Entry
from pkgrepo.storage.gil import GilReleaser
from pkgrepo.storage.layout_folder import LayoutFolder
from pkgrepo.storage.pools import Pools

from .writer import FileLayoutWriter, LayoutWriter

AT_ONCE = 32  # entries that a thread shows in one go: some 10 ms of a fast disk
ATTEMPTS = 2  # to show an image part by part

FAILURES = (OSError, PkgrepoError)  # of the disk, and of blobs that are not there


@frozen
class _Task:
    """An entry, and who shows it."""

    writer: LayoutWriter[Any]
    entry: Entry


class LayoutUpdater:
    """
    Shows entries as they are now.

    ``parts`` are images that are shown part by part.
    """

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
        self._formats = formats
        self._layout_of = layout_of
        self.parts = LargeImages(catalog, pools)

    async def show(self, touched: Mapping[Entry, Sequence[Event]]) -> dict[Entry, str]:
        """
        Make the layout show what these are now; those that could not be shown, and why in a few words.

        The events of an entry tell what changed of it; none mean that everything may have. Many entries cost one hop
        to a thread and back.
        """
        failed: dict[Entry, str] = {}
        writers: dict[int, LayoutWriter[Any] | str | None] = {}
        tasks: dict[_Task, list[Event]] = {}
        for each, told in touched.items():
            if each.repository_id not in writers:
                writers[each.repository_id] = await self._writer_or_reason(each.repository_id)
            writer = writers[each.repository_id]
            if writer is None:
                continue
            if isinstance(writer, str):
                failed[each] = writer
                continue
            if each.version and not writer.whole_packages:
                tasks.setdefault(_Task(writer, each), [])
            tasks.setdefault(_Task(writer, evolve(each, version_key="", version="")), []).extend(told)
        waiting = list(tasks)
        while waiting:
            some, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
            found = list(zip(some, await self._catalog.scan(_read, some), strict=True))
            whole = [each for each in found if not _is_in_parts(*each)]
            for task, shown, reason in await self._pools.disk(_show, whole):
                await self._show_again(task, shown, reason, failed)
            for task, shown in found:
                if _is_in_parts(task, shown):
                    told = tasks[task]
                    await self._show_parts(task, ImageChanges.of(told) if told else ImageChanges(whole=True), failed)
        return failed

    async def show_repository(self, repository: Repository) -> str | None:
        """Make the layout show a repository's own document; why it could not, or None."""
        try:
            writer = await self.writer(repository)
            if writer is not None:
                await self._pools.disk(writer.show_repository)
        except FAILURES as error:
            return reason_of(error)
        return None

    async def expand(self, entry: Entry) -> list[Entry]:
        """
        A package with each of its versions.

        :raises PkgrepoError: the storage cannot be opened
        """
        alone = evolve(entry, whole=False)
        repository = self._registry.find_id(entry.repository_id)
        writer = None if repository is None else await self.writer(repository)
        if writer is None:
            return [alone]
        found = await self._catalog.scan(_entries, writer, entry.package_key)
        return [alone, *(evolve(alone, version_key=key, version=text) for key, text in found if text)]

    async def writer(self, repository: Repository) -> LayoutWriter[Any] | None:
        """
        The writer for a repository, or None where its storage keeps no readable layout or is gone.

        :raises PkgrepoError: the storage cannot be opened
        """
        format_ = self._formats.get(repository.format)
        try:
            storage = self._registry.storage(repository.storage_id)
        except NotFound:
            return None  # both were removed at this moment
        store = await self._stores.of(storage)
        layout = self._layout_of(store)
        if format_ is None or layout is None or not storage.readable_layout:
            return None
        if IImageFormat.providedBy(format_):
            return ImageLayoutWriter(layout, repository)
        return FileLayoutWriter(layout, repository, format_)

    async def _writer_or_reason(self, repository_id: int) -> LayoutWriter[Any] | str | None:
        repository = self._registry.find_id(repository_id)
        try:
            return None if repository is None else await self.writer(repository)
        except FAILURES as error:
            return reason_of(error)

    async def _show_parts(self, task: _Task, changes: ImageChanges, failed: dict[Entry, str]) -> None:
        """Show an image part by part, by what changed of it."""
        assert isinstance(task.writer, ImageLayoutWriter)
        for attempt in range(ATTEMPTS):
            try:
                await self.parts.show(task.writer, task.entry.package_key, changes)
            except FAILURES as error:  # which may be the gc: it can be faster than this
                if attempt == ATTEMPTS - 1:
                    self._give_up(task, reason_of(error), failed)
            else:
                return

    async def _show_again(self, task: _Task, shown: object, reason: str, failed: dict[Entry, str]) -> None:
        """Show what could not be shown as it was read a moment ago."""
        while True:
            before, shown = shown, (await self._catalog.scan(_read, [task]))[0]
            if shown == before:
                self._give_up(task, reason, failed)
                return
            if _is_in_parts(task, shown):
                await self._show_parts(task, ImageChanges(whole=True), failed)
                return
            # It was taken back meanwhile, and the gc was faster than this.
            left = await self._pools.disk(_show, [(task, shown)])
            if not left:
                return
            reason = left[0][2]

    def _give_up(self, task: _Task, reason: str, failed: dict[Entry, str]) -> None:
        if isinstance(task.writer, ImageLayoutWriter):
            self.parts.forget(task.writer, task.entry.package_key)
        failed[task.entry] = reason


def reason_of(error: BaseException) -> str:
    """Why something could not be shown, without a path."""
    return error.strerror or "the disk failed" if isinstance(error, OSError) else str(error)


def _read(reader: Reader, tasks: Sequence[_Task]) -> list[object]:
    """What every entry is now."""
    return [task.writer.read(reader, task.entry.package_key, task.entry.version_key) for task in tasks]


def _entries(reader: Reader, writer: LayoutWriter[Any], package_key: str) -> list[tuple[str, str]]:
    package = packages.find_package(reader, writer.repository.id, package_key)
    return [] if package is None else writer.entries(reader, package)


def _is_in_parts(task: _Task, shown: object) -> bool:
    """Whether an entry is an image that is not shown at once."""
    return shown is None and isinstance(task.writer, ImageLayoutWriter)


def _show(tasks: Sequence[tuple[_Task, object]]) -> list[tuple[_Task, object, str]]:
    """Have the layout show each; those that it could not, and why."""
    failed = []
    gil = GilReleaser()
    for task, shown in tasks:
        gil.release_if_due()
        try:
            task.writer.show(task.entry.package_key, task.entry.version, shown)
        except FAILURES as error:
            failed.append((task, shown, reason_of(error)))
    return failed
