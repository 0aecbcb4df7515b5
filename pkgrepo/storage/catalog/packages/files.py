"""
Files of a repository: look up by path, add, replace, remove.

The path of a deleted file has a tombstone: nothing is published there again unless the repository's policy allows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Final

from attrs import frozen

from pkgrepo.errors import FileBurned, FileExists
from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import Actor, File, NewFile
from pkgrepo.storage.catalog.blobs.blobs import LOCATOR, digests
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.rows import (
    LAST_CHARACTER,
    LIKE,
    at,
    batches,
    column,
    dump,
    every,
    exists,
    find,
    insert,
    like,
    load,
    only_row,
    placeholders,
    rows,
    to_ms,
)

FILE, to_file = rows(
    File,
    "file f JOIN blob b ON b.storage_id = f.storage_id AND b.sha256 = f.sha256",
    of="f",
    sha256=bytes.hex,
    locator="b.locator",
    digests=("f.sha256", "b.digests", digests),
)
FILE_ORDERS: Final[Mapping[str, Order[File]]] = both_ways(
    {
        "name": [("f.path", str, lambda each: each.path)],
        "size": [("f.size", int, lambda each: each.size), ("f.path", str, lambda each: each.path)],
        "uploaded_at": [
            ("f.created_at", int, lambda each: to_ms(each.created_at)),
            ("f.path", str, lambda each: each.path),
        ],
    }
)
FIND_FILE = FILE.replace("b.locator", LOCATOR)
_FIND = f"{FIND_FILE} WHERE f.repository_id = ? AND f.path = ?"


# The last clause of every INSERT into tombstone: a path has one tombstone, which records its latest deletion.
UPSERT = """
    ON CONFLICT (repository_id, path) DO UPDATE
    SET package_key = excluded.package_key, sha256 = excluded.sha256, deleted_at = excluded.deleted_at,
        actor = excluded.actor
