"""
Blobs: which bytes a storage holds, and under which locator.

========  ===================================================================  =====================================
state     who moves it on                                                      what survives a crash
========  ===================================================================  =====================================
live      gc marks it when nothing refers to it and nobody asked for long      the row
deleting  gc removes the bytes, then the row *of that locator*                 gc goes on with it
suspect   the bytes were found damaged; the next upload of them heals the row  the row
========  ===================================================================  =====================================

An upload that meets a row in ``deleting`` or ``suspect`` puts its own fresh copy in its place. Since a locator is never
used twice, gc then removes the old copy and cannot hit the new one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from attrs import evolve

from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.model import BlobInfo
from pkgrepo.storage.catalog.clauses import marks
from pkgrepo.storage.catalog.columns import dump, load
from pkgrepo.storage.catalog.rows import column, every, find

TOUCH_MS = 600_000  # a row touched that recently is not written again; far less than any grace of the gc

_DIGEST = re.compile("[0-9a-f]{64}")

# Where the bytes of a blob ``b`` are: nowhere when they are known to be damaged, and no store opens an empty locator.
LOCATOR = "CASE b.state WHEN 'suspect' THEN '' ELSE b.locator END"

_BLOB = "SELECT sha256, size, locator, digests FROM blob"


def digests(sha256: str, others: str) -> Mapping[str, str]:
    """All digests of a blob, from its key and the column with the others."""
    return {"sha256": sha256, **load(others)}


def find_blob(r: Reader, storage_id: int, sha256: str) -> BlobInfo | None:
    """The blob with these bytes unless it is being deleted, or None."""
    return find(
        r,
        to_info,
        f"{_BLOB} WHERE storage_id = ? AND sha256 = ? AND state <> 'deleting'",
        (storage_id, bytes.fromhex(sha256)),
    )


def claim_blob(tx: Transaction, storage_id: int, info: BlobInfo, now_ms: int) -> BlobInfo:
    """
    Take bytes that are durable into the catalog; the blob as it is from now on.

    When the storage had these bytes already, the answer names that copy, and the caller removes its own. Digests that
    are new are added. The reference to the blob has to be made in the same transaction.
    """
    key = bytes.fromhex(info.sha256)
    row = tx.one(
        "SELECT size, locator, digests, state, touched_at FROM blob WHERE storage_id = ? AND sha256 = ?",
        (storage_id, key),
    )
    if row is None or row[3] != "live":
        _put(tx, storage_id, info, now_ms)
        return info
    known = load(row[2])
    others = {**known, **_others(info)}
    if others != known or row[4] < now_ms - TOUCH_MS:
        tx.execute(
            "UPDATE blob SET touched_at = ?, digests = ? WHERE storage_id = ? AND sha256 = ?",
            (now_ms, dump(others), storage_id, key),
        )
    return evolve(info, size=row[0], locator=row[1], digests={"sha256": info.sha256, **others})


def touch_blob(tx: Transaction, storage_id: int, sha256: str, now_ms: int) -> bool:
    """
    Keep a blob from the gc for another while; whether it is there and whole.

    To be called before a client is told that it need not upload these bytes.
    """
    row = tx.one(
        "SELECT touched_at FROM blob WHERE storage_id = ? AND sha256 = ? AND state = 'live'",
        (storage_id, bytes.fromhex(sha256)),
    )
    if row is None:
        return False
    if row[0] < now_ms - TOUCH_MS:
        tx.execute(
            "UPDATE blob SET touched_at = ? WHERE storage_id = ? AND sha256 = ?",
            (now_ms, storage_id, bytes.fromhex(sha256)),
        )
    return True


def set_verified(tx: Transaction, storage_id: int, sha256: str, now_ms: int) -> None:
    """Note that the bytes were read and are what they should be; that also clears a suspicion."""
    tx.execute(
        """
        UPDATE blob SET verified_at = ?, state = CASE state WHEN 'suspect' THEN 'live' ELSE state END
        WHERE storage_id = ? AND sha256 = ?
        """,
        (now_ms, storage_id, bytes.fromhex(sha256)),
    )


def mark_suspect(tx: Transaction, storage_id: int, sha256: str, locator: str) -> bool:
    """Note that a copy is missing or damaged; False when the blob is removed, or has another copy by now."""
    changed = tx.execute(
        """
        UPDATE blob SET state = 'suspect'
        WHERE storage_id = ? AND sha256 = ? AND locator = ? AND state IN ('live', 'suspect')
        """,
        (storage_id, bytes.fromhex(sha256), locator),
    )
    return bool(changed)


def usage(r: Reader, storage_id: int) -> tuple[int, int]:
    """How many blobs a storage holds, and their bytes. Reads every row: for a reader thread."""
    row = r.one("SELECT COUNT(*), COALESCE(SUM(size), 0) FROM blob WHERE storage_id = ?", (storage_id,))
    assert row is not None
    return row[0], row[1]


def count_blobs(r: Reader, storage_id: int) -> int:
    """How many blobs a storage holds."""
    return usage(r, storage_id)[0]


def list_blobs(r: Reader, storage_id: int, after: bytes = b"", limit: int = 500) -> list[BlobInfo]:
    """Blobs ordered by sha256, from after the raw digest ``after``; those being deleted are left out."""
    return every(
        r,
        to_info,
        f"{_BLOB} WHERE storage_id = ? AND sha256 > ? AND state <> 'deleting' ORDER BY sha256 LIMIT ?",
        (storage_id, after, limit),
    )


def unnamed(r: Reader, storage_id: int, locators: Sequence[str]) -> list[str]:
    """
    Those of the locators that no row names, in their order; at most some hundreds at once.

    Locators are not indexed, but most hold the digest, which is. Every row is read for those that then remain, so this
    is for a reader thread.
    """
    hinted = [bytes.fromhex(found[0]) for locator in locators if (found := _DIGEST.search(locator))]
    named = _named(r, storage_id, "sha256", hinted)
    named |= _named(r, storage_id, "locator", [locator for locator in locators if locator not in named])
    return [locator for locator in locators if locator not in named]


def without_row(r: Reader, storage_id: int, locators: Sequence[str]) -> list[str]:
    """Those of the locators whose content no row is about, whichever copy of it; at most some hundreds at once."""
    hinted = {locator: bytes.fromhex(found[0]) for locator in locators if (found := _DIGEST.search(locator))}
    if not hinted:
        return []
    sql = f"SELECT sha256 FROM blob WHERE storage_id = ? AND sha256 IN ({marks(len(hinted))})"
    known = {row[0] for row in r.all(sql, (storage_id, *hinted.values()))}
    return [locator for locator, sha256 in hinted.items() if sha256 not in known]


def _named(r: Reader, storage_id: int, column: str, values: Sequence[str | bytes]) -> set[str]:
    if not values:
        return set()
    sql = f"SELECT locator FROM blob WHERE storage_id = ? AND {column} IN ({marks(len(values))})"
    return {row[0] for row in r.all(sql, (storage_id, *values))}


def claimed_uploads(r: Reader, storage_id: int) -> list[str]:
    """The names of unfinished uploads that somebody may come back to."""
    return column(r, "SELECT uid FROM upload WHERE storage_id = ?", (storage_id,))


def to_info(row: Row) -> BlobInfo:
    """The value of a row of sha256, size, locator, digests."""
    sha256 = row[0].hex()
    return BlobInfo(sha256=sha256, size=row[1], locator=row[2], digests=digests(sha256, row[3]))


def _put(tx: Transaction, storage_id: int, info: BlobInfo, now_ms: int) -> None:
    tx.execute(
        """
        INSERT INTO blob (storage_id, sha256, locator, size, digests, state, touched_at, created_at)
        VALUES (?, ?, ?, ?, ?, 'live', ?, ?)
        ON CONFLICT (storage_id, sha256) DO UPDATE
        SET locator = excluded.locator, size = excluded.size, digests = excluded.digests, state = 'live',
            touched_at = excluded.touched_at, created_at = excluded.created_at, verified_at = NULL
        """,
        (storage_id, bytes.fromhex(info.sha256), info.locator, info.size, dump(_others(info)), now_ms, now_ms),
    )


def _others(info: BlobInfo) -> dict[str, str]:
    return {name: digest for name, digest in info.digests.items() if name != "sha256"}
