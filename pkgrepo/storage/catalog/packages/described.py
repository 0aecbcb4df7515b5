"""
How far the events of packages were followed for what searches and lists read: what packages say of themselves and need.

Both are written soon after a publish, for the packages of some hundred events in one transaction (L{text_index}): the
transaction of an npm package that wrote them as well had a third more pages. How far events were followed is a setting,
which moves in that transaction: a crash repeats some, and loses none.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.packages.events import last_seq
from pkgrepo.storage.catalog.server import settings

CURSOR: Final = "described_events"  # the setting with the sequence number of the last event that was followed


@frozen
class Described:
    """
    What packages say of themselves and need is in the catalog up to an event. Queries for that demand this value.

    It is made by L{pkgrepo.repositories.descriptions} alone, which follows the events first.
    """

    seq: int


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


def next_packages(tx: Transaction, limit: int) -> tuple[list[int], bool]:
    """
    Move to the last of the next ``limit`` events.

    Returns the ids of the packages that these are about, which may be gone, and whether there may be more events.
    """
    sql = "SELECT seq, package_id FROM event WHERE seq > ? ORDER BY seq LIMIT ?"
    rows = tx.all(sql, (described_until(tx), limit))
    if rows:
        settings.put(tx, CURSOR, str(rows[-1][0]))
    return list(dict.fromkeys(package_id for _, package_id in rows if package_id is not None)), len(rows) == limit
