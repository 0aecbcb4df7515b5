"""Storages of a catalog that was lost, taken into a new one with the ids that they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pkgrepo.errors import Conflict, Invalid
from pkgrepo.interfaces import Transaction
from pkgrepo.storage.blobs.paths import find_storage_id
from pkgrepo.storage.catalog import storages
from pkgrepo.storage.known import KnownStorage


def adopt_named(tx: Transaction, named: Mapping[str, Path], now_ms: int) -> None:
    """
    Take in the storages in these folders, by name; what the catalog has already just so stays.

    :raises Invalid: a folder holds no storage; :raises Conflict: the name or the storage is another's in the catalog
    """
    for name, path in named.items():
        uid = find_storage_id(path)
        if uid is None:
            raise Invalid(f"{path} holds no storage")
        found = storages.find_storage(tx, uid) or storages.find_storage(tx, name)
        if found is None:
            _add(tx, name, path, uid, now_ms)
        elif (found.uid, found.name) != (uid, name):
            raise Conflict(
                f"the storage in {path} cannot be called {name!r}: the catalog has the storage {found.name!r} at "
                f"{found.settings['path']}"
            )


def adopt_known(tx: Transaction, known: Sequence[KnownStorage], now_ms: int) -> list[str]:
    """Take in what is where it is known to be; sentences about what cannot be."""
    problems = []
    for each in known:
        if storages.find_storage(tx, each.uid) is not None:
            continue
        path = Path(each.path)
        where = f"storage {each.name!r} of an earlier catalog was at {path}"
        if find_storage_id(path) != each.uid:
            problems.append(f"{where}, and is not there now; tell with --storage {each.name}=PATH where it is")
        elif storages.find_storage(tx, each.name) is not None:
            problems.append(f"{where}, and another one has its name now; take it in with --storage OTHER-NAME={path}")
        else:
            _add(tx, each.name, path, each.uid, now_ms)
    return problems


def _add(tx: Transaction, name: str, path: Path, uid: str, now_ms: int) -> None:
    settings = {"path": str(path.absolute())}
    storages.add_storage(tx, name=name, kind="Local", settings=settings, now_ms=now_ms, uid=uid)
