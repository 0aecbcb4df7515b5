"""
The trash: what was deleted and can be restored, until it expires or is purged.

An entry is what one deletion removed: a version, some of its files, a package with all its versions, a manifest with
its tags, or a tag. Its items hold what the catalog knew of each; its blobs are kept by garbage collection. Its ``size``
is still counted as used by the repository.

============  =========================================================================================================
an entry      by
============  =========================================================================================================
is added      the transaction that deletes; a deletion of several transactions adds items to one entry
is restored   a transaction for some items at a time, each of which leaves the trash as it is published again
is purged     a request, the end of its time, or the purge of its repository
============  =========================================================================================================

A removed repository is listed as an entry of the kind ``repository``, whose ``uid`` is that of the repository; but its
rows stay where they are until it is purged (see L{purge}).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import Actor, Package, Repository, RepositoryType
from pkgrepo.storage.catalog.packages.events import REPOSITORY_REMOVED
from pkgrepo.storage.catalog.rows import (
    batches,
    column,
    dump,
    every,
    exists,
    find,
    insert,
    placeholders,
    put,
    rows,
    scalar,
)
from pkgrepo.storage.catalog.server import repositories, settings
from pkgrepo.storage.catalog.server.quotas import Usage

TRASH_DAYS = "trash_days"  # the setting that the configuration of the server is copied to
DEFAULT_DAYS = 14
PURGED = 20  # entries of one transaction
DAY_MS = 24 * 3600 * 1000


@frozen
class TrashEntry:
    """
    One deletion.

    ``kind`` is version, files, manifest or tag, that of its items; or repository. ``name`` is the name of the first
    one: the text of a version, a digest or a tag. ``items`` is the number of items that are left. ``whole``: the
    package was removed with its last version. ``reason`` is a sentence if a rule decided, else empty.
    """

    id: int
    uid: str
    repository_id: int
    kind: str
    package_key: str
    package_name: str
    name: str
    items: int
    size: int
    whole: bool
    reason: str
    actor: str
    deleted_at: datetime


@frozen
class TrashItem:
    """A part of an entry. ``size`` in bytes is counted for it; ``data`` is JSON for the code that restores it."""

    id: int
    kind: str
    name: str
    size: int
    data: str


@frozen
class Kept:
    """
    Something that goes to the trash: see L{TrashItem}. ``size`` is what it goes on using, in bytes.

    ``sha256s`` are the blobs that a restore needs, ``digest`` is that of the manifest to which a tag points.
    """

    kind: str
    name: str
    data: object
    size: int
    sha256s: Sequence[str] = ()
    digest: str | None = None


@frozen
class Disposal:
    """
    How something is deleted: with ``kept`` it goes to the trash where there is one, else its bytes are given up.

    ``entry`` is the public id of the entry that several transactions fill; ``reason`` why a rule decided so.
    """

    kept: bool = True
    entry: str | None = None
    reason: str = ""


TO_TRASH = Disposal()
FOR_GOOD = Disposal(kept=False)

_ENTRY, _entry = rows(TrashEntry, "trash t", of="t")
_REMOVED = f"""
    SELECT r.id, r.uid, r.id, 'repository', '', '', s.name || '/' || r.name, r.package_count, r.bytes_used, 1, '',
        COALESCE((SELECT e.actor FROM event e WHERE e.repository_id = r.id AND e.kind = '{REPOSITORY_REMOVED}'
                  ORDER BY e.seq DESC LIMIT 1), ''),
        r.deleted_at
    FROM repository r JOIN storage s ON s.id = r.storage_id
    WHERE r.deleted_at IS NOT NULL AND r.purge = 0 AND r.parent_id IS NULL
