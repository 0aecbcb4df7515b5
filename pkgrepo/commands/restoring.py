"""
Restores a backup into a new data folder.

=====  ======================================================================  ======================================
step   what                                                                    a crash after it
=====  ======================================================================  ======================================
1      the folder is new or empty, and so is the database of the settings      nothing has changed
2      the catalog, with its digest and its structure checked, in the folder   the folder has no catalog that a
       ``restoring``                                                           server would take; remove it, and
3      each storage in a folder of its own below ``storages``, each blob with  restore again; what fails before a blob
       its digest compared                                                     is restored removes it itself
4      the catalog in its place, or copied to PostgreSQL in one transaction    it is restored
=====  ======================================================================  ======================================

A storage that was in a bucket, or in another folder, is restored into a folder of the new data folder, too: nothing
outside of it is changed. Uploads that had not ended are gone.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from attrs import Factory, define, frozen

from pkgrepo.composition.core import KEY_FILE, Core
from pkgrepo.composition.databases import check_empty, fill_database
from pkgrepo.concurrency.pools import Pools
from pkgrepo.concurrency.together import together
from pkgrepo.config import Config, read_config
from pkgrepo.errors import Conflict, Invalid, PkgrepoError, StorageFailed, StorageFull
from pkgrepo.interfaces import IBlobStore, Reader, Transaction
from pkgrepo.model import BlobInfo, Storage
from pkgrepo.model.repositories import NAME
from pkgrepo.repositories.backup.manifests import LOST, Entry, Manifest, id_of, read_list
from pkgrepo.repositories.backup.place import Place, open_place
from pkgrepo.repositories.backup.reading import as_blob, get_part, read_key, read_manifest, sound_locators
from pkgrepo.repositories.context import FAILURES, reason_of
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.repositories.upkeep.storage_move import move_copy
from pkgrepo.s3.places import Destination
from pkgrepo.small_files import OWNER_ONLY, fsync_path, replace_file
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.engine.online_copy import check_copy
from pkgrepo.storage.catalog.rows import column
from pkgrepo.storage.catalog.server import layout_pending, storages
from pkgrepo.storage.catalog.server.jobs import end_all_jobs
from pkgrepo.storage.folders import DATABASE
from pkgrepo.storage.secret_box import SecretBox

WORK: Final = "restoring"  # folder in the data folder, until the backup is restored
LIST: Final = "list"
PAGE: Final = 200
PARALLEL: Final = 8  # blobs that are copied at once
MOST_NAMED: Final = 20


@frozen(kw_only=True)
class Wish:
    """
    What to restore: the backup with an id, or the newest (empty), into the folder ``data``.

    ``key`` is the file of the server's key, if it is not in the backup. ``target`` are the settings of a PostgreSQL
    database that is to have the catalog; None for a file in the folder.
    """

    destination: Destination
    backup_id: str
    data: Path
    key: Path | None = None
    target: Config | None = None


@define
class Restored:
    """What was restored; ``problems`` are sentences about what was not, ``notes`` about what there is to do."""

    id: str = ""
    made_at: str = ""
    storages: int = 0
    blobs: int = 0
    size: int = 0
    lost: int = 0
    failed: int = 0
    problems: list[str] = Factory(list)
    notes: list[str] = Factory(list)


async def restore(reactor: Any, wish: Wish, progress: Progress) -> Restored:
    """
    Restore a backup. A run that has restored no blob when it fails leaves the folder as it was.

    :raises PkgrepoError: it is damaged, or the target is not empty, or cannot be written
    """
    pools = Pools(reactor)
    pools.start()
    data, work, report = wish.data, wish.data / WORK, Restored()
    try:
        before = await pools.disk(_check_target, wish)
        await pools.disk(partial(data.mkdir, 0o750, parents=True, exist_ok=True))
        await pools.disk(work.mkdir, 0o700)  # of two runs one makes it, and only that one may clear the folder
        try:
            manifest = await _copy_all(reactor, pools, wish, work, report, progress)
        except BaseException:
            if not report.blobs:
                await pools.disk(_clear, data, before)
            raise
        if report.problems:
            if not report.blobs:
                await pools.disk(_clear, data, before)
            return report
        await pools.disk(_finish, wish, work)
        if not await pools.disk(_has_key, wish, manifest):
            report.notes.append(
                f"the backup has no key: put the server's {KEY_FILE} into {data} before its start (or restore with "
                "--key-file), or else set the credentials of upstreams, buckets and webhooks again"
            )
        return report
    finally:
        await pools.stop()


async def _copy_all(
    reactor: Any, pools: Pools, wish: Wish, work: Path, report: Restored, progress: Progress
) -> Manifest:
    """Get the catalog into ``work``, and the blobs into the storages that it names."""
    place = await open_place(
        wish.destination, pools, uid=None, scratch=wish.data / "spool", low_water=None, writes=False
    )
    try:
        name, manifest = await fetch_catalog(place, pools, wish, work)
        report.id, report.made_at = id_of(name), f"{manifest.made_at:%Y-%m-%d %H:%M:%S} UTC"
        core = Core(settings_of(wish.data, work / DATABASE), reactor)
        await core.start()
        try:
            await _fill(core, place, work / LIST, manifest, report, progress)
        finally:
            await core.stop()
    finally:
        await place.close()
    return manifest


async def fetch_catalog(place: Place, pools: Pools, wish: Wish, work: Path) -> tuple[str, Manifest]:
    """Get the catalog and the list of a backup into ``work``, and the key into the data folder, all checked."""
    name, manifest = await read_manifest(place, wish.backup_id)
    await get_part(place, pools, manifest.catalog, work / DATABASE, "catalog")
    await get_part(place, pools, manifest.list, work / LIST, "list of blobs")
    await pools.disk(check_copy, work / DATABASE)
    key = await read_key(place, name, manifest) if wish.key is None else await pools.disk(wish.key.read_bytes)
    if key is not None:
        path = wish.data / KEY_FILE
        await pools.disk(replace_file, path, key, OWNER_ONLY)
        try:
            fingerprint = (await pools.disk(SecretBox.load, path)).fingerprint
        except Conflict:
            fingerprint = ""  # it is no key at all, and its name here is not the one that people gave
        if fingerprint != manifest.key_fingerprint:
            raise Conflict(f"{wish.key or 'the key in the backup'} is not the key of the server that was backed up")
    return name, manifest


def settings_of(data: Path, database: Path, **more: str) -> Config:
    """The default settings for a data folder and a database file; ``more`` has others, ``a__b`` for the key ``a.b``."""
    overrides: dict[str, object] = {"data.dir": str(data), "database.url": f"sqlite:///{database}"}
    overrides |= {name.replace("__", "."): value for name, value in more.items()}
    return read_config(None, overrides=overrides)


async def restore_blobs(
    core: Core,
    place: Place,
    entries: Iterator[Entry],
    report: Restored,
    progress: Progress,
    only: Collection[str] | None = None,
) -> None:
    """
    Copy blobs into the storages that the catalog names, and let the catalog name the new copies.

    With ``only`` those of these digests alone.
    """
    while some := await core.pools.disk(lambda: list(islice(entries, PAGE))):
        chosen = [each for each in some if only is None or each.sha256 in only]
        moved: list[tuple[int, str, str, str]] = []
        for start in range(0, len(chosen), PARALLEL):
            some_chosen = chosen[start : start + PARALLEL]
            await together(_restore_blob(core, place, each, report, moved) for each in some_chosen)
        if moved:
            await core.catalog.write(_set_locators, moved)
        progress.step(len(some))


async def relocate(core: Core, *, readable: bool) -> Sequence[Storage]:
    """
    Give each storage a folder of its own in the data folder, which is made. Returns them.

    :raises Invalid: the name of a storage or a repository would lead out of it
    """
    for name in await core.catalog.scan(_repository_names):
        if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
            raise Invalid(f"the backup has a repository {name!r}, which is no name of one")
    found: list[Storage] = await core.catalog.scan(storages.list_storages)
    for each in found:
        if not re.fullmatch(NAME, each.name):  # the backup was made or changed by somebody else
            raise Invalid(f"the backup has a storage {each.name!r}, which is no name of one")
        folder = core.folders.locate_new(each.name)
        await core.pools.disk(core.folders.make, each.name, folder, each.uid)
        path = core.folders.spell(folder)
        await core.catalog.write(_relocate, each, path, readable=readable, now_ms=core.clock.now_ms())
    await core.catalog.write(end_all_jobs, core.clock.now_ms())
    await core.registry.refresh()
    return core.registry.storages()


def _repository_names(r: Reader) -> list[str]:
    return column(r, "SELECT DISTINCT name FROM repository ORDER BY name")


async def _fill(
    core: Core, place: Place, list_path: Path, manifest: Manifest, report: Restored, progress: Progress
) -> None:
    report.storages = len(await relocate(core, readable=True))
    progress.begin("blobs", manifest.blobs)
    await restore_blobs(core, place, read_list(list_path), report, progress)
    progress.end()
    if report.failed > MOST_NAMED:
        report.problems.append(f"and {report.failed - MOST_NAMED} more blobs")
    if report.lost:
        report.notes.append(f"{report.lost} blobs were damaged or missing on the server when the backup was made")


async def _restore_blob(
    core: Core, place: Place, entry: Entry, report: Restored, moved: list[tuple[int, str, str, str]]
) -> None:
    rows: Mapping[int, str] = await core.catalog.look(_locators, entry.sha256)
    if entry.locator == LOST:
        report.lost += 1
        for storage_id, locator in rows.items():
            await core.catalog.write(blobs.mark_suspect, storage_id, entry.sha256, locator)
        return
    for storage_id, locator in rows.items():
        store = await core.stores.open(core.registry.storage(storage_id))
        try:
            copy = await _copy_sound(place, store, entry)
        except StorageFull:
            raise
        except FAILURES as error:
            report.failed += 1
            if report.failed <= MOST_NAMED:
                report.problems.append(f"blob {entry.sha256}: {reason_of(error)}")
            continue
        moved.append((storage_id, entry.sha256, locator, copy.locator))
        report.blobs += 1
        report.size += entry.size


async def _copy_sound(place: Place, store: IBlobStore, entry: Entry) -> BlobInfo:
    """Copy the bytes of an entry from the first copy that has them. :raises PkgrepoError: none has"""
    try:
        return await move_copy(place.store, store, as_blob(entry, entry.locator))
    except (StorageFull, StorageFailed):
        raise
    except PkgrepoError:
        for locator in (await sound_locators(place, entry))[1:]:
            try:
                return await move_copy(place.store, store, as_blob(entry, locator))
            except (StorageFull, StorageFailed):
                raise
            except PkgrepoError:
                continue
        raise


def _locators(r: Reader, sha256: str) -> dict[int, str]:
    sql = "SELECT storage_id, locator FROM blob WHERE sha256 = ? AND state <> 'deleting'"
    return {int(storage_id): str(locator) for storage_id, locator in r.all(sql, (bytes.fromhex(sha256),))}


def _set_locators(tx: Transaction, moved: Sequence[tuple[int, str, str, str]]) -> None:
    for storage_id, sha256, old, new in moved:
        blobs.set_locator(tx, storage_id, sha256, old, new)


def _relocate(tx: Transaction, storage: Storage, path: str, *, readable: bool, now_ms: int) -> None:
    settings: dict[str, Any] = {"path": path}
    if not (readable and storage.readable_layout):
        settings["readable_layout"] = False
    storages.update_storage(tx, storage.id, kind="Local", settings=settings, now_ms=now_ms)
    tx.execute("DELETE FROM upload WHERE storage_id = ?", (storage.id,))
    if "readable_layout" not in settings:
        ids = column(tx, "SELECT id FROM repository WHERE storage_id = ? AND deleted_at IS NULL", (storage.id,))
        layout_pending.add_repositories(tx, ids)


def _check_target(wish: Wish) -> set[Path]:
    """
    Check that the folder and the database are new or empty. Returns what there is of the folder, and above and in it.

    :raises Conflict: the folder holds something, or the database does; :raises OSError: it cannot be read
    """
    data = wish.data
    if data.exists() and not data.is_dir():
        raise Conflict(f"{data} is no folder")
    if data.is_dir():
        if (data / WORK).exists():
            raise Conflict(f"{data} holds a restore that did not end: remove the folder, and restore again")
        taken = next((each.name for each in data.iterdir() if each.name not in ("lost+found", "spool")), None)
        if taken is not None:
            raise Conflict(f"{data} is not empty, it holds {taken!r}: a backup is restored into a new folder")
    if wish.target is not None:
        check_empty(wish.target)
    inside = data.iterdir() if data.is_dir() else ()
    return {each for each in (data, *data.parents, *inside) if each.exists()}


def _clear(data: Path, before: Collection[Path]) -> None:
    """Remove what was not there before from the folder, and the folder with those above it if they are new."""
    with suppress(OSError):  # why the restore failed is what people are told
        for each in data.iterdir() if data.is_dir() else ():
            if each not in before:
                shutil.rmtree(each) if each.is_dir() else each.unlink()
        for each in (data, *data.parents):
            if each in before:
                break
            each.rmdir()


def _finish(wish: Wish, work: Path) -> None:
    """Put the catalog in its place."""
    if wish.target is not None:
        fill_database(wish.target, work / DATABASE)
    else:
        (work / DATABASE).replace(wish.data / DATABASE)
    shutil.rmtree(work)
    shutil.rmtree(wish.data / "spool", ignore_errors=True)
    fsync_path(wish.data)


def _has_key(wish: Wish, manifest: Manifest) -> bool:
    """Whether the key was restored; one that the catalog's start has made is removed, since it opens nothing."""
    if wish.key is not None or manifest.key_sha256 is not None:
        return True
    (wish.data / KEY_FILE).unlink(missing_ok=True)
    return False
