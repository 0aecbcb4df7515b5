"""Write commands that add storages of a lost or other catalog, and that move a storage to another folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pkgrepo.errors import Conflict, Invalid, existing
from pkgrepo.interfaces import Transaction
from pkgrepo.repositories.layout.marker import read_marker
from pkgrepo.storage.blobs.paths import find_storage_id
from pkgrepo.storage.catalog.server import storages
from pkgrepo.storage.folders import StorageFolders
from pkgrepo.storage.layout_folder import LayoutFolder
from pkgrepo.storage.process_lock import ProcessLock


def adopt_named(tx: Transaction, folders: StorageFolders, named: Mapping[str, Path], now_ms: int) -> None:
    """
    Add the storages in these folders, by name; storages that the catalog already has are not changed.

    :raises Invalid: a folder holds no storage
    :raises Conflict: the catalog has another storage of that name, or this one under another name, or the storage
        belongs to a catalog that still exists
    """
    for name, path in named.items():
        uid = find_storage_id(path)
        if uid is None:
            raise Invalid(f"{path} holds no storage")
        found = storages.find_storage(tx, uid) or storages.find_storage(tx, name)
        if found is None:
            _add(tx, folders, name, path, uid, now_ms)
        elif (found.uid, found.name) != (uid, name):
            raise Conflict(
                f"the storage in {path} cannot be called {name!r}: the catalog has the storage {found.name!r} at "
                f"{folders.folder(found)}"
            )


def adopt_listed(tx: Transaction, folders: StorageFolders, now_ms: int) -> list[str]:
    """Add the storages that are listed in ``storages.json``. Returns sentences about those that cannot be added."""
    problems = []
    for each in folders.listed():
        if storages.find_storage(tx, each.uid) is not None:
            continue
        path = folders.locate(each.path)
        where = f"storage {each.name!r} of an earlier catalog was at {path}"
        if find_storage_id(path) != each.uid:
            problems.append(f"{where}, and is not there now; tell with --storage {each.name}=PATH where it is")
        elif storages.find_storage(tx, each.name) is not None:
            problems.append(f"{where}, and another one has its name now; take it in with --storage OTHER-NAME={path}")
        else:
            try:
                _add(tx, folders, each.name, path, each.uid, now_ms)
            except Conflict as error:
                problems.append(str(error))
    return problems


def adopt_storage(
    tx: Transaction, folders: StorageFolders, name: str, declared: Path | None, given: Path | None = None
) -> Path:
    """
    Make a storage belong to this catalog. Returns its folder: that in the catalog, or ``given``, or ``declared``.

    A storage that the catalog does not have is not added; ``reindex`` can do it then.

    :raises NotFound: the catalog has none of that name, and no folder is known; :raises Invalid: no storage is there
    :raises Conflict: another storage is there, or a server uses it, or the catalog has another folder than ``given``
    """
    storage = storages.find_storage(tx, name)
    folder = existing(given or declared if storage is None else folders.folder(storage), "storage", name)
    if given is not None and given.resolve() != folder.resolve():
        raise Conflict(f"storage {name!r} is at {folder}; 'pkgrepo storage move {name} PATH' uses another folder")
    found = find_storage_id(folder)
    if found is None:
        raise Invalid(f"{folder} holds no storage")
    if storage is not None and found != storage.uid:
        raise Conflict(f"{folder} belongs to storage {found}, not to {storage.uid}")
    _check_unused(folder)
    folders.claim(folder)
    return folder


def move_storage(
    tx: Transaction, folders: StorageFolders, name: str, folder: Path, *, empty: bool, now_ms: int
) -> None:
    """
    Set the folder of a storage, which holds it already or, with ``empty``, in which it begins empty.

    :raises NotFound: the catalog has none of that name
    :raises Invalid: no storage is there, and ``empty`` is false
    :raises Conflict: another storage is there, or a server uses it or the present folder
    """
    storage = existing(storages.find_storage(tx, name), "storage", name)
    if storage.before is not None:
        raise Conflict(f"storage {name!r} is being moved by 'pkgrepo migrate-storage'; let that end first")
    folders.check_free(folder, [each for each in storages.list_storages(tx) if each.id != storage.id])
    found = find_storage_id(folder)
    if found is None and not empty:
        raise Invalid(f"{folder} holds no storage; with --empty it begins there, and all that it held is lost")
    if found not in (None, storage.uid):
        raise Conflict(f"{folder} belongs to storage {found}, not to {storage.uid}")
    _check_unused(folder)
    before = folders.folder(storage)
    if folders.owns(before):
        _check_unused(before)
    if found is None:
        folders.make(name, folder, storage.uid)
    folders.claim(folder)
    settings = {**storage.settings, "path": folders.spell(folder)}
    storages.update_storage(tx, storage.id, settings=settings, now_ms=now_ms)


def _check_unused(folder: Path) -> None:
    if ProcessLock(folder).is_locked():
        raise Conflict(f"a server works in {folder}; stop it before")


def _add(tx: Transaction, folders: StorageFolders, name: str, path: Path, uid: str, now_ms: int) -> None:
    folders.take_over(name, path)
    settings: dict[str, Any] = {"path": folders.spell(path)}
    marker = read_marker(LayoutFolder(path))
    if marker is not None and not marker.kept:
        settings["readable_layout"] = False
    storages.add_storage(tx, name=name, kind="Local", settings=settings, now_ms=now_ms, uid=uid)
