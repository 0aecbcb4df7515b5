"""
Blobs: one row per storage and sha256, with the locator of the stored copy.

========  ==============================  ==============================================================  ============
state     meaning                         next state                                                      after a crash
========  ==============================  ==============================================================  ============
live      the bytes can be read           deleting: gc, if it has no reference and was not touched for    unchanged
                                          the grace period; suspect: a read found the bytes missing or
                                          damaged
deleting  gc removes the bytes, then the  live: an upload of the same bytes; else gc removes the row      the next gc
          row *of that locator*                                                                           continues
suspect   the bytes are missing or        live: an upload of the same bytes, or a verification that       unchanged
          damaged                         found the bytes intact
========  ==============================  ==============================================================  ============

An upload of the same bytes replaces the locator of a row in ``deleting`` or ``suspect`` with that of its own copy. A
locator is never reused, so gc can then remove the old copy but not the new one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from attrs import evolve

from pkgrepo.errors import Conflict
from pkgrepo.interfaces import Reader, Row, Transaction, Value
from pkgrepo.model import SYSTEM, BlobInfo
from pkgrepo.storage.catalog.rows import (
    batches,
    column,
    dump,
    every,
    find,
    load,
    number,
    only_row,
    placeholders,
    put,
    rows,
    scalar,
)

TOUCH_MS = 600_000  # minimum time between two writes of touched_at to one row

# The kind of events that tell the readable layout alone: what it shows was written anew, and nothing that clients see.
REWRITTEN = "rewritten"

_DIGEST = re.compile("[0-9a-f]{64}")

# The locator of a blob ``b``; empty if the blob is suspect. No blob store opens an empty locator.
LOCATOR = "CASE b.state WHEN 'suspect' THEN '' ELSE b.locator END"


def digests(sha256: bytes, others: str) -> Mapping[str, str]:
    """All digests of a blob by algorithm: its sha256, and those in its ``digests`` column."""
    return {"sha256": sha256.hex(), **load(others)}


_BLOB, to_info = rows(BlobInfo, "blob", sha256=bytes.hex, digests=("sha256", "digests", digests))


def find_blob(r: Reader, storage_id: int, sha256: str) -> BlobInfo | None:
    """The blob with this sha256, or None if there is none or gc is deleting it. A suspect blob is returned."""
    return find(
        r,
        to_info,
        f"{_BLOB} WHERE storage_id = ? AND sha256 = ? AND state <> 'deleting'",
        (storage_id, bytes.fromhex(sha256)),
    )


def claim_blob(tx: Transaction, storage_id: int, info: BlobInfo, now_ms: int) -> BlobInfo:
    """
    Register a stored copy of a blob, and return the blob as the catalog has it from now on.

    The copy must be durable (fsynced). If the storage already has a live copy of these bytes, the result has the
    locator of that one, and the caller removes its own copy. New digests are added to the row. The caller must insert
    a reference to the blob in the same transaction.
    """
    return claim_blobs(tx, storage_id, [info], now_ms)[0]


def claim_blobs(tx: Transaction, storage_id: int, infos: Sequence[BlobInfo], now_ms: int) -> list[BlobInfo]:
    """Record several blobs, among them equal ones, with few statements. Returns them in the same order."""
    wanted: dict[bytes, BlobInfo] = {}
    for info in infos:
        key = bytes.fromhex(info.sha256)
        before = wanted.get(key)
        wanted[key] = info if before is None else evolve(before, digests={**before.digests, **info.digests})
    claimed: dict[str, BlobInfo] = {}
    for some in batches(list(wanted)):
        found = _find_live(tx, storage_id, some)
        added: list[BlobInfo] = []
        touched: list[bytes] = []
        for key in some:
            info = wanted[key]
            size, locator, stored, state, touched_ms = found.get(key, _ABSENT)
            known = load(stored)
            others = {**known, **_others(info)}
            digests = {"sha256": info.sha256, **others}
            if state != "live":
                if digests != info.digests:  # else the same object, so that callers see that nothing differs
                    info = evolve(info, digests=digests)
                added.append(info)
            else:
                if others != known:
                    _set_digests(tx, storage_id, key, others, now_ms)
                    _tell_layouts(tx, storage_id, [key], now_ms, moved=False)
                elif touched_ms < now_ms - TOUCH_MS:
                    touched.append(key)
                held = BlobInfo(info.sha256, size, locator, digests)
                info = info if held == info else held
            claimed[info.sha256] = info
        _put(tx, storage_id, added, now_ms)
        replaced = [key for key in some if found.get(key, _ABSENT)[3] == "suspect"]
        _tell_layouts(tx, storage_id, replaced, now_ms, moved=True)
        _touch(tx, storage_id, touched, now_ms)
    return [claimed[info.sha256] for info in infos]


def touch_blob(tx: Transaction, storage_id: int, sha256: str, now_ms: int) -> bool:
    """
    Restart the grace period of a live blob; returns False if there is no live blob with this sha256.

    Call this before any response that lets a client skip the upload of these bytes.
    """
    sql = "SELECT touched_at FROM blob WHERE storage_id = ? AND sha256 = ? AND state = 'live'"
    touched_ms = scalar(tx, sql, (storage_id, bytes.fromhex(sha256)))
    if touched_ms is None:
        return False
    if touched_ms < now_ms - TOUCH_MS:
        tx.send(
            "UPDATE blob SET touched_at = ? WHERE storage_id = ? AND sha256 = ?",
            (now_ms, storage_id, bytes.fromhex(sha256)),
        )
    return True


def use_again(tx: Transaction, storage_id: int, sha256: str, what: str, now_ms: int) -> BlobInfo:
    """
    The live blob with this sha256, with a grace period that begins now, for ``what`` is published of it again.

    :raises Conflict: its bytes are damaged or missing
    """
    found = find_blob(tx, storage_id, sha256)
    if found is None or not touch_blob(tx, storage_id, sha256, now_ms):
        raise Conflict(f"the bytes of {what} are damaged or missing")
    return found


def set_locator(tx: Transaction, storage_id: int, sha256: str, old: str, new: str) -> bool:
    """
    Name another copy of a blob, whose bytes were compared with the digest; a suspect blob becomes live.

    Returns False if the row was removed, is being deleted, or has another locator than ``old`` by now.
    """
    changed = tx.execute(
        """
        UPDATE blob SET locator = ?, state = 'live', verified_at = NULL
        WHERE storage_id = ? AND sha256 = ? AND locator = ? AND state IN ('live', 'suspect')
        """,
        (new, storage_id, bytes.fromhex(sha256), old),
    )
    return bool(changed)


def is_suspect(r: Reader, storage_id: int, sha256: str) -> bool:
    """Whether the bytes of a blob are known to be missing or damaged."""
    sql = "SELECT 1 FROM blob WHERE storage_id = ? AND sha256 = ? AND state = 'suspect'"
    return r.one(sql, (storage_id, bytes.fromhex(sha256))) is not None


def set_verified(tx: Transaction, storage_id: int, sha256s: Sequence[str], now_ms: int) -> None:
    """Record that the bytes of some blobs were read and have the right digests; a suspect blob becomes live."""
    for some in batches([bytes.fromhex(each) for each in sha256s]):
        tx.send(
            f"""
            UPDATE blob SET verified_at = ?, state = CASE state WHEN 'suspect' THEN 'live' ELSE state END
            WHERE storage_id = ? AND sha256 IN ({placeholders(len(some))})
            """,
            (now_ms, storage_id, *some),
        )


def list_suspects(r: Reader, storage_id: int, after: bytes, limit: int) -> list[BlobInfo]:
    """A page, as in ``list_blobs``, of the blobs of a storage whose bytes are known to be missing or damaged."""
    return every(
        r,
        to_info,
        f"{_BLOB} WHERE storage_id = ? AND state = 'suspect' AND sha256 > ? ORDER BY sha256 LIMIT ?",
        (storage_id, after, limit),
    )


def count_suspects(r: Reader, storage_id: int) -> int:
    """The number of them."""
    return number(r, "SELECT COUNT(*) FROM blob WHERE storage_id = ? AND state = 'suspect'", (storage_id,))


def mark_suspect(tx: Transaction, storage_id: int, sha256: str, locator: str) -> bool:
    """
    Mark a blob as suspect: the copy at this locator is missing or damaged.

    Returns False if the row was removed, is being deleted, or has another locator by now.
    """
    changed = tx.execute(
        """
        UPDATE blob SET state = 'suspect'
        WHERE storage_id = ? AND sha256 = ? AND locator = ? AND state IN ('live', 'suspect')
        """,
        (storage_id, bytes.fromhex(sha256), locator),
    )
    return bool(changed)


def usage(r: Reader, storage_id: int) -> tuple[int, int]:
    """The number of blobs of a storage, and their size in bytes. Reads every row: call it on a reader thread."""
    return only_row(r, "SELECT COUNT(*), COALESCE(SUM(size), 0) FROM blob WHERE storage_id = ?", (storage_id,))


def usage_by_state(r: Reader, storage_id: int) -> dict[str, tuple[int, int]]:
    """The same for the blobs in each state that there is. Call it on a reader thread, too."""
    sql = "SELECT state, COUNT(*), COALESCE(SUM(size), 0) FROM blob WHERE storage_id = ? GROUP BY state"
    return {state: (int(count), int(size)) for state, count, size in r.all(sql, (storage_id,))}


def count_blobs(r: Reader, storage_id: int) -> int:
    """The number of blobs of a storage. Reads every row: call it on a reader thread."""
    return usage(r, storage_id)[0]


def list_blobs(r: Reader, storage_id: int, after: bytes = b"", limit: int = 500) -> list[BlobInfo]:
    """A page of blobs after the raw sha256 ``after``, ordered by sha256, without those that gc is deleting."""
    return every(
        r,
        to_info,
        f"{_BLOB} WHERE storage_id = ? AND sha256 > ? AND state <> 'deleting' ORDER BY sha256 LIMIT ?",
        (storage_id, after, limit),
    )


def unknown_locators(r: Reader, storage_id: int, locators: Sequence[str]) -> list[str]:
    """
    The locators that no row of the storage has, in the given order. At most some hundred per call.

    The locator column has no index. Most locators contain the sha256, which has one; for the others every row is read,
    so call this on a reader thread.
    """
    sha256s = [bytes.fromhex(found[0]) for locator in locators if (found := _DIGEST.search(locator))]
    known = _known_locators(r, storage_id, "sha256", sha256s)
    known |= _known_locators(r, storage_id, "locator", [locator for locator in locators if locator not in known])
    return [locator for locator in locators if locator not in known]


def locators_without_blob(r: Reader, storage_id: int, locators: Sequence[str]) -> list[str]:
    """
    The locators that contain a sha256 for which the storage has no row. At most some hundred per call.

    Unlike in ``unknown_locators``, a row with another locator for the same sha256 counts.
    """
    sha256_of = {locator: bytes.fromhex(found[0]) for locator in locators if (found := _DIGEST.search(locator))}
    if not sha256_of:
        return []
    sql = f"SELECT sha256 FROM blob WHERE storage_id = ? AND sha256 IN ({placeholders(len(sha256_of))})"
    known = set(column(r, sql, (storage_id, *sha256_of.values())))
    return [locator for locator, sha256 in sha256_of.items() if sha256 not in known]


def _known_locators(r: Reader, storage_id: int, known_by: str, values: Sequence[str | bytes]) -> set[str]:
    if not values:
        return set()
    sql = f"SELECT locator FROM blob WHERE storage_id = ? AND {known_by} IN ({placeholders(len(values))})"
    return set(column(r, sql, (storage_id, *values)))


def upload_ids(r: Reader, storage_id: int) -> list[str]:
    """The ids of the upload sessions of a storage; their bytes must not be swept."""
    return column(r, "SELECT uid FROM upload WHERE storage_id = ?", (storage_id,))


def count_uploads(r: Reader, storage_id: int, before_ms: int) -> int:
    """The number of upload sessions of a storage that began before a time."""
    return number(r, "SELECT COUNT(*) FROM upload WHERE storage_id = ? AND created_at < ?", (storage_id, before_ms))


# A blob that the catalog does not have, as its columns after sha256 and those that have no blob.
_ABSENT = (0, "", "{}", "", 0)


def _find_live(tx: Transaction, storage_id: int, keys: Sequence[bytes]) -> dict[bytes, Row]:
    sql = f"""
        SELECT sha256, size, locator, digests, state, touched_at FROM blob
        WHERE storage_id = ? AND sha256 IN ({placeholders(len(keys))})
    """
    return {sha256: (size, *others) for sha256, size, *others in tx.all(sql, (storage_id, *keys))}


def _put(tx: Transaction, storage_id: int, infos: Sequence[BlobInfo], now_ms: int) -> None:
    if not infos:
        return
    values: list[Value] = []
    for info in infos:
        values += (storage_id, bytes.fromhex(info.sha256), info.locator, info.size, dump(_others(info)))
        values += (now_ms, now_ms)
    tx.send(
        f"""
        INSERT INTO blob (storage_id, sha256, locator, size, digests, state, touched_at, created_at)
        VALUES {placeholders(len(infos), "(?, ?, ?, ?, ?, 'live', ?, ?)")}
        ON CONFLICT (storage_id, sha256) DO UPDATE
        SET locator = excluded.locator, size = excluded.size, digests = excluded.digests, state = 'live',
            touched_at = excluded.touched_at, created_at = excluded.created_at, verified_at = NULL
        """,
        values,
    )


def _touch(tx: Transaction, storage_id: int, keys: Sequence[bytes], now_ms: int) -> None:
    if keys:
        tx.send(
            f"UPDATE blob SET touched_at = ? WHERE storage_id = ? AND sha256 IN ({placeholders(len(keys))})",
            (now_ms, storage_id, *keys),
        )


def _set_digests(tx: Transaction, storage_id: int, key: bytes, others: Mapping[str, str], now_ms: int) -> None:
    tx.send(
        "UPDATE blob SET touched_at = ?, digests = ? WHERE storage_id = ? AND sha256 = ?",
        (now_ms, dump(others), storage_id, key),
    )


def _tell_layouts(tx: Transaction, storage_id: int, keys: Sequence[bytes], now_ms: int, *, moved: bool) -> None:
    """
    Have the readable layout show again what has some blobs: sidecars name their digests and locators.

    Images, which have none of the digests, only if the blobs were ``moved`` to other locators.
    """
    if not keys:
        return
    marks = placeholders(len(keys))
    found = tx.all(
        f"""
        SELECT DISTINCT f.repository_id, f.package_id, COALESCE(p.key, ''), COALESCE(v.key, ''), v.text, f.path
        FROM file f LEFT JOIN package p ON p.id = f.package_id LEFT JOIN version v ON v.id = f.version_id
        WHERE f.storage_id = ? AND f.sha256 IN ({marks})
        """,
        (storage_id, *keys),
    )
    in_images = []
    if moved:
        in_images = tx.all(
            f"""
            SELECT DISTINCT p.repository_id, p.id, p.key
            FROM package p JOIN repository r ON r.id = p.repository_id
            WHERE r.storage_id = ? AND p.id IN (
                SELECT package_id FROM package_blob WHERE sha256 IN ({marks})
                UNION SELECT package_id FROM manifest WHERE sha256 IN ({marks})
            )
            """,
            (storage_id, *keys, *keys),
        )
    new = dict.fromkeys((*row, "", "{}") for row in in_images)  # each is compared as a whole
    new |= dict.fromkeys(
        (
            repository_id,
            package_id,
            key,
            version_key,
            dump({"path": path} if package_id is None else {"version": text or ""}),
        )
        for repository_id, package_id, key, version_key, text, path in found
    )
    for repository_id, package_id, key, version_key, data in new:
        put(
            tx,
            "event",
            repository_id=repository_id,
            package_id=package_id,
            package_key=key,
            version_key=version_key,
            kind=REWRITTEN,
            data=data,
            actor=SYSTEM.name,
            at=now_ms,
        )


def _others(info: BlobInfo) -> dict[str, str]:
    return {name: digest for name, digest in info.digests.items() if name != "sha256"}