"""
_ITEM, _item = rows(TrashItem, "trash_item")


def keeps(r: Reader, repository: Repository, disposal: Disposal) -> bool:
    """Whether what is deleted so goes to the trash: what companions and proxies have is made or fetched again."""
    return (
        disposal.kept
        and repository.parent is None
        and repository.type is RepositoryType.HOSTED
        and settings.get(r, TRASH_DAYS) not in (None, "0")
    )


def kept_days(r: Reader) -> int:
    """The days for which the trash keeps something; 0: nothing goes there. The default until a server has started."""
    return int(settings.get(r, TRASH_DAYS) or DEFAULT_DAYS)


def put_kept_days(tx: Transaction, days: int) -> None:
    """Store the setting of the server, so that each transaction that deletes can read it."""
    if settings.get(tx, TRASH_DAYS) != str(days):
        settings.put(tx, TRASH_DAYS, str(days))


def add_to_trash(
    tx: Transaction,
    package: Package,
    kept: Iterable[Kept],
    actor: Actor,
    disposal: Disposal,
    now_ms: int,
    *,
    whole: bool = False,
) -> None:
    """
    Put something into the trash as one entry; into that of ``disposal`` if it is there already.

    ``whole``: its package is removed with it. Its bytes are counted as used again, which the caller has subtracted.
    """
    parts = list(kept)
    if not parts:
        return
    uid = disposal.entry or str(uuid.uuid4())
    size = sum(each.size for each in parts)
    trash_id = scalar(tx, "SELECT id FROM trash WHERE uid = ?", (uid,))
    if trash_id is None:
        trash_id = insert(
            tx,
            "trash",
            uid=uid,
            repository_id=package.repository_id,
            kind=parts[0].kind,
            package_key=package.key,
            package_name=package.name,
            name=parts[0].name,
            items=len(parts),
            size=size,
            whole=whole,
            reason=disposal.reason,
            user_id=actor.user_id,
            actor=actor.name,
            deleted_at=now_ms,
        )
    else:
        tx.send(
            "UPDATE trash SET items = items + ?, size = size + ?, whole = ? WHERE id = ?",
            (len(parts), size, int(whole), trash_id),
        )
    repositories.add_usage(tx, package.repository_id, Usage(size))
    for each in parts:
        put(
            tx,
            "trash_item",
            trash_id=trash_id,
            kind=each.kind,
            name=each.name,
            size=each.size,
            digest=each.digest,
            data=dump(each.data),
        )
    for some in batches(sorted({sha256 for each in parts for sha256 in each.sha256s})):
        tx.send(
            f"""
            INSERT INTO trash_blob (trash_id, sha256) VALUES {placeholders(len(some), "(?, ?)")} ON CONFLICT DO NOTHING
            """,
            [value for sha256 in some for value in (trash_id, bytes.fromhex(sha256))],
        )


def find_entry(r: Reader, uid: str) -> TrashEntry | None:
    """The entry with this public id, or None; none of a removed repository."""
    return find(
        r,
        _entry,
        f"{_ENTRY} JOIN repository r ON r.id = t.repository_id WHERE t.uid = ? AND r.deleted_at IS NULL",
        (uid,),
    )


Position = tuple[int, str]  # of an entry in lists: when it was deleted in ms, and its uid


def list_entries(
    r: Reader, *, repository_id: int | None = None, removed: bool = False, after: Position | None, limit: int
) -> list[TrashEntry]:
    """A page of entries, the newest first, of one repository or of all; with ``removed`` also removed repositories."""
    of = "" if repository_id is None else "t.repository_id = ? AND "
    parameters: list[Value] = [] if repository_id is None else [repository_id]
    more = f"UNION ALL {_REMOVED}" if removed else ""
    beyond = "" if after is None else "WHERE (deleted_at, uid) < (?, ?) "
    return every(
        r,
        _entry,
        f"""
        SELECT * FROM (
            {_ENTRY} JOIN repository r ON r.id = t.repository_id WHERE {of}r.deleted_at IS NULL {more}
        ) AS found {beyond}ORDER BY deleted_at DESC, uid DESC LIMIT ?
        """,
        (*parameters, *(after or ()), limit),
    )


def position(entry: TrashEntry) -> Position:
    """The position of an entry in lists."""
    return round(entry.deleted_at.timestamp() * 1000), entry.uid


def find_removed(r: Reader, uid: str) -> TrashEntry | None:
    """The removed repository with this public id that can be restored, or None; none that belongs to another one."""
    return find(r, _entry, f"{_REMOVED} AND r.uid = ?", (uid,))


def items_of(r: Reader, trash_id: int, limit: int, *, after: int = 0) -> list[TrashItem]:
    """The first items of an entry that are left, after the id ``after``, in the order in which they were deleted."""
    return every(r, _item, f"{_ITEM} WHERE trash_id = ? AND id > ? ORDER BY id LIMIT ?", (trash_id, after, limit))


def names_of_items(r: Reader, trash_id: int, limit: int) -> list[str]:
    """The names of the first items of an entry that are left."""
    return column(r, "SELECT name FROM trash_item WHERE trash_id = ? ORDER BY id LIMIT ?", (trash_id, limit))


def take_out(tx: Transaction, entry: TrashEntry, item: TrashItem) -> bool:
    """
    Remove an item that is restored, and the entry with the last one. False if it is not there any more.

    Its bytes are not counted any more: those of what is restored are.
    """
    if not tx.execute("DELETE FROM trash_item WHERE id = ?", (item.id,)):
        return False
    tx.send("UPDATE trash SET items = items - 1, size = size - ? WHERE id = ?", (item.size, entry.id))
    repositories.add_usage(tx, entry.repository_id, Usage(-item.size))
    if not exists(tx, "SELECT 1 FROM trash_item WHERE trash_id = ? LIMIT 1", (entry.id,)):
        purge_entry(tx, entry.id)
    return True


def purge_entry(tx: Transaction, trash_id: int) -> bool:
    """
    Remove an entry for good; garbage collection removes its blobs. Returns whether it was there.

    A package has at most some thousand versions, which is a second of the writer at the most.
    """
    row = tx.one("SELECT repository_id, size FROM trash WHERE id = ?", (trash_id,))
    if row is None:
        return False
    repository_id, size = row
    repositories.add_usage(tx, repository_id, Usage(-size))
    tx.send("DELETE FROM trash WHERE id = ?", (trash_id,))
    return True


def purge_expired(tx: Transaction, now_ms: int, limit: int) -> int:
    """
    Purge entries that were deleted longer ago than the trash keeps them, ``limit`` at most. Returns their number.

    Fewer are taken at a time, since each may have thousands of items.
    """
    before_ms, most = now_ms - kept_days(tx) * DAY_MS, min(limit, PURGED)
    found = column(tx, "SELECT id FROM trash WHERE deleted_at < ? ORDER BY deleted_at LIMIT ?", (before_ms, most))
    return sum(purge_entry(tx, each) for each in found)
