"""
Batch queries and commands for the releases of one transaction, also of several packages of a repository.

Each statement handles some hundred rows, for the reason that ``versions`` gives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import Actor, File, NewFile, Package, Version
from pkgrepo.storage.catalog.rows import at, batches, column, columns_of, dump, every, load, placeholders

from .files import FIND_FILE, to_file
from .packages import PACKAGE, to_package
from .versions import VERSION, to_version


@frozen
class NewPackage:
    """A package that does not exist yet, and the serial of the repository with which it begins."""

    key: str
    name: str
    serial: int
    meta: Mapping[str, Any]


@frozen
class NewVersion:
    """
    A version that does not exist yet. ``published_ms`` is None for one that is published now, ``publisher`` for one by
    the actor, for whose quota it counts in either case.
    """

    package_id: int
    key: str
    text: str
    sort: bytes
    meta: Mapping[str, Any]
    published_ms: int | None = None
    publisher: str | None = None


@frozen
class PlacedFile:
    """A file for a path that has none, and the version that it belongs to."""

    new: NewFile
    package_id: int
    version_id: int


def find_packages(r: Reader, repository_id: int, keys: Iterable[str]) -> dict[str, Package]:
    """The packages with these keys that exist, by key."""
    found: dict[str, Package] = {}
    for some in batches(list(keys)):
        sql = f"{PACKAGE} WHERE repository_id = ? AND key IN ({placeholders(len(some))})"
        found.update((each.key, each) for each in every(r, to_package, sql, (repository_id, *some)))
    return found


def add_packages(tx: Transaction, repository_id: int, new: Sequence[NewPackage], now_ms: int) -> dict[str, Package]:
    """
    Add packages, and return them by key; their names are not retired any more.

    Each has a later ``modified_s`` than the latest deletion of a file of an earlier package with its key.
    """
    added: dict[str, Package] = {}
    now_s = now_ms // 1000
    for some in batches(new):
        keys = [each.key for each in some]
        marks = placeholders(len(keys))
        removed: dict[str, int] = dict(
            tx.all(
                f"""
                SELECT package_key, MAX(deleted_at) / 1000 FROM tombstone
                WHERE repository_id = ? AND package_key IN ({marks}) GROUP BY package_key
                """,
                (repository_id, *keys),
            )
        )
        values: list[Value] = []
        for each in some:
            modified_s = max(now_s, removed.get(each.key, 0) + 1)
            values += (repository_id, each.key, each.name, each.serial, dump(each.meta), now_ms, now_ms, modified_s)
        rows = tx.all(
            f"""
            INSERT INTO package (repository_id, key, name, serial, meta, created_at, updated_at, modified_s)
            VALUES {placeholders(len(some), "(?, ?, ?, ?, ?, ?, ?, ?)")} RETURNING {columns_of(PACKAGE)}
            """,
            values,
        )
        added.update((each.key, each) for each in map(to_package, rows))
        tx.send(
            f"DELETE FROM retired_name WHERE repository_id = ? AND package_key IN ({marks})", (repository_id, *keys)
        )
    return added


def find_versions(r: Reader, keys: Iterable[tuple[int, str]]) -> dict[tuple[int, str], Version]:
    """The versions that exist of those with a package and a key, by these."""
    found: dict[tuple[int, str], Version] = {}
    for some in batches(list(keys)):
        marks = placeholders(len(some), "(CAST(? AS BIGINT), ?)")
        rows = r.all(
            f"{VERSION} WHERE (package_id, key) IN (VALUES {marks})", [value for each in some for value in each]
        )
        found.update(((each.package_id, each.key), each) for each in map(to_version, rows))
    return found


def add_versions(
    tx: Transaction, new: Sequence[NewVersion], publisher: Actor, now_ms: int
) -> dict[tuple[int, str], Version]:
    """
    Add versions, and return them by package and key.

    A package is at least as old as the oldest of them, such as one that comes from another registry.
    """
    added: dict[tuple[int, str], Version] = {}
    oldest: dict[int, int] = {}  # publication elsewhere, in ms by package
    for some in batches(new):
        values: list[Value] = []
        for each in some:
            values += (each.package_id, each.key, each.text, each.sort, dump(each.meta))
            name = publisher.name if each.publisher is None else each.publisher
            values += (now_ms if each.published_ms is None else each.published_ms, publisher.user_id, name)
        rows = tx.all(
            f"""
            INSERT INTO version (package_id, key, text, sort, meta, published_at, publisher_id, publisher)
            VALUES {placeholders(len(some), "(?, ?, ?, ?, ?, ?, ?, ?)")} RETURNING {columns_of(VERSION)}
            """,
            values,
        )
        added.update(((each.package_id, each.key), each) for each in map(to_version, rows))
        for each in some:
            if each.published_ms is not None:
                oldest[each.package_id] = min(oldest.get(each.package_id, each.published_ms), each.published_ms)
    for package_id, created_ms in oldest.items():
        tx.send(
            "UPDATE package SET created_at = ? WHERE id = ? AND created_at > ?", (created_ms, package_id, created_ms)
        )
    return added


def find_files(r: Reader, repository_id: int, paths: Iterable[str]) -> dict[str, File]:
    """The files at these paths that exist, by path."""
    found: dict[str, File] = {}
    for some in batches(list(paths)):
        sql = f"{FIND_FILE} WHERE f.repository_id = ? AND f.path IN ({placeholders(len(some))})"
        found.update((each.path, each) for each in every(r, to_file, sql, (repository_id, *some)))
    return found


def paths_with_files(r: Reader, repository_id: int, paths: Iterable[str]) -> set[str]:
    """The paths, of some, that have a file."""
    return _existing(r, "file", repository_id, paths)


def paths_with_tombstones(r: Reader, repository_id: int, paths: Iterable[str]) -> set[str]:
    """The paths, of some, that have a tombstone."""
    return _existing(r, "tombstone", repository_id, paths)


def remove_tombstones(tx: Transaction, repository_id: int, paths: Collection[str]) -> None:
    """Remove the tombstones at these paths."""
    for some in batches(list(paths)):
        tx.send(
            f"DELETE FROM tombstone WHERE repository_id = ? AND path IN ({placeholders(len(some))})",
            (repository_id, *some),
        )


def add_files(
    tx: Transaction, repository_id: int, storage_id: int, placed: Sequence[PlacedFile], now_ms: int
) -> dict[str, File]:
    """
    Add files to paths that have neither a file nor a tombstone. Returns them by path.

    Their blobs must have been claimed in the same transaction.
    """
    found: dict[str, File] = {}
    for some in batches(placed):
        values: list[Value] = []
        attrs = [dump(each.new.attrs) for each in some]
        for each, text in zip(some, attrs, strict=True):
            new, blob = each.new, each.new.blob
            values += (repository_id, storage_id, new.path, each.package_id, each.version_id)
            values += (bytes.fromhex(blob.sha256), blob.size, new.media_type, text, _created_ms(new, now_ms))
        ids: dict[str, int] = dict(
            tx.all(
                f"""
                INSERT INTO file (repository_id, storage_id, path, package_id, version_id, sha256, size, media_type,
                                  attrs, created_at)
                VALUES {placeholders(len(some), "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")}
                RETURNING path, id
                """,
                values,
            )
        )
        for each, text in zip(some, attrs, strict=True):
            new, blob = each.new, each.new.blob
            found[new.path] = File(
                id=ids[new.path],
                repository_id=repository_id,
                storage_id=storage_id,
                path=new.path,
                package_id=each.package_id,
                version_id=each.version_id,
                sha256=blob.sha256,
                size=blob.size,
                locator=blob.locator,
                media_type=new.media_type,
                digests=blob.digests,
                attrs=load(text),
                created_at=at(_created_ms(new, now_ms)),
            )
    return found


def _created_ms(new: NewFile, now_ms: int) -> int:
    return now_ms if new.created_ms is None else new.created_ms


def _existing(r: Reader, table: str, repository_id: int, paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for some in batches(list(paths)):
        sql = f"SELECT path FROM {table} WHERE repository_id = ? AND path IN ({placeholders(len(some))})"
        found.update(column(r, sql, (repository_id, *some)))
    return found
