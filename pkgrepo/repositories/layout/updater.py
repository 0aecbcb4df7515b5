"""Brings entries of the readable layout up to date: reads what they are now, and writes what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import NotFound
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository
from pkgrepo.repositories.context import FAILURES, MaintenanceContext, MaintenanceWork, reason_of
from pkgrepo.repositories.format import load_formats
from pkgrepo.repositories.layout.images.changes import ImageChanges
from pkgrepo.repositories.layout.images.directory import ImageLayoutWriter
from pkgrepo.repositories.layout.images.large_images import LargeImages
from pkgrepo.repositories.layout.trees import TreeLayoutWriter
from pkgrepo.repositories.layout.writer import FileLayoutWriter, LayoutWriter
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.packages.events import Event, paths_of
from pkgrepo.storage.catalog.server.layout_pending import Entry

AT_ONCE = 32  # entries that a thread shows in one call: some 10 ms of a fast disk
ATTEMPTS = 2  # to show a large image


@frozen
class _Task:
    """An entry and the writer that shows it."""

    writer: LayoutWriter[Any]
    entry: Entry


class LayoutUpdater(MaintenanceWork):
    """Shows entries as they are now; ``large_images`` shows the images that are too large to be read at once."""

    def __init__(self, context: MaintenanceContext) -> None:
        super().__init__(context)
        self.large_images = LargeImages(context.catalog, context.pools)

    async def show(self, changed: Mapping[Entry, Sequence[Event]], *, doubtful: bool = False) -> dict[Entry, str]:
        """
        Make the layout show what some entries are now. Returns those that could not be shown, with the reasons.

        The events of an entry say what changed in it; without events everything may have changed. Up to ``AT_ONCE``
        entries cost one hop to a thread and back. With ``doubtful`` a part of them may have been shown before a crash.
        """
        await self._registry.refresh()  # repositories that are not in it count as removed
        failed: dict[Entry, str] = {}
        writers: dict[int, LayoutWriter[Any] | str | None] = {}
        tasks: dict[_Task, list[Event]] = {}
        for each, its_events in changed.items():
            if each.repository_id not in writers:
                writers[each.repository_id] = await self._writer_or_reason(each.repository_id)
            writer = writers[each.repository_id]
            if writer is None:
                continue
            if isinstance(writer, str):
                failed[each] = writer
                continue
            _add_tasks(tasks, writer, each, its_events)
        waiting = list(tasks)
        while waiting:
            some, waiting = waiting[:AT_ONCE], waiting[AT_ONCE:]
            found = list(zip(some, await self._catalog.scan(_read, some), strict=True))
            whole = [each for each in found if not _is_large(*each)]
            for task, snapshot, reason in await self._pools.disk(_show, whole):
                await self._show_again(task, snapshot, reason, failed)
            for task, snapshot in found:
                if _is_large(task, snapshot):
                    found_events = tasks[task]
                    changes = ImageChanges.of(found_events) if found_events else ImageChanges(whole=True)
                    await self._show_large(task, changes, failed)
        if doubtful:
            await self._remove_unused(changed, writers, failed)
        return failed

    async def _remove_unused(
        self,
        changed: Mapping[Entry, Sequence[Event]],
        writers: Mapping[int, LayoutWriter[Any] | str | None],
        failed: dict[Entry, str],
    ) -> None:
        """Remove files that events name, and no version has any more, from where only a lost sidecar knew of them."""
        for repository_id, writer in writers.items():
            if not isinstance(writer, LayoutWriter) or not writer.places_vary:
                continue
            its = {entry: found for entry, found in changed.items() if entry.repository_id == repository_id}
            paths = sorted({path for found in its.values() for each in found for path in paths_of(each)})
            try:
                if places := await self._catalog.scan(writer.unused, paths):
                    await self._pools.disk(writer.remove, places)
            except FAILURES as error:
                failed |= dict.fromkeys(its, reason_of(error))

    async def show_repository(self, repository: Repository) -> str | None:
        """Make the layout show a repository's own document. Returns why that failed, or None."""
        try:
            writer = await open_writer(self._context, repository)
            if writer is not None:
                await self._pools.disk(writer.show_repository)
        except FAILURES as error:
            return reason_of(error)
        return None

    async def expand(self, entry: Entry) -> list[Entry]:
        """
        Return the entries of a package and of each of its versions.

        :raises PkgrepoError: the storage cannot be opened
        """
        await self._registry.refresh()
        alone = evolve(entry, whole=False)
        repository = self._registry.find_id(entry.repository_id)
        writer = None if repository is None else await open_writer(self._context, repository)
        if writer is None:
            return [alone]
        found = await self._catalog.scan(_entries, writer, entry.package_key)
        return [alone, *(evolve(alone, version_key=key, version=text) for key, text in found if text)]

    async def _writer_or_reason(self, repository_id: int) -> LayoutWriter[Any] | str | None:
        repository = self._registry.find_id(repository_id)
        try:
            return None if repository is None else await open_writer(self._context, repository)
        except FAILURES as error:
            return reason_of(error)

    async def _show_large(self, task: _Task, changes: ImageChanges, failed: dict[Entry, str]) -> None:
        """Show a large image, of which this changed."""
        assert isinstance(task.writer, ImageLayoutWriter)
        for attempt in range(ATTEMPTS):
            try:
                await self.large_images.show(task.writer, task.entry.package_key, changes)
            except FAILURES as error:  # such as a blob that the garbage collection removed a moment ago
                if attempt == ATTEMPTS - 1:
                    self._give_up(task, reason_of(error), failed)
            else:
                return

    async def _show_again(self, task: _Task, snapshot: object, reason: str, failed: dict[Entry, str]) -> None:
        """Read an entry again and show it, unless it has not changed since the failed attempt."""
        while True:
            before, snapshot = snapshot, (await self._catalog.scan(_read, [task]))[0]
            if snapshot == before:
                self._give_up(task, reason, failed)
                return
            if _is_large(task, snapshot):
                await self._show_large(task, ImageChanges(whole=True), failed)
                return
            # It was deleted meanwhile, and the garbage collection removed its blobs.
            left = await self._pools.disk(_show, [(task, snapshot)])
            if not left:
                return
            reason = left[0][2]

    def _give_up(self, task: _Task, reason: str, failed: dict[Entry, str]) -> None:
        if isinstance(task.writer, ImageLayoutWriter):
            self.large_images.forget(task.writer, task.entry.package_key)
        failed[task.entry] = reason


