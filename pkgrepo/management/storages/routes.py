"""The routes that list, add, show, change and remove storages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import UNSET

from pkgrepo.errors import AlreadyExists, Conflict, Invalid, PkgrepoError, existing
from pkgrepo.gateway.image_addresses import check_hides_nothing
from pkgrepo.interfaces import IBlobStore, ICatalog
from pkgrepo.management.api.access_rules import SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import DRY_RUN, Created, Table
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Storage
from pkgrepo.repositories.layout.marker import NO_LAYOUT
from pkgrepo.storage.catalog.blobs.blobs import usage
from pkgrepo.storage.catalog.server import storages

from .folders import FolderSetup
from .schema import NewStorage, StorageChange, StorageRecord, Usage


class Storages(Handlers):
    """The storages of the server."""

    table = Table("storages")

    def __init__(self, services: ManagementServices) -> None:
        super().__init__(services)
        self._folders = services.folders
        self._setup = FolderSetup(services)

    @table.route(
        "GET",
        "/storage",
        access=SYSTEM_MANAGERS,
        summary="List storages",
        answer=StorageRecord,
        paged=True,
        aliases=[("GET", "/storage/list")],
    )
    async def list_page(self, call: Call) -> Page[StorageRecord]:
        """Sorted by name."""
        usage = {each.id: await self._usage(each) for each in self._registry.storages()}
        return call.page_request.page_of_all(
            self._registry.storages(),
            lambda storage: storage.name,
            lambda storage: self._record(storage, usage[storage.id]),
        )

    @table.route(
        "POST",
        "/storage",
        access=SYSTEM_MANAGERS,
        summary="Add a storage",
        body=NewStorage,
        answer=StorageRecord,
        status=201,
        audit="storage.create",
        further=((200, "A storage with this name and the same settings exists already."),),
        aliases=[("POST", "/storage/new/<type>")],
    )
    async def create(self, call: Call, body: NewStorage, type: str = "Local") -> Created | StorageRecord:
        """
        The folder must be empty or absent.

        The answer is 200 if a storage with this name, folder and layout setting exists already, and 409 if the name is
        taken by another one; so scripts can repeat the request.
        """
        if type.lower() != "local":
            raise Invalid("the type of a storage is Local", "/type")
        path = self._setup.path_of(body)
        present = await self._catalog.look(storages.find_storage, body.name)
        if present is not None:
            if self._folders.folder(present) != path or present.readable_layout != _readable(body):
                raise AlreadyExists("storage", body.name)
            return await self._shown(present)
        await self._setup.check_free(path, None)
        uid = await self._setup.new_uid(path)
        settings = await self._setup.make(body.name, path, uid)
        if not _readable(body):
            settings["readable_layout"] = False
        entry = call.entry(body.name, {**settings, "path": str(path)})
        storage = await call.write(
            entry, storages.add_storage, name=body.name, kind="Local", settings=settings, now_ms=call.now_ms, uid=uid
        )
        if not body.active:
            storage = await self._catalog.write(storages.update_storage, storage.id, active=False, now_ms=call.now_ms)
        return Created(await self._shown(storage), f"/api/storage/{storage.uid}")

    @table.route("GET", "/storage/<id>", access=SYSTEM_MANAGERS, summary="Show a storage", answer=StorageRecord)
    async def get(self, _call: Call, id: str) -> StorageRecord:
        """The storage is found by id or name."""
        return await self._shown(await get_storage(self._catalog, id))

    @table.route(
        "PATCH",
        "/storage/<id>",
        access=SYSTEM_MANAGERS,
        summary="Change a storage",
        body=StorageChange,
        answer=StorageRecord,
        audit="storage.update",
        conditional=True,
        aliases=[("PUT", "/storage/<id>")],
    )
    async def change(self, call: Call, body: StorageChange, id: str) -> StorageRecord:
        """The path can change only while the storage has no repositories and no blobs (409 otherwise)."""
        storage = await get_storage(self._catalog, id)
        before = await self._shown(storage)
        call.check_unchanged(before)
        changes = body.given("name", "active")
        if body.name is not UNSET:
            await self._check_name(storage, body.name)
        path = body.path if body.path is not UNSET else (body.settings.path if body.settings is not UNSET else None)
        if path is not None and self._folders.locate(path) != self._folders.folder(storage):
            changes["settings"] = await self._moved(storage, Path(path), before)
        readable = None if body.settings is UNSET else body.settings.readable_layout
        if readable is not None and readable != storage.readable_layout:
            changes["settings"] = {**changes.get("settings", storage.settings), "readable_layout": readable}
        if changes:
            entry = call.entry(storage.name, changes)
            try:
                storage = await call.write(entry, storages.update_storage, storage.id, now_ms=call.now_ms, **changes)
            finally:
                self._services.stores.forget(storage.id)
            for repository in self._registry.all():
                if repository.storage_id == storage.id:
                    self._services.on_change(repository)
        return await self._shown(storage)

    @table.route(
        "DELETE",
        "/storage/<id>",
        access=SYSTEM_MANAGERS,
        summary="Remove a storage that has no repositories",
        status=204,
        query=[DRY_RUN],
        audit="storage.delete",
        conditional=True,
    )
    async def delete(self, call: Call, id: str) -> None:
        """The answer is 409 while repositories use the storage. Its files stay on disk."""
        storage = await get_storage(self._catalog, id)
        call.check_unchanged(await self._shown(storage))
        self._check_unused(storage)
        if call.flag("dry_run"):
            return
        await call.write(call.entry(storage.name), storages.remove_storage, storage.id)
        self._services.stores.forget(storage.id)
        await self._setup.remove_from_list(storage)

    # Below

    async def _moved(self, storage: Storage, path: Path, before: StorageRecord) -> dict[str, Any]:
        """The settings with the new path, after its folder was made; errors say why the path cannot change."""
        self._check_unused(storage)
        if before.usage.blobs:
            raise Conflict(f"storage {storage.name!r} holds {before.usage.blobs} blobs, so its path cannot change")
        path = self._folders.data / path
        await self._setup.check_free(path, storage)
        return {**storage.settings, **await self._setup.make(storage.name, path, storage.uid)}

    async def _check_name(self, storage: Storage, name: str) -> None:
        """Check a new name of the storage against its repositories, whose addresses begin with it."""
        services = self._services
        for each in services.shared.registry.listed():
            if each.storage_id == storage.id and name != storage.name:
                try:
                    services.formats[each.format].check_place(name, each.name)
                except Invalid as error:
                    raise Invalid(f"{error.message} (it has the repository {each.name!r})", "/name") from None
                await self._catalog.look(
                    check_hides_nothing, services.shared.images.pinned_default, each.format, name, each.name
                )

    def _check_unused(self, storage: Storage) -> None:
        users = [each.path for each in self._registry.listed() if each.storage_id == storage.id]
        if users:
            raise Conflict(f"storage {storage.name!r} is used by {', '.join(users[:5])}")

    async def _shown(self, storage: Storage) -> StorageRecord:
        return self._record(storage, await self._usage(storage))

    async def _usage(self, storage: Storage) -> Usage:
        blobs, size = await self._catalog.scan(usage, storage.id)
        free = total = None
        try:
            store: IBlobStore = await self._services.stores.of(storage)
            free, total = store.capacity()
        except (PkgrepoError, OSError):
            pass  # the figures from the catalog are shown without those of the disk
        return Usage(bytes=size, blobs=blobs, free_bytes=free, total_bytes=total)

    def _record(self, storage: Storage, usage: Usage) -> StorageRecord:
        folder = str(self._folders.folder(storage))
        return StorageRecord.from_attributes(
            storage,
            id=storage.uid,
            type=storage.kind,
            settings={"path": folder, "readable_layout": storage.readable_layout},
            usage=usage,
            warnings=[] if storage.readable_layout else [NO_LAYOUT],
        )


async def get_storage(catalog: ICatalog, id: str) -> Storage:
    """The storage with this id or name. :raises NotFound: there is none"""
    storage: Storage = existing(await catalog.look(storages.find_storage, id), "storage", id)
    return storage


def _readable(body: NewStorage) -> bool:
    settings = (body.settings, *((body.config.settings,) if body.config else ()))
    return all(each.readable_layout is not False for each in settings)
