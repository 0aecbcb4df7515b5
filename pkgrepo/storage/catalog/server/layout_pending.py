"""
What the readable layout does not show yet: entries that are pending, and events after the cursor.

An entry stays until it was shown. There is one at most for each package and version that exists or has existed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.packages.events import last_seq

from . import settings

CURSOR = "readable_layout_cursor"  # the setting that holds the sequence number of the last event that was followed


@frozen(order=True)
class Entry:
    """
    A version; with an empty version what is kept of its package beside the versions; with an empty package as well the
    repository's own document. ``whole`` is a package with all its versions.
    """

    repository_id: int
    package_key: str = ""
    version_key: str = ""
    version: str = ""
    whole: bool = False


@frozen
class Backlog:
    """
    How far the layout is behind: events that were not followed, entries that wait for their first attempt.

    ``failed`` are entries that could not be shown, by storage (catalog key); ``reason`` is why one of them could not.
    """

    events: int
    waiting: int
    failed: Mapping[int, int]
    reason: str

    @property
    def behind(self) -> int:
        """Everything that was not tried yet."""
        return self.events + self.waiting


def cursor(r: Reader) -> int:
    """The sequence number of the last event that was followed."""
    return int(settings.get(r, CURSOR) or 0)


def move_cursor(tx: Transaction, seq: int, failed: Mapping[Entry, str]) -> None:
    """Note that the events up to ``seq`` were followed, with the entries that could not be shown and why."""
    _put(tx, failed)
    settings.put(tx, CURSOR, str(seq))


def settle(tx: Transaction, done: Iterable[Entry], failed: Mapping[Entry, str]) -> None:
    """Forget the entries that were tried again, but for those that failed."""
    for each in done:
        if each not in failed:
            tx.execute(
                """
                DELETE FROM layout_pending
                WHERE repository_id = ? AND package_key = ? AND version_key = ? AND version = ? AND whole <= ?
                """,
                (each.repository_id, each.package_key, each.version_key, each.version, int(each.whole)),
            )
    _put(tx, failed)


def pending_after(r: Reader, after: Entry | None, limit: int) -> list[Entry]:
    """Pending entries in their order, from after one."""
    first = after or Entry(0)
    rows = r.all(
        """
        SELECT repository_id, package_key, version_key, version, whole FROM layout_pending
        WHERE (repository_id, package_key, version_key, version) > (?, ?, ?, ?)
        ORDER BY repository_id, package_key, version_key, version LIMIT ?
        """,
        (first.repository_id, first.package_key, first.version_key, first.version, limit),
    )
    return [Entry(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows]


def backlog(r: Reader) -> Backlog:
    """How far the layout is behind; reads every pending entry."""
    rows = r.all(
        """
        SELECT COALESCE(r.storage_id, 0), p.reason = '', COUNT(*), MAX(p.reason)
        FROM layout_pending p LEFT JOIN repository r ON r.id = p.repository_id
        GROUP BY COALESCE(r.storage_id, 0), p.reason = ''
        """
    )
    failed = {row[0]: int(row[2]) for row in rows if not row[1]}
    return Backlog(
        events=max(0, last_seq(r) - cursor(r)),
        waiting=sum(row[2] for row in rows if row[1]),
        failed=failed,
        reason=next((row[3] for row in rows if not row[1]), ""),
    )


def add_packages(tx: Transaction, repository_ids: Sequence[int]) -> None:
    """Have repositories compared with the layout: their documents, and every version of every package."""
    for repository_id in repository_ids:
        tx.execute(
            "INSERT INTO layout_pending (repository_id) VALUES (?) ON CONFLICT DO NOTHING",
            (repository_id,),
        )
        tx.execute(
            """
            INSERT INTO layout_pending (repository_id, package_key, whole)
            SELECT repository_id, key, 1 FROM package WHERE repository_id = ?
            ON CONFLICT (repository_id, package_key, version_key, version) DO UPDATE SET whole = 1
            """,
            (repository_id,),
        )


def forget_packages(tx: Transaction, repository_ids: Sequence[int]) -> None:
    """Forget what is pending of repositories that are not shown any more."""
    for repository_id in repository_ids:
        tx.execute("DELETE FROM layout_pending WHERE repository_id = ?", (repository_id,))


def _put(tx: Transaction, failed: Mapping[Entry, str]) -> None:
    for each, reason in failed.items():
        tx.execute(
            """
            INSERT INTO layout_pending (repository_id, package_key, version_key, version, whole, reason)
            VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT (repository_id, package_key, version_key, version) DO UPDATE
            SET whole = CASE WHEN excluded.whole = 1 THEN 1 ELSE layout_pending.whole END, reason = excluded.reason
            """,
            (each.repository_id, each.package_key, each.version_key, each.version, int(each.whole), reason),
        )
