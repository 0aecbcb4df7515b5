"""
How far the events of packages were followed for what searches and lists read: what packages say of themselves and need.

Both are written soon after a publish, for the packages of some hundred events in one transaction: that of the publish
of an npm package had a third more pages with them. How far events were followed is a setting, which moves in that
transaction: a crash repeats some, and loses none.
"""

from __future__ import annotations

from typing import Final

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.packages.events import last_seq
from pkgrepo.storage.catalog.packages.facts import Described
from pkgrepo.storage.catalog.packages.text_index import put_about
from pkgrepo.storage.catalog.rows import batches, placeholders
from pkgrepo.storage.catalog.server import settings

CURSOR: Final = "described_events"  # the setting with the sequence number of the last event that was followed
EVENTS: Final = 300  # that are followed in one transaction; as many packages take the writer some 20 ms


def described_until(r: Reader) -> int:
    """The sequence number of the last event that was followed."""
    return int(settings.get(r, CURSOR) or 0)


def find_described(r: Reader) -> Described | None:
    """What is known, if that is up to the last event; else None."""
    done = described_until(r)
    return Described(done) if done >= last_seq(r) else None


def described_so_far(r: Reader) -> Described:
    """What is known, even if there are later events."""
    return Described(described_until(r))


def count_undescribed(r: Reader) -> int:
    """How many events were not followed yet, about."""
    return max(0, last_seq(r) - described_until(r))


def describe_packages(tx: Transaction, limit: int = EVENTS) -> Described | None:
    """
    Bring texts and needs of the packages up to date that the next ``limit`` events are about; a write command.

    Returns None if there may be more events.
    """
    ids, more = _next_packages(tx, limit)
    for some in batches(ids):
        sql = f"SELECT id, name FROM package WHERE id IN ({placeholders(len(some))}) ORDER BY id"
        for package_id, name in tx.all(sql, some):
            put_about(tx, package_id, name)
    return None if more else described_so_far(tx)


def _next_packages(tx: Transaction, limit: int) -> tuple[list[int], bool]:
    """
    Move to the last of the next ``limit`` events.

    Returns the ids of the packages that these are about, which may be gone, and whether there may be more events.
    """
    sql = "SELECT seq, package_id FROM event WHERE seq > ? ORDER BY seq LIMIT ?"
    rows = tx.all(sql, (described_until(tx), limit))
    if rows:
        settings.put(tx, CURSOR, str(rows[-1][0]))
    return list(dict.fromkeys(package_id for _, package_id in rows if package_id is not None)), len(rows) == limit