"""


def packages_with(r: Reader, repository_id: int, digests: Iterable[str]) -> list[str]:
    """The keys of the packages of a repository with a file or manifest that has one of these sha256 (hex)."""
    found: dict[str, None] = {}
    for each in digests:
        sha256 = bytes.fromhex(each)
        found |= dict.fromkeys(
            column(
                r,
                "SELECT p.key FROM file f JOIN package p ON p.id = f.package_id WHERE f.sha256 = ? "
                "AND f.repository_id = ? UNION SELECT p.key FROM manifest m JOIN package p ON p.id = m.package_id "
                "WHERE m.sha256 = ? AND p.repository_id = ?",
                (sha256, repository_id, sha256, repository_id),
            )
        )
    return list(found)


def find_file(r: Reader, repository_id: int, path: str) -> File | None:
    """
    The file at a path, or None. Every download makes this one look-up.

    The locator is empty if the blob is marked suspect (missing or damaged); opening it raises ``BlobMissing``.
    """
    return find(r, to_file, _FIND, (repository_id, path))


def files_of_versions(r: Reader, version_ids: Sequence[int]) -> dict[int, list[File]]:
    """The files of these versions by the id of the version, each ordered by path."""
    found: dict[int, list[File]] = {}
    for some in batches(version_ids):
        sql = f"{FILE} WHERE f.version_id IN ({placeholders(len(some))}) ORDER BY f.path"
        for each in every(r, to_file, sql, some):
            found.setdefault(each.version_id or 0, []).append(each)
    return found


def files_of_version(r: Reader, version_id: int) -> list[File]:
    """The files of a version, ordered by path."""
    return every(r, to_file, f"{FILE} WHERE f.version_id = ? ORDER BY f.path", (version_id,))


def list_files_of_version(
    r: Reader, version_id: int, *, after: Sequence[Value] = (), limit: int = 50, order: str = "name"
) -> list[File]:
    """
    A page of the files of a version in one of the ``FILE_ORDERS``. Reads all of them.

    It starts after the position of the last one of the page before.
    """
    sorting = FILE_ORDERS[order]
    beyond = f"AND {sorting.beyond}" if after else ""
    sql = f"{FILE} WHERE f.version_id = ? {beyond} ORDER BY {sorting.by} LIMIT ?"
    return every(r, to_file, sql, (version_id, *after, limit))


def count_files_of_version(r: Reader, version_id: int) -> tuple[int, int]:
    """The number of files of a version, and their size together."""
    return only_row(r, "SELECT COUNT(*), COALESCE(SUM(size), 0) FROM file WHERE version_id = ?", (version_id,))


def files_of_package(r: Reader, package_id: int) -> list[File]:
    """All files of a package, ordered by path, including files that belong to no version."""
    return every(r, to_file, f"{FILE} WHERE f.package_id = ? ORDER BY f.path", (package_id,))


def list_plain_files(r: Reader, repository_id: int, after: str, limit: int) -> list[str]:
    """A page of the paths of files that belong to no package, after the path ``after``."""
    return column(
        r,
        """
        SELECT path FROM file WHERE repository_id = ? AND package_id IS NULL AND path > ? ORDER BY path LIMIT ?
        """,
        (repository_id, after, limit),
    )


def plain_paths_in(r: Reader, repository_id: int, folder: str) -> list[str]:
    """The paths of files that belong to no package, and lie in a folder and not deeper. Reads those that lie deeper."""
    return column(
        r,
        f"""
        SELECT path FROM file
        WHERE repository_id = ? AND package_id IS NULL AND path > ? AND path < ? AND path NOT {LIKE} ORDER BY path
        """,
        (repository_id, f"{folder}/", f"{folder}0", f"{like(folder)[1:-1]}/%/%"),
    )


def add_file(
    tx: Transaction,
    repository_id: int,
    storage_id: int,
    new: NewFile,
    package_id: int | None,
    version_id: int | None,
    now_ms: int,
    *,
    reuse: bool = False,
) -> File:
    """
    Add a file and return it. Its blob must have been claimed in the same transaction.

    If the path already has a file with the same content, that file is returned unchanged. With ``reuse``, a tombstone
    at this path is removed.

    :raises FileExists: the path has a file with other content
    :raises FileBurned: the path has a tombstone, and ``reuse`` is False
    """
    found = find_file(tx, repository_id, new.path)
    if found is not None:
        if found.sha256 != new.blob.sha256:
            raise FileExists(filename(new.path), found.sha256)
        return found
    return insert_file(tx, repository_id, storage_id, new, package_id, version_id, now_ms, reuse=reuse)


def insert_file(
    tx: Transaction,
    repository_id: int,
    storage_id: int,
    new: NewFile,
    package_id: int | None,
    version_id: int | None,
    now_ms: int,
    *,
    reuse: bool = False,
) -> File:
    """
    Put a file at a path that is known to have none: L{find_file} has said so in this transaction.

    :raises FileBurned: the path has a tombstone, and ``reuse`` is False
    """
    if has_tombstone(tx, repository_id, new.path):
        if not reuse:
            raise FileBurned(filename(new.path))
        tx.send("DELETE FROM tombstone WHERE repository_id = ? AND path = ?", (repository_id, new.path))
    attrs, blob = dump(new.attrs), new.blob
    file_id = insert(
        tx,
        "file",
        repository_id=repository_id,
        storage_id=storage_id,
        path=new.path,
        package_id=package_id,
        version_id=version_id,
        sha256=bytes.fromhex(blob.sha256),
        size=blob.size,
        media_type=new.media_type,
        attrs=attrs,
        created_at=now_ms,
    )
    return File(
        id=file_id,
        repository_id=repository_id,
        storage_id=storage_id,
        path=new.path,
        package_id=package_id,
        version_id=version_id,
        sha256=blob.sha256,
        size=blob.size,
        locator=blob.locator,
        media_type=new.media_type,
        digests=blob.digests,
        attrs=load(attrs),
        created_at=at(now_ms),
    )


def replace_file(
    tx: Transaction,
    repository_id: int,
    storage_id: int,
    new: NewFile,
    package_id: int | None,
    version_id: int | None,
    now_ms: int,
    *,
    reuse: bool = False,
) -> File:
    """
    Replace the file at a path and return the new one; without a file there, the same as ``add_file``.

    Downloads of the old content that have already started are not interrupted.

    :raises FileBurned: the path has no file but a tombstone, and ``reuse`` is False
    """
    changed = tx.execute(
        """
        UPDATE file
        SET storage_id = ?, package_id = ?, version_id = ?, sha256 = ?, size = ?, media_type = ?, attrs = ?,
            created_at = ?
        WHERE repository_id = ? AND path = ?
        """,
        (
            storage_id,
            package_id,
            version_id,
            bytes.fromhex(new.blob.sha256),
            new.blob.size,
            new.media_type,
            dump(new.attrs),
            now_ms,
            repository_id,
            new.path,
        ),
    )
    if not changed:
        return add_file(tx, repository_id, storage_id, new, package_id, version_id, now_ms, reuse=reuse)
    return _get(tx, repository_id, new.path)


def move_file(tx: Transaction, file: File, path: str) -> None:
    """Give a file another path. :raises FileExists: the path has a file"""
    found = find_file(tx, file.repository_id, path)
    if found is not None:
        raise FileExists(filename(path), found.sha256)
    tx.send("UPDATE file SET path = ? WHERE id = ?", (path, file.id))


def remove_file(tx: Transaction, file: File, *, actor: Actor, tombstone: bool, now_ms: int) -> None:
    """Remove a file; with ``tombstone``, leave a tombstone at its path."""
    tx.send("DELETE FROM file WHERE id = ?", (file.id,))
    if tombstone:
        tx.send(
            f"""
            INSERT INTO tombstone (repository_id, path, package_key, sha256, deleted_at, actor)
            VALUES (?, ?, COALESCE((SELECT key FROM package WHERE id = ?), ''), ?, ?, ?)
            {UPSERT}
            """,
            (file.repository_id, file.path, file.package_id, bytes.fromhex(file.sha256), now_ms, actor.name),
        )


def _get(tx: Transaction, repository_id: int, path: str) -> File:
    file = find_file(tx, repository_id, path)
    assert file is not None, "the blob was claimed in this transaction"
    return file


def filename(path: str) -> str:
    """The last segment of a path."""
    return path.rsplit("/", 1)[-1]


@frozen
class Tombstone:
    """The record of a deleted file; ``package_key`` is empty if the file belonged to no package."""

    path: str
    package_key: str
    sha256: str
    deleted_at: datetime
    actor: str


_TOMBSTONE, _to_tombstone = rows(Tombstone, "tombstone", sha256=bytes.hex)


def has_tombstone(r: Reader, repository_id: int, path: str) -> bool:
    """Whether a path has a tombstone."""
    return exists(r, "SELECT 1 FROM tombstone WHERE repository_id = ? AND path = ?", (repository_id, path))


def tombstone_paths(r: Reader, repository_id: int, prefix: str, limit: int) -> list[str]:
    """At most ``limit`` paths with a tombstone that start with ``prefix``, in order."""
    return column(
        r,
        "SELECT path FROM tombstone WHERE repository_id = ? AND path >= ? AND path < ? ORDER BY path LIMIT ?",
        (repository_id, prefix, prefix + LAST_CHARACTER, limit),
    )


def tombstones_of_package(r: Reader, repository_id: int, package_key: str) -> list[Tombstone]:
    """The tombstones of a package, ordered by path. The package itself need not exist any more."""
    # In this order the database finds them by an index; by path, it reads all of the repository.
    sql = f"{_TOMBSTONE} WHERE repository_id = ? AND package_key = ? ORDER BY deleted_at"
    return sorted(every(r, _to_tombstone, sql, (repository_id, package_key)), key=attrgetter("path"))


def packages_with_tombstones(r: Reader, repository_id: int) -> list[str]:
    """The keys of the packages that have a tombstone or a retired name, in order."""
    return column(
        r,
        """
        SELECT package_key FROM tombstone WHERE repository_id = ? AND package_key <> ''
        UNION SELECT package_key FROM retired_name WHERE repository_id = ?
        ORDER BY 1
        """,
        (repository_id, repository_id),
    )


def restore_tombstone(tx: Transaction, repository_id: int, tombstone: Tombstone) -> bool:
    """Insert a tombstone unless its path has a tombstone or a file; returns whether it was inserted."""
    return bool(
        tx.execute(
            """
            INSERT INTO tombstone (repository_id, path, package_key, sha256, deleted_at, actor)
            SELECT ?, ?, ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM file WHERE repository_id = ? AND path = ?)
            ON CONFLICT (repository_id, path) DO NOTHING
            """,
            (
                repository_id,
                tombstone.path,
                tombstone.package_key,
                bytes.fromhex(tombstone.sha256),
                round(tombstone.deleted_at.timestamp() * 1000),
                tombstone.actor,
                repository_id,
                tombstone.path,
            ),
        )
    )
