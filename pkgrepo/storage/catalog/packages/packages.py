"""
Packages of a repository and their names: queries and write commands.

A retired name is that of a package that a hosted repository had, and has not any more. A publish under such a name to
an upstream would reach the clients that still install it. So the name belongs to the hosted repository until it is
released, or published there again:

=============  =====================  =================================================================================
name           becomes                by
=============  =====================  =================================================================================
of a package   retired                the removal of the package with its last version
retired        that of a package      a publish
retired        free: upstreams are    a release by a caller who may edit the repository
               asked for it
=============  =====================  =================================================================================

A spelling is what the names of packages have in common that people mistake for each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Package, RepositoryType, VersionState
from pkgrepo.storage.catalog.rows import (
    LAST_CHARACTER,
    batches,
    column,
    dump,
    every,
    exists,
    find,
    number,
    placeholders,
    rows,
    scalar,
)

PACKAGE, to_package = rows(Package, "package")


RETIRED: Final = -1  # in place of the serial of a package


def keys_beginning(r: Reader, repository_id: int, prefix: str) -> set[str]:
    """The keys of packages, also of those that are in the trash alone, that begin with a text."""
    between = (repository_id, prefix, prefix + LAST_CHARACTER)
    sql = "SELECT key FROM package WHERE repository_id = ? AND key >= ? AND key < ?"
    trashed = "SELECT DISTINCT package_key FROM trash WHERE repository_id = ? AND package_key >= ? AND package_key < ?"
    return {*column(r, sql, between), *column(r, trashed, between)}


def find_package(r: Reader, repository_id: int, key: str) -> Package | None:
    """The package with this key, or None."""
    return find(r, to_package, f"{PACKAGE} WHERE repository_id = ? AND key = ?", (repository_id, key))


def find_package_by_id(r: Reader, package_id: int) -> Package | None:
    """The package with this id, or None."""
    return find(r, to_package, f"{PACKAGE} WHERE id = ?", (package_id,))


def package_serial(r: Reader, repository_id: int, key: str) -> int | None:
    """The serial of a package's last change; None if there is no package with this key."""
    return scalar(r, "SELECT serial FROM package WHERE repository_id = ? AND key = ?", (repository_id, key))