def _add_tasks(
    tasks: dict[_Task, list[Event]], writer: LayoutWriter[Any], entry: Entry, its_events: Sequence[Event]
) -> None:
    """Add the tasks for an entry, and for the package that it belongs to, if any."""
    if entry.version and not writer.whole_packages:
        tasks.setdefault(_Task(writer, entry), [])
    if entry.package_key:
        tasks.setdefault(_Task(writer, evolve(entry, version_key="", version="")), []).extend(its_events)


def _read(reader: Reader, tasks: Sequence[_Task]) -> list[object]:
    """Return what each entry is now."""
    return [task.writer.read(reader, task.entry.package_key, task.entry.version_key) for task in tasks]


def _entries(reader: Reader, writer: LayoutWriter[Any], package_key: str) -> list[tuple[str, str]]:
    package = packages.find_package(reader, writer.repository.id, package_key)
    return [] if package is None else writer.entries(reader, package)


def _is_large(task: _Task, snapshot: object) -> bool:
    """Whether an entry is an image that is too large to be read at once, or has nothing left."""
    return snapshot is None and isinstance(task.writer, ImageLayoutWriter)


def _show(tasks: Sequence[tuple[_Task, object]]) -> list[tuple[_Task, object, str]]:
    """Show each entry. Returns those that could not be snapshot, with the reasons."""
    failed = []
    gil = GilReleaser()
    for task, snapshot in tasks:
        gil.release_if_due()
        try:
            task.writer.show(task.entry.package_key, task.entry.version, snapshot)
        except FAILURES as error:
            failed.append((task, snapshot, reason_of(error)))
    return failed


async def open_writer(context: MaintenanceContext, repository: Repository) -> LayoutWriter[Any] | None:
    """
    Return the writer for a repository, or None where its storage keeps no readable layout or was removed.

    What is staged is not shown: a catalog that is rebuilt from the layout must not publish it.

    :raises PkgrepoError: the storage cannot be opened
    """
    format_ = context.formats.get(repository.format)
    if repository.stage is not None:
        return None
    try:
        storage = context.registry.storage(repository.storage_id)
    except NotFound:
        return None  # storage and repository were removed a moment ago
    layout = await context.open_layout(storage)
    if format_ is None or layout is None or not storage.readable_layout:
        return None
    await load_formats([format_], context.pools.cpu)  # another process may have added the repository right now
    if format_.images is not None:
        return ImageLayoutWriter(layout, repository)
    if format_.tree is not None:
        return TreeLayoutWriter(layout, repository, format_.tree)
    return FileLayoutWriter(layout, repository, format_.layout)
