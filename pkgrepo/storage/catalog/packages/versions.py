"""Versions of a package, in the order that their format gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.model import Actor, Version, VersionState
from pkgrepo.storage.catalog.columns import at, dump, load
from pkgrepo.storage.catalog.rows import column, every, find, number

_VERSION = "SELECT id, package_id, key, text, sort, state, reason, meta, published_at, publisher FROM version"


def find_version(r: Reader, package_id: int, key: str) -> Version | None:
    """The version with this key, or None."""
    return find(r, _version, f"{_VERSION} WHERE package_id = ? AND key = ?", (package_id, key))


def ensure_version(
    tx: Transaction,
    package_id: int,
    *,
    key: str,
    text: str,
    sort: bytes,
    meta: Mapping[str, Any],
    publisher: Actor,
    now_ms: int,
) -> tuple[Version, bool]:
    """The version with this key, and whether it was added now; one that is there keeps all that it has."""
    found = find_version(tx, package_id, key)
    if found is not None:
        return found, False
    added = tx.execute(
        """
        INSERT INTO version (package_id, key, text, sort, meta, published_at, publisher_id, publisher)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (package_id, key) DO NOTHING
        """,
        (package_id, key, text, sort, dump(meta), now_ms, publisher.user_id, publisher.name),
    )
    found = find_version(tx, package_id, key)
    assert found is not None
    return found, bool(added)


def list_versions(r: Reader, package_id: int) -> list[Version]:
    """Every version in the format's order; those that sort alike by key."""
    return every(r, _version, f"{_VERSION} WHERE package_id = ? ORDER BY sort, key", (package_id,))


def version_keys(r: Reader, package_id: int) -> list[str]:
    """The key of every version, in the format's order."""
    return column(r, "SELECT key FROM version WHERE package_id = ? ORDER BY sort, key", (package_id,))


def version_texts(r: Reader, package_id: int) -> list[str]:
    """How every version is written, in the format's order."""
    return column(r, "SELECT text FROM version WHERE package_id = ? ORDER BY sort, key", (package_id,))


def count_versions(r: Reader, package_id: int) -> int:
    """How many versions a package has."""
    return number(r, "SELECT COUNT(*) FROM version WHERE package_id = ?", (package_id,))


def set_state(tx: Transaction, version_id: int, state: VersionState, reason: str) -> None:
    """Yank, deprecate or restore; the reason is for people."""
    tx.execute("UPDATE version SET state = ?, reason = ? WHERE id = ?", (state, reason, version_id))


def set_meta(tx: Transaction, version_id: int, meta: Mapping[str, Any]) -> None:
    """Replace what the format keeps of a version."""
    tx.execute("UPDATE version SET meta = ? WHERE id = ?", (dump(meta), version_id))


def set_published_at(tx: Transaction, version_id: int, published_ms: int) -> None:
    """Give a version that was taken in anew the time that it had."""
    tx.execute("UPDATE version SET published_at = ? WHERE id = ?", (published_ms, version_id))


def remove_version(tx: Transaction, version_id: int) -> None:
    """Remove a version with its files and the tags on it."""
    tx.execute("DELETE FROM version WHERE id = ?", (version_id,))


def _version(row: Row) -> Version:
    return Version(
        id=row[0],
        package_id=row[1],
        key=row[2],
        text=row[3],
        sort=row[4],
        state=VersionState(row[5]),
        reason=row[6],
        meta=load(row[7]),
        published_at=at(row[8]),
        publisher=row[9],
    )
