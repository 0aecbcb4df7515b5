"""
Keeps the readable layout in step with the catalog.

It follows the events. Most name a package and a version, and whatever that version is *now* is what its directory is
made to show, so that an event may be seen twice and none is needed in its order. Only with the removal of a repository
its folder goes, before anything is shown of another that has got its name since. The last event that was followed is
kept in the catalog; a crash repeats some work and loses none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pkgrepo.errors import BlobMissing, NotFound
from pkgrepo.interfaces import IBlobStore, ICatalog, IFormat
from pkgrepo.model import Repository
from pkgrepo.storage.catalog import events, settings
from pkgrepo.storage.pools import Pools
from pkgrepo.storage.readable import ReadableLayout

from .image_layout import ImageLayoutWriter
from .layout_writer import FileLayoutWriter, LayoutWriter
from .registry import Registry
from .removed import discard_folder
from .stores import Stores

log = Logger()

CURSOR = "readable_layout_cursor"
BATCH = 200


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
        self._following: Deferred[None] | None = None
        self._again = False
        self._configuration = -1

    def startService(self) -> None:
        """Catch up with what happened since the last run."""
        super().startService()  # type: ignore[no-untyped-call]
        self.poke()

    def stopService(self) -> Deferred[None] | None:
        """Finish the batch in hand."""
        super().stopService()  # type: ignore[no-untyped-call]
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
            await self._show_repositories()
            cursor = int(self._catalog.look(settings.get, CURSOR) or 0)
            while self.running:
                batch = await self._catalog.scan(events.events_after, cursor, BATCH)
                if not batch:
                    break
                cursor = batch[-1].seq
                seen: set[tuple[object, ...]] = set()
                for event in batch:
                    touched = (event.repository_id, event.package_key, event.version_key, event.data.get("version", ""))
                    if event.kind == events.REPOSITORY_REMOVED:
                        await self._discard(**event.data)
                    elif touched not in seen:
                        seen.add(touched)
                        await self._show(*touched)
                await self._catalog.write(settings.put, CURSOR, str(cursor))

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

    async def _show(self, repository_id: int, package_key: str, version_key: str, version: str) -> None:
        repository = self._registry.find_id(repository_id)
        if repository is None or not package_key:
            return
        writer = await self.writer(repository)
        if writer is None:
            return
        shown = await self._catalog.scan(writer.read, package_key, version_key)
        while True:
            try:
                await self._pools.disk(writer.show, package_key, version, shown)
            except (OSError, BlobMissing):
                before, shown = shown, await self._catalog.scan(writer.read, package_key, version_key)
                if shown != before:
                    continue  # it was taken back meanwhile, and the gc was faster than this
                log.failure(
                    "{package} {version} of {repository} is not in the readable layout; run verify --repair",
                    package=package_key,
                    version=version,
                    repository=repository.path,
                )
            return

    async def writer(self, repository: Repository) -> LayoutWriter[Any] | None:
        """The writer for a repository, or None where its storage has no files."""
        format_ = self._formats.get(repository.format)
        store = await self._stores.of(self._registry.storage(repository.storage_id))
        layout = self.layout_of(store)
        if format_ is None or layout is None:
            return None
        if repository.format in self._image_formats:
            return ImageLayoutWriter(layout, repository)
        return FileLayoutWriter(layout, repository, format_)
