"""
How far the events of packages were followed for what searches and lists read: what packages say of themselves and need.

Both are written soon after a publish, for the packages of some hundred events in one transaction: that of the publish
of an npm package had twice the pages with them. How far events were followed is a setting, which moves in that
transaction: a crash repeats some, and loses none.

The last event may be gone again, for those of a stage are removed with it. No number is given twice.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.packages.facts import Described
from pkgrepo.storage.catalog.packages.text_index import put_about
from pkgrepo.storage.catalog.rows import batches, placeholders
from pkgrepo.storage.catalog.server import settings

CURSOR: Final = "described_events"  # the setting with the sequence number of the last event that was followed
EVENTS: Final = 300  # that are followed in one transaction at most; as many packages take the writer some 20 ms
LONGEST_S: Final = 0.05  # seconds for which a transaction describes packages; the metadata of some have megabytes


def find_described(r: Reader) -> Described:
    """How far events were followed, of those that there are."""
    row = r.one(
        "SELECT (SELECT value FROM setting WHERE key = ?), (SELECT MAX(seq) FROM event)",
        (CURSOR,),
    )
    done, last = row or (None, None)
    return Described(int(done or 0), int(last or 0))


def count_undescribed(r: Reader) -> int:
    """How many events were not followed yet, about."""
    found = find_described(r)
    return max(0, found.last - found.seq)


def undescribed_since(r: Reader) -> int | None:
    """When the first event happened that was not followed yet, in milliseconds; None: all were."""
    row = r.one("SELECT at FROM event WHERE seq > ? ORDER BY seq LIMIT 1", (find_described(r).seq,))
    return None if row is None else int(row[0])


def describe_packages(
    tx: Transaction, limit: int = EVENTS, longest_s: float = LONGEST_S, clock: Callable[[], float] = monotonic
) -> None:
    """
    Bring texts and needs of the packages up to date that the next events are about; a write command.

    Follows ``limit`` events at most, and none after ``longest_s``, but at least one.
    """
    until = clock() + longest_s
    sql = "SELECT seq, package_id FROM event WHERE seq > ? ORDER BY seq LIMIT ?"
    happened = tx.all(sql, (find_described(tx).seq, limit))
    names: dict[int, str] = {}  # of the packages that are still to be described; others may be gone
    for some in batches(list({package_id for _, package_id in happened if package_id is not None})):
        names |= dict(tx.all(f"SELECT id, name FROM package WHERE id IN ({placeholders(len(some))})", some))
    done = 0
    for seq, package_id in happened:
        if package_id in names:
            put_about(tx, package_id, names.pop(package_id))
        done = seq
        if clock() >= until:
            break
    if done:
        settings.put(tx, CURSOR, str(done))
