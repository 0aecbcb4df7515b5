"""Storages: the places where blobs are stored."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from attrs import evolve

from pkgrepo.errors import AlreadyExists, Conflict, existing
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Storage
from pkgrepo.storage.catalog.rows import column, every, insert, rows, update

from . import layout_pending
from .quotas import QuotaKind, remove_limits
from .settings import bump_config_serial

_STORAGE, _storage = rows(Storage, "storage")


class StorageChanges(TypedDict, total=False):
    """What ``update_storage`` can change."""

    name: str
    kind: str
    settings: Mapping[str, Any]
    active: bool


def storage_key(name: str) -> str:
    """The key of a storage name: two storages cannot have the same key."""
    return name.casefold()


def list_storages(r: Reader) -> list[Storage]:
    """All storages, ordered by name."""
    return every(r, _storage, f"{_STORAGE} ORDER BY key")


def find_storage(r: Reader, uid_or_name: str) -> Storage | None:
    """The storage with this public id or this name (case does not matter), or None."""
    row = r.one(f"{_STORAGE} WHERE uid = ?", (uid_or_name,))
    row = row or r.one(f"{_STORAGE} WHERE key = ?", (storage_key(uid_or_name),))
    return None if row is None else _storage(row)


def get_storage(r: Reader, storage_id: int) -> Storage:
    """
    The storage with this catalog key.

    :raises NotFound: there is none
    """
    row = existing(r.one(f"{_STORAGE} WHERE id = ?", (storage_id,)), "storage", str(storage_id))
    return _storage(row)


def add_storage(
    tx: Transaction, *, name: str, kind: str, settings: Mapping[str, Any], now_ms: int, uid: str | None = None
) -> Storage:
    """
    Add a storage. ``uid`` is the id that its folder holds, or None for a new id.

    :raises AlreadyExists: a storage has this name (case does not matter)
    :raises Conflict: a storage has this id, so the folder is a copy of that storage's folder
    """
    if tx.one("SELECT 1 FROM storage WHERE key = ?", (storage_key(name),)) is not None:
        raise AlreadyExists("storage", name)
    taken = None if uid is None else find_storage(tx, uid)
    if taken is not None:
        raise Conflict(f"the folder is a copy of that of storage {taken.name!r}")
    storage_id = insert(
        tx,
        "storage",
        uid=uid or str(uuid.uuid4()),
        name=name,
        key=storage_key(name),
        kind=kind,
        settings=settings,
        created_at=now_ms,
        updated_at=now_ms,
    )
    bump_config_serial(tx)
    return get_storage(tx, storage_id)


def update_storage(tx: Transaction, storage_id: int, *, now_ms: int, **changes: Unpack[StorageChanges]) -> Storage:
    """
    Change the given fields. When the readable layout is switched on, all its repositories become pending.

    :raises NotFound: no such storage; :raises AlreadyExists: the new name is taken
    """
    before = get_storage(tx, storage_id)
    after = evolve(before, **changes)
    key = storage_key(after.name)
    if tx.one("SELECT 1 FROM storage WHERE key = ? AND id <> ?", (key, storage_id)) is not None:
        raise AlreadyExists("storage", after.name)
    update(tx, "storage", storage_id, **{**changes, "key": key, "updated_at": now_ms})
    if after.readable_layout != before.readable_layout:
        ids = column(tx, "SELECT id FROM repository WHERE storage_id = ?", (storage_id,))
        (layout_pending.add_repositories if after.readable_layout else layout_pending.remove_repositories)(tx, ids)
    bump_config_serial(tx)
    return get_storage(tx, storage_id)


def begin_move(tx: Transaction, before: Storage, *, kind: str, settings: Mapping[str, Any], now_ms: int) -> Storage:
    """
    Give a storage another place, to which its copies are moved; until ``end_move`` it also has the old one.

    :raises NotFound: no such storage; :raises Conflict: it has changed meanwhile
    """
    if get_storage(tx, before.id) != before:
        raise Conflict(f"storage {before.name!r} was changed meanwhile")
    old = {"kind": before.kind, "settings": before.settings, "begun_ms": now_ms}
    # A readable layout is made of files, which are in one place only after the move.
    moving = {**settings, "readable_layout": False, "before": old}
    return update_storage(tx, before.id, kind=kind, settings=moving, now_ms=now_ms)


def end_move(tx: Transaction, moving: Storage, *, now_ms: int) -> Storage:
    """
    Give a storage its new place alone, to which all its copies were moved; a folder gets its readable layout again.

    :raises NotFound: no such storage; :raises Conflict: it has changed meanwhile
    """
    if get_storage(tx, moving.id) != moving:
        raise Conflict(f"storage {moving.name!r} was changed meanwhile")
    left = {"before"} | ({"readable_layout"} if moving.is_local else set())
    settings = {name: value for name, value in moving.settings.items() if name not in left}
    return update_storage(tx, moving.id, settings=settings, now_ms=now_ms)


def remove_storage(tx: Transaction, storage_id: int) -> None:
    """
    Remove a storage and the rows of its blobs and uploads; the files themselves stay.

    :raises NotFound: no such storage
    :raises Conflict: it has repositories, or removed repositories that are not purged yet
    """
    storage = get_storage(tx, storage_id)
    users = tx.one("SELECT COUNT(*), COUNT(deleted_at) FROM repository WHERE storage_id = ?", (storage_id,))
    assert users is not None
    if users[0] > users[1]:
        raise Conflict(f"storage {storage.name!r} is used by {users[0] - users[1]} repositories; remove them first")
    if users[0]:
        raise Conflict(f"storage {storage.name!r} still has content of removed repositories; purge them first")
    tx.execute("DELETE FROM upload WHERE storage_id = ?", (storage_id,))
    tx.execute("DELETE FROM blob WHERE storage_id = ?", (storage_id,))
    tx.execute("DELETE FROM storage WHERE id = ?", (storage_id,))
    remove_limits(tx, QuotaKind.STORAGE, storage_id)
    bump_config_serial(tx)
