"""The routes that list, add, show, change and remove storages."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec import UNSET
from twisted.logger import Logger

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
from pkgrepo.storage.buckets import KIND
from pkgrepo.storage.catalog.blobs.blobs import usage
from pkgrepo.storage.catalog.server import storages

from .buckets import BucketSetup, check_local, shown_settings
from .folders import FolderSetup
from .schema import NewStorage, StorageChange, StorageRecord, Usage

log = Logger()


class Storages(Handlers):
    """The storages of the server."""

    table = Table("storages")

    def __init__(self, services: ManagementServices) -> None:
        super().__init__(services)
        self._folders = services.folders
        self._setup = FolderSetup(services)
        self._buckets = BucketSetup(services.buckets)

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
        The folder, or the prefix of the bucket, must be empty or absent.

        The answer is 200 if a storage with this name, folder and layout setting exists already, and 409 if the name is
        taken by another one; so scripts can repeat the request.
        """
        kinds = {each.lower() for each in (type, body.type, body.config.type if body.config else "local")} - {"local"}
        if kinds == {"s3"}:
            return await self._create_bucket(call, body)
        if kinds:
            raise Invalid("the type of a storage is Local or S3", "/type")
        check_local(body.config.settings if body.config else body.settings)
        path = self._setup.path_of(body)
        present = await self._catalog.look(storages.find_storage, body.name)
        if present is not None:
            if (
                not present.is_local
                or self._folders.folder(present) != path
                or present.readable_layout != _readable(body)
            ):
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
        return await self._created(call, body, storage)

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
        if storage.before is not None and (body.path is not UNSET or body.settings is not UNSET):
            raise Conflict(f"storage {storage.name!r} is being moved by 'pkgrepo migrate-storage'; let that end first")
        if not storage.is_local:
            return await self._change_bucket(call, storage, changes, body)
        if body.settings is not UNSET:
            check_local(body.settings)
        path = body.path if body.path is not UNSET else (body.settings.path if body.settings is not UNSET else None)
        if path is not None and self._folders.locate(path) != self._folders.folder(storage):
            changes["settings"] = await self._moved(storage, Path(path), before)
        readable = None if body.settings is UNSET else body.settings.readable_layout
        if readable is not None and readable != storage.readable_layout:
            changes["settings"] = {**changes.get("settings", storage.settings), "readable_layout": readable}
        return await self._changed(call, storage, changes, changes)

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
        if storage.is_local:
            await self._setup.remove_from_list(storage)
        else:
            await self._give_up(storage)

    # Below

    async def _create_bucket(self, call: Call, body: NewStorage) -> Created | StorageRecord:
        given = body.config.settings if body.config else body.settings
        place = self._buckets.place_of(given)
        present = await self._catalog.look(storages.find_storage, body.name)
        if present is not None:
            if not self._buckets.same(present, place):
                raise AlreadyExists("storage", body.name)
            return await self._shown(present)
        uid = str(uuid4())
        store = await self._buckets.make(body.name, place, uid)
        settings = self._buckets.settings(place)
        entry = call.entry(body.name, shown_settings(settings))
        try:
            storage = await call.write(
                entry, storages.add_storage, name=body.name, kind=KIND, settings=settings, now_ms=call.now_ms, uid=uid
            )
        except BaseException:
            await store.give_up()
            raise
        finally:
            await store.stop()
        return await self._created(call, body, storage)

    async def _created(self, call: Call, body: NewStorage, storage: Storage) -> Created:
        if not body.active:
            storage = await self._catalog.write(storages.update_storage, storage.id, active=False, now_ms=call.now_ms)
        return Created(await self._shown(storage), f"/api/storage/{storage.uid}")

    async def _change_bucket(
        self, call: Call, storage: Storage, changes: dict[str, Any], body: StorageChange
    ) -> StorageRecord:
        if body.path is not UNSET:
            raise Invalid("a storage of type S3 has no path", "/path")
        shown = dict(changes)
        place = None if body.settings is UNSET else self._buckets.changed(storage, body.settings)
        if place is not None:
            # It must be the same storage there, which this checks.
            await (await self._buckets.make(storage.name, place, storage.uid)).stop()
            changes["settings"] = self._buckets.settings(place)
            shown["settings"] = shown_settings(changes["settings"])
        return await self._changed(call, storage, changes, shown)

    async def _changed(
        self, call: Call, storage: Storage, changes: dict[str, Any], shown: dict[str, Any]
    ) -> StorageRecord:
        """Write the changes, of which the audit log shows ``shown``."""
        if changes:
            entry = call.entry(storage.name, shown)
            try:
                storage = await call.write(entry, storages.update_storage, storage.id, now_ms=call.now_ms, **changes)
            finally:
                self._services.stores.forget(storage.id)
            for repository in self._registry.all():
                if repository.storage_id == storage.id:
                    self._services.on_change(repository)
        return await self._shown(storage)

    async def _give_up(self, storage: Storage) -> None:
        """Free the place of a removed storage in a bucket; a failure is logged."""
        try:
            store = await self._services.buckets.open(storage)
            await store.give_up()
            await store.stop()
        except PkgrepoError as error:
            log.warn("the place of removed storage {name} stays taken: {error}", name=storage.name, error=str(error))

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
            free, total = store.capacity() or (None, None)
        except (PkgrepoError, OSError):
            pass  # the figures from the catalog are shown without those of the disk
        return Usage(bytes=size, blobs=blobs, free_bytes=free, total_bytes=total)

    def _record(self, storage: Storage, usage: Usage) -> StorageRecord:
        local = storage.is_local
        return StorageRecord.from_attributes(
            storage,
            id=storage.uid,
            type=storage.kind,
            settings=(
                {"path": str(self._folders.folder(storage)), "readable_layout": storage.readable_layout}
                if local
                else shown_settings(storage.settings)
            ),
            usage=usage,
            warnings=_warnings(storage),
        )


async def get_storage(catalog: ICatalog, id: str) -> Storage:
    """The storage with this id or name. :raises NotFound: there is none"""
    storage: Storage = existing(await catalog.look(storages.find_storage, id), "storage", id)
    return storage


def _warnings(storage: Storage) -> list[str]:
    moving = ["its bytes are being moved here: run 'pkgrepo migrate-storage' until it has ended"]
    return ([] if storage.readable_layout else [NO_LAYOUT]) + ([] if storage.before is None else moving)


def _readable(body: NewStorage) -> bool:
    settings = (body.settings, *((body.config.settings,) if body.config else ()))
    return all(each.readable_layout is not False for each in settings)
