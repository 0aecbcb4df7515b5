"""Storages that the catalog finds again: those of a catalog that was lost, of another one, or in another folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pkgrepo.errors import Conflict, Invalid, NotFound
from pkgrepo.interfaces import Transaction
from pkgrepo.repositories.layout.marker import read_marker
from pkgrepo.storage.blobs.paths import find_storage_id
from pkgrepo.storage.catalog.server import storages
from pkgrepo.storage.folders import StorageFolders
from pkgrepo.storage.layout_folder import LayoutFolder
from pkgrepo.storage.process_lock import ProcessLock


def adopt_named(tx: Transaction, folders: StorageFolders, named: Mapping[str, Path], now_ms: int) -> None:
    """
    Take in the storages in these folders, by name; what the catalog has already just so stays.

    :raises Invalid: a folder holds no storage
    :raises Conflict: the name or the storage is another's in the catalog, or the storage another living catalog's
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
    """Take in what is where it is known to be; sentences about what cannot be."""
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


def adopt_storage(tx: Transaction, folders: StorageFolders, name: str, declared: Path | None) -> Path:
    """
    Let a storage belong to this catalog that was another's; its folder, ``declared`` unless the catalog has it.

    :raises NotFound: the catalog has none of that name, and none is declared; :raises Invalid: no storage is there
    :raises Conflict: another storage is there, or a server works in it
    """
    storage = storages.find_storage(tx, name)
    folder = declared if storage is None else folders.folder(storage)
    if folder is None:
        raise NotFound("storage", name)
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
    Have a storage in another folder from now on, where it is already or, with ``empty``, is begun anew.

    :raises NotFound: the catalog has none of that name
    :raises Invalid: no storage is there, and it is not to be ``empty``
    :raises Conflict: another storage is there, or a server works in it or in the present folder
    """
    storage = storages.find_storage(tx, name)
    if storage is None:
        raise NotFound("storage", name)
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
    mark = read_marker(LayoutFolder(path))
    if mark is not None and not mark.kept:
        settings["readable_layout"] = False
    storages.add_storage(tx, name=name, kind="Local", settings=settings, now_ms=now_ms, uid=uid)
