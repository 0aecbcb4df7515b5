"""Packages of a repository: queries and write commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.model import Package
from pkgrepo.storage.catalog.rows import at, batches, dump, every, find, load, number, placeholders

from . import retired_names

PACKAGE_COLUMNS = "id, repository_id, key, name, latest, serial, meta, created_at, updated_at, modified_s"
PACKAGE = f"SELECT {PACKAGE_COLUMNS} FROM package"


def find_package(r: Reader, repository_id: int, key: str) -> Package | None:
    """The package with this key, or None."""
    return find(r, to_package, f"{PACKAGE} WHERE repository_id = ? AND key = ?", (repository_id, key))


def package_serial(r: Reader, repository_id: int, key: str) -> int | None:
    """The serial of a package's last change; None if there is no package with this key."""
    row = r.one("SELECT serial FROM package WHERE repository_id = ? AND key = ?", (repository_id, key))
    return None if row is None else row[0]


def ensure_package(
    tx: Transaction, repository_id: int, *, key: str, name: str, serial: int, now_ms: int
) -> tuple[Package, bool]:
    """
    The package with this key, added if it did not exist, and whether it was added.

    With the serial 0 it does not own its name before its first change; see L{retired_names.ownership}.
    """
    found = find_package(tx, repository_id, key)
    if found is not None:
        return found, False
    added = tx.execute(
        """
        INSERT INTO package (repository_id, key, name, serial, created_at, updated_at, modified_s)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (repository_id, key) DO NOTHING
        """,
        (repository_id, key, name, serial, now_ms, now_ms, _removed_s(tx, repository_id, key)),
    )
    found = find_package(tx, repository_id, key)
    assert found is not None
    if serial:
        retired_names.release(tx, repository_id, key)
    return found, bool(added)


def touch_package(
    tx: Transaction,
    package_id: int,
    *,
    serial: int,
    now_ms: int,
    name: str | None = None,
    latest: str | None = None,
    meta: Mapping[str, Any] | None = None,
) -> None:
    """
    Record a change of a package under the repository's new serial; an argument that is None leaves its column as it is.

    ``modified_s`` (Unix seconds) grows by at least 1 with each new serial, even if the clock was set back, since
    documents are sent with it as Last-Modified.
    """
    now_s = now_ms // 1000
    tx.send(
        """
        UPDATE package
        SET serial = ?, updated_at = ?, name = COALESCE(?, name), latest = COALESCE(?, latest),
            meta = COALESCE(?, meta), modified_s = CASE WHEN serial = ? THEN modified_s
                WHEN modified_s >= ? THEN modified_s + 1 ELSE ? END
        WHERE id = ?
        """,
        (serial, now_ms, name, latest, None if meta is None else dump(meta), serial, now_s, now_s, package_id),
    )


def set_latest(tx: Transaction, package_id: int, latest: str | None) -> None:
    """Store the text of the latest version; None for the highest live one, if there is any."""
    tx.send("UPDATE package SET latest = ? WHERE id = ?", (latest, package_id))


def set_alone(tx: Transaction, package_id: int, alone: bool) -> None:
    """Store whether the last push named the image without its repository."""
    tx.send("UPDATE package SET alone = ? WHERE id = ? AND alone <> ?", (int(alone), package_id, int(alone)))


def set_derived(tx: Transaction, package_id: int, derived: bool) -> None:
    """Store whether files of a package are made from those of one in the repository that its own belongs to."""
    tx.send("UPDATE package SET derived = ? WHERE id = ? AND derived <> ?", (int(derived), package_id, int(derived)))


def set_times(tx: Transaction, package_id: int, created_ms: int, updated_ms: int) -> None:
    """Set the times of a package that was restored, to those that it had before."""
    tx.send("UPDATE package SET created_at = ?, updated_at = ? WHERE id = ?", (created_ms, updated_ms, package_id))


def remove_package(tx: Transaction, package_id: int) -> None:
    """
    Remove a package with its versions, files, tags and fragments; its name is retired.

    Its documents are removed separately, by key.
    """
    retired_names.retire(tx, package_id)
    tx.send("DELETE FROM package WHERE id = ?", (package_id,))


def list_packages(r: Reader, repository_id: int, *, after: str = "", limit: int = 50) -> list[Package]:
    """A page of packages after the key ``after``, ordered by key."""
    return every(
        r,
        to_package,
        f"{PACKAGE} WHERE repository_id = ? AND key > ? ORDER BY key LIMIT ?",
        (repository_id, after, limit),
    )


def package_names(r: Reader, repository_id: int) -> list[tuple[str, str]]:
    """Key and name of every package, ordered by key. Takes some 100 ms for some 100,000 packages."""
    return r.all("SELECT key, name FROM package WHERE repository_id = ? ORDER BY key", (repository_id,))


def package_serials(r: Reader, repository_id: int) -> list[tuple[str, str, int]]:
    """The same, with the serial of the last change of each package."""
    return r.all("SELECT key, name, serial FROM package WHERE repository_id = ? ORDER BY key", (repository_id,))


def names_of(r: Reader, repository_id: int, keys: Sequence[str]) -> dict[str, str]:
    """The names of those packages with one of these keys that a repository has, by key."""
    found: dict[str, str] = {}
    for batch in batches(keys):
        sql = f"SELECT key, name FROM package WHERE repository_id = ? AND key IN ({placeholders(len(batch))})"
        found |= dict(r.all(sql, (repository_id, *batch)))
    return found


def packages_with_meta(r: Reader, repository_id: int) -> list[Package]:
    """The packages with non-empty ``meta``, usually few. Reads every row: call it on a reader thread."""
    return every(r, to_package, f"{PACKAGE} WHERE repository_id = ? AND meta <> '{{}}'", (repository_id,))


def _removed_s(r: Reader, repository_id: int, key: str) -> int:
    """
    The latest deletion time of a file of an earlier package with this key, in Unix seconds; 0 without any.

    A new package starts with this ``modified_s``, so that its first change gets a later one than its predecessor had.
    """
    sql = "SELECT MAX(deleted_at) / 1000 FROM tombstone WHERE repository_id = ? AND package_key = ?"
    return number(r, sql, (repository_id, key))


def to_package(row: Row) -> Package:
    """Convert a row of the query ``PACKAGE``."""
    return Package(
        id=row[0],
        repository_id=row[1],
        key=row[2],
        name=row[3],
        latest=row[4],
        serial=row[5],
        meta=load(row[6]),
        created_at=at(row[7]),
        updated_at=at(row[8]),
        modified_s=row[9],
    )
