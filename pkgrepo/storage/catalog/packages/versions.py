"""Versions of a package: queries and write commands. The format of the package defines their order (``sort``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.model import Version, VersionState
from pkgrepo.storage.catalog.rows import at, column, dump, every, find, load, number

VERSION_COLUMNS = "id, package_id, key, text, sort, state, reason, meta, published_at, publisher"
VERSION = f"SELECT {VERSION_COLUMNS} FROM version"
_HIGHEST = "ORDER BY sort DESC, key DESC LIMIT 1"


def find_version(r: Reader, package_id: int, key: str) -> Version | None:
    """The version with this key, or None."""
    return find(r, to_version, f"{VERSION} WHERE package_id = ? AND key = ?", (package_id, key))


def list_versions(r: Reader, package_id: int) -> list[Version]:
    """All versions in the format's order; versions with the same ``sort`` are ordered by key."""
    return every(r, to_version, f"{VERSION} WHERE package_id = ? ORDER BY sort, key", (package_id,))


def newest_keys(r: Reader, package_id: int, state: VersionState, limit: int) -> list[str]:
    """The keys of the highest versions in a state, at most ``limit``, the highest first."""
    return column(
        r,
        "SELECT key FROM version WHERE package_id = ? AND state = ? ORDER BY sort DESC, key DESC LIMIT ?",
        (package_id, state, limit),
    )


def first_publisher(r: Reader, package_id: int) -> str:
    """The name of the publisher of the version that was published first; empty if there is none."""
    row = r.one("SELECT publisher FROM version WHERE package_id = ? ORDER BY published_at, id LIMIT 1", (package_id,))
    return "" if row is None else row[0]


def version_keys(r: Reader, package_id: int) -> list[str]:
    """The keys of all versions, in the format's order."""
    return column(r, "SELECT key FROM version WHERE package_id = ? ORDER BY sort, key", (package_id,))


def sorted_texts(r: Reader, package_id: int) -> list[tuple[bytes, str]]:
    """The versions' ``sort`` and text, in the format's order."""
    return r.all("SELECT sort, text FROM version WHERE package_id = ? ORDER BY sort, key", (package_id,))


def version_texts(r: Reader, package_id: int) -> list[str]:
    """The texts of all versions (as the publisher wrote them), in the format's order."""
    return column(r, "SELECT text FROM version WHERE package_id = ? ORDER BY sort, key", (package_id,))


def find_highest(r: Reader, package_id: int) -> Version | None:
    """The highest version that is not yanked, or if all are yanked the highest; None if there is no version."""
    found = find(r, to_version, f"{VERSION} WHERE package_id = ? AND state <> 'yanked' {_HIGHEST}", (package_id,))
    return found or find(r, to_version, f"{VERSION} WHERE package_id = ? {_HIGHEST}", (package_id,))


def count_versions(r: Reader, package_id: int) -> int:
    """The number of versions of a package."""
    return number(r, "SELECT COUNT(*) FROM version WHERE package_id = ?", (package_id,))


def texts_of_sort(r: Reader, package_id: int, sort: bytes) -> list[str]:
    """The texts of the versions with this ``sort``, which the format takes for equal."""
    return column(r, "SELECT text FROM version WHERE package_id = ? AND sort = ? ORDER BY key", (package_id, sort))


def set_state(tx: Transaction, version_id: int, state: VersionState, reason: str) -> None:
    """Yank, deprecate or restore a version; the reason is free text for users."""
    tx.send("UPDATE version SET state = ?, reason = ? WHERE id = ?", (state, reason, version_id))


def set_meta(tx: Transaction, version_id: int, meta: Mapping[str, Any]) -> None:
    """Replace the metadata that the format stores for a version."""
    tx.send("UPDATE version SET meta = ? WHERE id = ?", (dump(meta), version_id))


def set_published_at(tx: Transaction, version_id: int, published_ms: int) -> None:
    """Set the publication time of a version that was restored, to the one that it had before."""
    tx.send("UPDATE version SET published_at = ? WHERE id = ?", (published_ms, version_id))


def remove_version(tx: Transaction, version_id: int) -> None:
    """Remove a version with its files and tags."""
    tx.send("DELETE FROM version WHERE id = ?", (version_id,))


def to_version(row: Row) -> Version:
    """Convert a row of the query ``VERSION``."""
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
