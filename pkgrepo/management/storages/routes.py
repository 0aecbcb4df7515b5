"""The routes that list, add, show, change and remove storages."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec import UNSET
from twisted.logger import Logger

from pkgrepo.errors import AlreadyExists, Conflict, Invalid, PkgrepoError, existing
from pkgrepo.gateway.image_addresses import check_hides_nothing
from pkgrepo.interfaces import IBlobStore
from pkgrepo.management.api.access_rules import SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import DRY_RUN, Created, Table
from pkgrepo.management.storages.places import (
    changed_place,
    check_free,
    check_local,
    folder_of,
    is_at,
    make_bucket,
    make_folder,
    new_uid,
    place_of,
    remove_from_list,
    shown_settings,
)
from pkgrepo.management.storages.schema import NewStorage, StorageChange, StorageCheck, StorageRecord, Usage
from pkgrepo.model import Storage
from pkgrepo.repositories.layout.marker import NO_LAYOUT
from pkgrepo.storage.buckets import KIND
from pkgrepo.storage.catalog.blobs.blobs import usage
from pkgrepo.storage.catalog.server import storages

log = Logger()


table = Table("storages")
PROBE_BYTES = 64 * 1024


@table.command(
    "storage list",
    columns="STORAGE: name | BLOBS: usage.blobs:number | SIZE: usage.bytes:size | FREE: usage.free_bytes:size | "
    "STATE: active:active/off | FOLDER: settings.path",
    nothing="there are no storages",
)
@table.get("/storage", SYSTEM_MANAGERS, "List storages", aliases=[("GET", "/storage/list")])
async def list_storages(call: Call) -> Page[StorageRecord]:
    """Sorted by name."""
    usage = {each.id: await _usage(call, each) for each in call.registry.storages()}
    return call.page_request.page_of_all(
        call.registry.storages(),
        lambda storage: storage.name,
        lambda storage: _record(call, storage, usage[storage.id]),
    )


@table.post(
    "/storage",
    SYSTEM_MANAGERS,
    "Add a storage",
    audit="storage.create",
    further=((200, "A storage with this name and the same settings exists already."),),
    aliases=[("POST", "/storage/new/<type>")],
)
async def create_storage(call: Call, body: NewStorage, type: str = "Local") -> Created[StorageRecord] | StorageRecord:
    """
    The folder, or the prefix of the bucket, must be empty or absent.

    The answer is 200 if a storage with this name, folder and layout setting exists already, and 409 if the name is
    taken by another one; so scripts can repeat the request.
    """
    kinds = {each.lower() for each in (type, body.type, body.config.type if body.config else "local")} - {"local"}
    if kinds == {"s3"}:
        return await _create_bucket(call, body)
    if kinds:
        raise Invalid("the type of a storage is Local or S3", "/type")
    check_local(body.config.settings if body.config else body.settings)
    path = folder_of(call.services.folders, body)
    present = await call.catalog.look(storages.find_storage, body.name)
    if present is not None:
        if (
            not present.is_local
            or call.services.folders.folder(present) != path
            or present.readable_layout != _readable(body)
        ):
            raise AlreadyExists("storage", body.name)
        return await _shown(call, present)
    await check_free(call, path, None)
    uid = await new_uid(call, path)
    settings = await make_folder(call, body.name, path, uid)
    if not _readable(body):
        settings["readable_layout"] = False
    entry = call.entry(body.name, {**settings, "path": str(path)})
    storage = await call.write(
        entry, storages.add_storage, name=body.name, kind="Local", settings=settings, now_ms=call.now_ms, uid=uid
    )
    return await _created(call, body, storage)


@table.command(
    "storage show NAME",
    fields="storage: name | id: id | folder: settings.path | readable layout: settings.readable_layout | "
    "active: active | blobs: usage.blobs | size: usage.bytes:size | free: usage.free_bytes:size | "
    "created: created_at:time",
)
@table.get("/storage/<id>", SYSTEM_MANAGERS, "Show a storage")
async def show_storage(call: Call, id: str) -> StorageRecord:
    """The storage is found by id or name."""
    return await _shown(call, await get_storage(call, id))


@table.patch(
    "/storage/<id>",
    SYSTEM_MANAGERS,
    "Change a storage",
    audit="storage.update",
    conditional=True,
    aliases=[("PUT", "/storage/<id>")],
)
async def change_storage(call: Call, body: StorageChange, id: str) -> StorageRecord:
    """The path can change only while the storage has no repositories and no blobs (409 otherwise)."""
    storage = await get_storage(call, id)
    before = await _shown(call, storage)
    call.check_unchanged(before)
    changes = body.given("name", "active")
    if body.name is not UNSET:
        await _check_name(call, storage, body.name)
    if storage.before is not None and (body.path is not UNSET or body.settings is not UNSET):
        raise Conflict(f"storage {storage.name!r} is being moved by 'pkgrepo migrate-storage'; let that end first")
    if not storage.is_local:
        return await _change_bucket(call, storage, changes, body)
    if body.settings is not UNSET:
        check_local(body.settings)
    path = body.path if body.path is not UNSET else (body.settings.path if body.settings is not UNSET else None)
    if path is not None and call.services.folders.locate(path) != call.services.folders.folder(storage):
        changes["settings"] = await _moved(call, storage, Path(path), before)
    readable = None if body.settings is UNSET else body.settings.readable_layout
    if readable is not None and readable != storage.readable_layout:
        changes["settings"] = {**changes.get("settings", storage.settings), "readable_layout": readable}
    return await _changed(call, storage, changes, changes)


@table.command(
    "storage delete NAME",
    "removed storage {name}",
    options="dry-run",
    ask="Remove storage {name} from the server?",
    tried="storage {name} can be removed",
    more="Its files stay on the disk.",
)
@table.delete(
    "/storage/<id>",
    SYSTEM_MANAGERS,
    "Remove a storage that has no repositories",
    query=[DRY_RUN],
    audit="storage.delete",
    conditional=True,
)
async def delete_storage(call: Call, id: str) -> None:
    """The answer is 409 while repositories use the storage. Its files stay on disk."""
    storage = await get_storage(call, id)
    call.check_unchanged(await _shown(call, storage))
    _check_unused(call, storage)
    if call.flag("dry_run"):
        return
    await call.write(call.entry(storage.name), storages.remove_storage, storage.id)
    call.services.maintenance.stores.forget(storage.id)
    if storage.is_local:
        await remove_from_list(call, storage)
    else:
        await _give_up(call, storage)


async def _create_bucket(call: Call, body: NewStorage) -> Created[StorageRecord] | StorageRecord:
    given = body.config.settings if body.config else body.settings
    place = place_of(given)
    present = await call.catalog.look(storages.find_storage, body.name)
    if present is not None:
        if not is_at(present, place):
            raise AlreadyExists("storage", body.name)
        return await _shown(call, present)
    uid = str(uuid4())
    store = await make_bucket(call.services.buckets, body.name, place, uid)
    settings = call.services.buckets.settings(place)
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
    return await _created(call, body, storage)


async def _created(call: Call, body: NewStorage, storage: Storage) -> Created[StorageRecord]:
    if not body.active:
        storage = await call.catalog.write(storages.update_storage, storage.id, active=False, now_ms=call.now_ms)
    return Created(await _shown(call, storage), f"/api/storage/{storage.uid}")


async def _change_bucket(call: Call, storage: Storage, changes: dict[str, Any], body: StorageChange) -> StorageRecord:
    if body.path is not UNSET:
        raise Invalid("a storage of type S3 has no path", "/path")
    shown = dict(changes)
    place = None if body.settings is UNSET else changed_place(call.services.buckets, storage, body.settings)
    if place is not None:
        # It must be the same storage there, which this checks.
        await (await make_bucket(call.services.buckets, storage.name, place, storage.uid)).stop()
        changes["settings"] = call.services.buckets.settings(place)
        shown["settings"] = shown_settings(changes["settings"])
    return await _changed(call, storage, changes, shown)


async def _changed(call: Call, storage: Storage, changes: dict[str, Any], shown: dict[str, Any]) -> StorageRecord:
    """Write the changes, of which the audit log shows ``shown``."""
    if changes:
        entry = call.entry(storage.name, shown)
        try:
            storage = await call.write(entry, storages.update_storage, storage.id, now_ms=call.now_ms, **changes)
        finally:
            call.services.maintenance.stores.forget(storage.id)
        for repository in call.registry.all():
            if repository.storage_id == storage.id:
                call.services.on_change(repository)
    return await _shown(call, storage)


async def _give_up(call: Call, storage: Storage) -> None:
    """Free the place of a removed storage in a bucket; a failure is logged."""
    try:
        store = await call.services.buckets.open(storage)
        await store.give_up()
        await store.stop()
    except PkgrepoError as error:
        log.warn("the place of removed storage {name} stays taken: {error}", name=storage.name, error=str(error))


async def _moved(call: Call, storage: Storage, path: Path, before: StorageRecord) -> dict[str, Any]:
    """The settings with the new path, after its folder was made; errors say why the path cannot change."""
    _check_unused(call, storage)
    if before.usage.blobs:
        raise Conflict(f"storage {storage.name!r} holds {before.usage.blobs} blobs, so its path cannot change")
    path = call.services.folders.data / path
    await check_free(call, path, storage)
    return {**storage.settings, **await make_folder(call, storage.name, path, storage.uid)}


async def _check_name(call: Call, storage: Storage, name: str) -> None:
    """Check a new name of the storage against its repositories, whose addresses begin with it."""
    services = call.services
    for each in services.shared.registry.listed():
        if each.storage_id == storage.id and name != storage.name:
            try:
                services.formats[each.format].check_place(name, each.name)
            except Invalid as error:
                raise Invalid(f"{error.message} (it has the repository {each.name!r})", "/name") from None
            await call.catalog.look(
                check_hides_nothing, services.shared.images.pinned_default, each.format, name, each.name
            )


def _check_unused(call: Call, storage: Storage) -> None:
    users = [each.path for each in call.registry.listed() if each.storage_id == storage.id]
    if users:
        raise Conflict(f"storage {storage.name!r} is used by {', '.join(users[:5])}")


async def _shown(call: Call, storage: Storage) -> StorageRecord:
    return _record(call, storage, await _usage(call, storage))


async def _usage(call: Call, storage: Storage) -> Usage:
    blobs, size = await call.catalog.scan(usage, storage.id)
    free = total = None
    try:
        store: IBlobStore = await call.services.maintenance.stores.of(storage)
        free, total = store.capacity() or (None, None)
    except (PkgrepoError, OSError):
        pass  # the figures from the catalog are shown without those of the disk
    return Usage(bytes=size, blobs=blobs, free_bytes=free, total_bytes=total)


def _record(call: Call, storage: Storage, usage: Usage) -> StorageRecord:
    local = storage.is_local
    return StorageRecord.from_attributes(
        storage,
        id=storage.uid,
        type=storage.kind,
        settings=(
            {"path": str(call.services.folders.folder(storage)), "readable_layout": storage.readable_layout}
            if local
            else shown_settings(storage.settings)
        ),
        usage=usage,
        warnings=_warnings(storage),
    )


async def get_storage(call: Call, id: str) -> Storage:
    """The storage with this id or name. :raises NotFound: it does not exist"""
    storage: Storage = existing(await call.catalog.look(storages.find_storage, id), "storage", id)
    return storage


def _warnings(storage: Storage) -> list[str]:
    moving = ["its bytes are being moved here: run 'pkgrepo migrate-storage' until it has ended"]
    return ([] if storage.readable_layout else [NO_LAYOUT]) + ([] if storage.before is None else moving)


def _readable(body: NewStorage) -> bool:
    settings = (body.settings, *((body.config.settings,) if body.config else ()))
    return all(each.readable_layout is not False for each in settings)


@table.post(
    "/storage/<id>/check", SYSTEM_MANAGERS, "Test a storage by writing and reading a probe", audit="storage.check"
)
async def check_storage(call: Call, id: str) -> StorageCheck:
    """64 KiB are written, synced, read back, compared and removed. A failure is in the body of a 200 answer."""
    storage = await get_storage(call, id)
    call.object = storage.name
    written = read = 0.0
    free = None
    try:
        store: IBlobStore = await call.services.maintenance.stores.open(storage)
        free, _total = store.capacity() or (None, None)
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
