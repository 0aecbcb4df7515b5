"""Looks after the layout of each storage as a whole: its marker, and the folders of removed repositories."""

from __future__ import annotations

from datetime import UTC, datetime

from twisted.logger import Logger

from pkgrepo.errors import NotFound, PkgrepoError
from pkgrepo.model import Repository, Storage, folder_of
from pkgrepo.repositories.context import FAILURES, MaintenanceContext, MaintenanceWork, reason_of
from pkgrepo.repositories.layout.marker import discard_folder
from pkgrepo.storage.catalog.packages.events import Event
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.server.layout_pending import Backlog

from .marker import MARKER, CatalogStatus, discard_layout, read_marker, write_status

log = Logger()


class StorageLayouts(MaintenanceWork):
    """The readable layouts of all storages of the catalog."""

    def __init__(self, context: MaintenanceContext) -> None:
        super().__init__(context)
        self._opened_at: datetime | None = None

    async def mark_open(self, *, joining: bool = False) -> None:
        """
        Write into each marker that a server runs, so that the layout may be behind.

        With ``joining`` others run, and what they have written counts for this process, too: the last one closes it.
        """
        at = self._opened_at = datetime.now(UTC)
        for storage in await self._with_layout():
            found = await self._open_status(storage) if joining else None
            if found is not None:
                self._opened_at = found.at
            else:
                await self._write_status(storage, CatalogStatus(at=at))

    async def mark_closed(self, backlog: Backlog) -> None:
        """Write into each marker how many changes the layout lacks."""
        at = datetime.now(UTC)
        for storage in await self._with_layout():
            missing = backlog.behind + backlog.failed.get(storage.id, 0)
            if missing:
                log.warn(
                    "the readable layout of {storage} lacks {count} changes; the next start goes on",
                    storage=storage.name,
                    count=missing,
                )
            await self._write_status(storage, CatalogStatus(at=at, missing=missing, begun=self._opened_at))

    async def sync(self) -> None:
        """
        Make everything durable that was written to the layouts.

        :raises OSError: some of it may be lost
        """
        for storage in await self._with_layout():
            try:
                layout = await self._context.open_layout(storage)
            except PkgrepoError:
                continue  # it cannot be opened, so that nothing was written to it
            if layout is not None:
                await self._pools.disk(layout.sync_all)

    async def apply_settings(self) -> None:
        """
        Remove the layouts of storages that are to have none, and the marker of one that is to have a layout again.

        What fails is logged; the next start tries it again.
        """
        await self._registry.refresh()
        for storage in self._registry.storages():
            try:
                await self._apply_setting(storage)
            except FAILURES as error:
                log.warn(
                    "the readable layout of {storage} could not be switched on or off, which the next start tries "
                    "again: {reason}",
                    storage=storage.name,
                    reason=reason_of(error),
                )

    async def discard_removed(self, removal: Event) -> Repository | None:
        """
        Remove the folder of the repository that an event says was removed. Returns the one that has its name now.

        :raises OSError: the folder cannot be removed; :raises PkgrepoError: the storage cannot be opened
        """
        await self._registry.refresh()  # it must not be older than the removal
        uid, name = removal.data["uid"], removal.data["name"]
        try:
            storage = self._registry.storage(removal.data["storage_id"])
        except NotFound:
            return None  # its files stay: the storage may have been given to another server
        successor = self._registry.find(storage.name, name)
        layout = await self._context.open_layout(storage)
        if layout is not None:
            uids = {uid} if successor is None else {uid, successor.uid}
            await self._pools.disk(discard_folder, layout, folder_of(name), uids)
        return successor

    async def _with_layout(self) -> list[Storage]:
        await self._registry.refresh()
        return [each for each in self._registry.storages() if each.readable_layout]

    async def _open_status(self, storage: Storage) -> CatalogStatus | None:
        """The status of this catalog in a marker, if it is open."""
        catalog = await self._catalog.look(settings.server_uid)
        try:
            layout = await self._context.open_layout(storage)
            marker = None if layout is None else await self._pools.disk(read_marker, layout)
        except FAILURES:
            return None
        found = None if marker is None or catalog is None else marker.catalogs.get(catalog)
        return found if found is not None and found.missing is None else None

    async def _write_status(self, storage: Storage, status: CatalogStatus) -> None:
        found = await self._catalog.look(settings.server_uid)
        catalog = await self._catalog.write(settings.ensure_server_uid) if found is None else found
        known = {repository.uid for repository in self._registry.all()}
        try:
            layout = await self._context.open_layout(storage)
            if layout is not None:
                await self._pools.disk(write_status, layout, catalog, status, known)
        except FAILURES as error:
            log.warn(
                "the readable layout of {storage} could not be marked: {reason}",
                storage=storage.name,
                reason=reason_of(error),
            )

    async def _apply_setting(self, storage: Storage) -> None:
        layout = await self._context.open_layout(storage)
        marker = None if layout is None else await self._pools.disk(read_marker, layout)
        if layout is None or storage.readable_layout == (marker is None or marker.kept):
            return
        if storage.readable_layout:
            await self._pools.disk(layout.remove, MARKER)
        else:
            ours = [each for each in self._registry.all() if each.storage_id == storage.id]
            await self._pools.disk(discard_layout, layout, {each.uid: folder_of(each.name) for each in ours})
