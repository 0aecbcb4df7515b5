"""Storages: where bytes are kept."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec import UNSET
from twisted.logger import Logger

from pkgrepo.diagnostics.descriptors import is_out_of_descriptors
from pkgrepo.errors import AlreadyExists, Conflict, Invalid, NotFound, PkgrepoError, TooManyOpenFiles
from pkgrepo.gateway.image_addresses import check_hides_nothing
from pkgrepo.interfaces import IBlobStore
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

from .schema import NewStorage, StorageChange, StorageCheck, StorageRecord, Usage

log = Logger()

PROBE_BYTES = 64 * 1024


class Storages(Handlers):
    """The storages of the server."""

    table = Table("storages")

    def __init__(self, services: ManagementServices) -> None:
        super().__init__(services)
        self._folders = services.folders

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
        """Storages by name."""
        usage = {each.id: await self._usage(each) for each in self._registry.storages()}
        return call.wanted.page_of_all(
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
        further=((200, "It is there already, and the same."),),
        aliases=[("POST", "/storage/new/<type>")],
    )
    async def create(self, call: Call, body: NewStorage, type: str = "Local") -> Created | StorageRecord:
        """A storage that is there already just so is answered with 200, so that scripts may run again."""
        if type.lower() != "local":
            raise Invalid("the type of a storage is Local", "/type")
        path = self._path(body)
        present = self._catalog.look_inline(storages.find_storage, body.name)
        if present is not None:
            if self._folders.folder(present) != path or present.readable_layout != _readable(body):
                raise AlreadyExists("storage", body.name)
            return await self._shown(present)
        await self._check_path(path, None)
        uid = await self._new_uid(path)
        settings = await self._make(body.name, path, uid)
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
        """By id or name."""
        return await self._shown(self._find(id))

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
        """Name, whether it is active, and, while no repository lives there, where it is."""
        storage = self._find(id)
        before = await self._shown(storage)
        call.check_unchanged(before)
        changes: dict[str, Any] = {}
        if body.name is not UNSET:
            self._check_name(storage, body.name)
            changes["name"] = body.name
        if body.active is not UNSET:
            changes["active"] = body.active
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
        summary="Remove an unused storage",
        status=204,
        query=[DRY_RUN],
        audit="storage.delete",
        conditional=True,
    )
    async def delete(self, call: Call, id: str) -> None:
        """Refused while repositories live there; its files stay on disk."""
        storage = self._find(id)
        call.check_unchanged(await self._shown(storage))
        self._check_unused(storage)
        if call.flag("dry_run"):
            return
        await call.write(call.entry(storage.name), storages.remove_storage, storage.id)
        await self._forget(storage)

    @table.route(
        "POST",
        "/storage/<id>/check",
        access=SYSTEM_MANAGERS,
        summary="Write, sync, read and remove a probe",
        answer=StorageCheck,
        audit="storage.check",
    )
    async def check(self, call: Call, id: str) -> StorageCheck:
        """What goes wrong is part of the answer, not an error."""
        storage = self._find(id)
        call.object = storage.name
        written = read = 0.0
        free = None
        try:
            store: IBlobStore = await self._services.stores.open(storage)
            free, _total = store.capacity()
            probe = os.urandom(PROBE_BYTES)
            started = time.perf_counter()
            async with store.begin(len(probe)) as upload:
                upload.write(probe)
                await upload.drained()
                info = await upload.commit()
            written = time.perf_counter() - started
            started = time.perf_counter()
            back = await store.open(info.locator).read(0, len(probe))
            read = time.perf_counter() - started
            await store.delete(info.locator)
            error = None if back == probe else "the bytes read are not the bytes written"
        except (PkgrepoError, OSError) as failure:
            error = str(failure)
        return StorageCheck(
            ok=error is None,
            error=error,
            bytes=PROBE_BYTES,
            write_ms=round(written * 1000, 2),
            read_ms=round(read * 1000, 2),
            free_bytes=free,
        )

    # Below

    def _find(self, id: str) -> Storage:
        storage: Storage | None = self._catalog.look_inline(storages.find_storage, id)
        if storage is None:
            raise NotFound("storage", id)
        return storage

    def _path(self, body: NewStorage) -> Path:
        given = body.path or body.settings.path or (body.config.settings.path if body.config else None)
        return self._folders.locate(f"storages/{body.name}" if given is None else given)

    async def _moved(self, storage: Storage, path: Path, before: StorageRecord) -> dict[str, Any]:
        """The settings with the new path, once the folder there has been opened; whatever is wrong with it raises."""
        self._check_unused(storage)
        if before.usage.blobs:
            raise Conflict(f"storage {storage.name!r} holds {before.usage.blobs} blobs, so its path cannot change")
        path = self._folders.data / path
        await self._check_path(path, storage)
        return {**storage.settings, **await self._make(storage.name, path, storage.uid)}

    async def _new_uid(self, path: Path) -> str:
        """The id for a storage that is to be made: that of its folder, where making it has failed before."""
        try:
            found = await self._services.shared.pools.disk(self._folders.find_empty, path)
        except (PkgrepoError, OSError) as error:
            raise _unusable(error) from error
        present = None if found is None else self._catalog.look_inline(storages.find_storage, found)
        return found if found is not None and present is None else str(uuid4())

    async def _make(self, name: str, path: Path, uid: str) -> dict[str, Any]:
        """The settings of a storage whose folder was made; whatever is wrong with that raises."""
        try:
            await self._services.shared.pools.disk(self._folders.make, name, path, uid)
        except (PkgrepoError, OSError) as error:
            raise _unusable(error) from error
        return {"path": await self._services.shared.pools.disk(self._folders.spell, path)}

    def _check_name(self, storage: Storage, name: str) -> None:
        """Let a storage be called so, as far as its repositories are concerned, whose addresses begin with it."""
        services = self._services
        for each in services.shared.registry.all():
            if each.storage_id == storage.id and name != storage.name:
                try:
                    services.formats[each.format].check_place(name, each.name)
                except Invalid as error:
                    raise Invalid(f"{error.message} (it has the repository {each.name!r})", "/name") from None
                self._catalog.look_inline(
                    check_hides_nothing, services.shared.images.lasting_default, each.format, name, each.name
                )

    def _check_unused(self, storage: Storage) -> None:
        users = [each.path for each in self._registry.all() if each.storage_id == storage.id]
        if users:
            raise Conflict(f"storage {storage.name!r} is used by {', '.join(users[:5])}")

    async def _check_path(self, path: Path, storage: Storage | None) -> None:
        if "\0" in str(path):
            raise Invalid("a path holds no NUL", "/settings/path")
        others = [each for each in self._registry.storages() if storage is None or each.id != storage.id]
        await self._services.shared.pools.disk(self._folders.check_free, path, others)

    async def _forget(self, storage: Storage) -> None:
        self._services.stores.forget(storage.id)
        try:
            await self._services.shared.pools.disk(self._folders.remove_from_list, storage.uid)
        except OSError as error:
            if not is_out_of_descriptors(error):
                log.failure("storage {storage} is gone, and stays noted in storages.json", storage=storage.name)

    async def _shown(self, storage: Storage) -> StorageRecord:
        return self._record(storage, await self._usage(storage))

    async def _usage(self, storage: Storage) -> Usage:
        blobs, size = await self._catalog.scan(usage, storage.id)
        free = total = None
        try:
            store: IBlobStore = await self._services.stores.of(storage)
            free, total = store.capacity()
        except (PkgrepoError, OSError):
            pass  # the figures that the catalog has are worth showing all the same
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


def _readable(body: NewStorage) -> bool:
    settings = (body.settings, *((body.config.settings,) if body.config else ()))
    return all(each.readable_layout is not False for each in settings)


def _unusable(error: PkgrepoError | OSError) -> Exception:
    """Why a folder is not taken: for what it is, unless the server is at fault at this moment."""
    if isinstance(error, TooManyOpenFiles) or (isinstance(error, OSError) and is_out_of_descriptors(error)):
        return error
    why = error.strerror or "the disk failed" if isinstance(error, OSError) else str(error)
    return Invalid(f"the folder cannot be used: {why}", "/settings/path")