def ensure_package(
    tx: Transaction, repository_id: int, *, key: str, name: str, serial: int, now_ms: int
) -> tuple[Package, bool]:
    """
    The package with this key, added if it did not exist, and whether it was added.

    With the serial 0 it does not own its name before its first change; see L{ownership}.
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
        release_name(tx, repository_id, key)
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
    retire_name(tx, package_id)
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


def package_names_at(r: Reader, repository_id: int, at_ms: int) -> list[tuple[str, str]]:
    """The same for packages that have a version which was published until a time."""
    sql = """
        SELECT key, name FROM package p WHERE repository_id = ? AND EXISTS (
            SELECT 1 FROM version v WHERE v.package_id = p.id AND v.published_at <= ?
        ) ORDER BY key
    """
    return r.all(sql, (repository_id, at_ms))


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


def put_spelling(tx: Transaction, repository_id: int, package_id: int, spelling: str) -> None:
    """Record the spelling of a package, which never changes. It is removed with the package."""
    tx.send(
        """
        INSERT INTO package_spelling (package_id, repository_id, spelling) VALUES (?, ?, ?)
        ON CONFLICT (package_id) DO NOTHING
        """,
        (package_id, repository_id, spelling),
    )


def live_names(r: Reader, repository_id: int, spelling: str) -> list[str]:
    """The names of the packages with this spelling that have a live version, in order."""
    return column(
        r,
        """
        SELECT p.name FROM package_spelling s JOIN package p ON p.id = s.package_id
        WHERE s.repository_id = ? AND s.spelling = ?
          AND EXISTS (SELECT 1 FROM version v WHERE v.package_id = p.id AND v.state = ?)
        ORDER BY p.name
        """,
        (repository_id, spelling, VersionState.LIVE),
    )


@frozen
class RetiredName:
    """A retired name (the key of the package), and when the package was removed."""

    key: str
    retired_at: datetime


_RETIRED, _to_retired = rows(RetiredName, "retired_name", key="package_key")


def ownership(r: Reader, repository_id: int, key: str) -> int | None:
    """
    The serial of a package, ``RETIRED`` if its name is; None if the repository has never had it.

    A package with the serial 0 does not count: an image of which only blobs were uploaded.
    """
    sql = "SELECT serial FROM package WHERE repository_id = ? AND key = ? AND serial > 0"
    serial = scalar(r, sql, (repository_id, key))
    if serial is not None:
        return int(serial)
    sql = "SELECT 1 FROM retired_name WHERE repository_id = ? AND package_key = ?"
    return RETIRED if exists(r, sql, (repository_id, key)) else None


def owned_keys(r: Reader, repository_ids: Iterable[int]) -> set[str]:
    """The keys of all packages that repositories have or had: no upstream is asked for them."""
    sql = """
        SELECT key FROM package WHERE repository_id = ? AND serial > 0
        UNION SELECT package_key FROM retired_name WHERE repository_id = ?
    """
    return {key for each in repository_ids for (key,) in r.all(sql, (each, each))}


def list_retired(r: Reader, repository_id: int, *, after: str = "", limit: int = 50) -> list[RetiredName]:
    """A page of retired names after the key ``after``, ordered by key."""
    return every(
        r,
        _to_retired,
        f"{_RETIRED} WHERE repository_id = ? AND package_key > ? ORDER BY package_key LIMIT ?",
        (repository_id, after, limit),
    )


def find_retired(r: Reader, repository_id: int, key: str) -> RetiredName | None:
    """A retired name by its key, None if it is not retired."""
    return find(r, _to_retired, f"{_RETIRED} WHERE repository_id = ? AND package_key = ?", (repository_id, key))


def changed_keys(r: Reader, repository_id: int, since_ms: int, *, after: str, limit: int) -> list[str]:
    """
    The keys after ``after``, in order, of packages that were changed or removed since a time.

    Reads the packages of the repository until it has so many: call it on a reader thread.
    """
    sql = """
        SELECT key FROM package WHERE repository_id = ? AND updated_at > ? AND key > ?
        UNION SELECT package_key FROM retired_name WHERE repository_id = ? AND retired_at > ? AND package_key > ?
        ORDER BY 1 LIMIT ?
    """
    return column(r, sql, (repository_id, since_ms, after, repository_id, since_ms, after, limit))


def retire_name(tx: Transaction, package_id: int) -> None:
    """Retire the name of a package that is about to be removed, if its repository is hosted and owned the name."""
    tx.send(
        """
        INSERT INTO retired_name (repository_id, package_key, retired_at)
        SELECT p.repository_id, p.key, p.updated_at FROM package p JOIN repository r ON r.id = p.repository_id
        WHERE p.id = ? AND r.type = ? AND p.serial > 0
        ON CONFLICT (repository_id, package_key) DO UPDATE SET retired_at = excluded.retired_at
        """,
        (package_id, RepositoryType.HOSTED.value),
    )


def restore_retired(tx: Transaction, repository_id: int, key: str, retired_ms: int) -> None:
    """Retire a name again that was retired before the catalog was lost, unless a package has it."""
    if ownership(tx, repository_id, key) is None:
        tx.execute(
            "INSERT INTO retired_name (repository_id, package_key, retired_at) VALUES (?, ?, ?)",
            (repository_id, key, retired_ms),
        )


def note_retired(tx: Transaction, repository_id: int, key: str, retired_ms: int) -> bool:
    """Note that a name is retired, also in a repository that is not hosted yet; returns whether that is new."""
    sql = """
        INSERT INTO retired_name (repository_id, package_key, retired_at) VALUES (?, ?, ?)
        ON CONFLICT (repository_id, package_key) DO NOTHING
    """
    return bool(tx.execute(sql, (repository_id, key, retired_ms)))


def free_names(tx: Transaction, repository_id: int) -> None:
    """Forget that names are retired which packages of the repository have."""
    sql = """
        DELETE FROM retired_name WHERE repository_id = ?
            AND package_key IN (SELECT key FROM package WHERE repository_id = ? AND serial > 0)
    """
    tx.execute(sql, (repository_id, repository_id))


def release_name(tx: Transaction, repository_id: int, key: str) -> bool:
    """Forget that a name is retired; returns whether it was."""
    return bool(
        tx.execute("DELETE FROM retired_name WHERE repository_id = ? AND package_key = ?", (repository_id, key))
    )
