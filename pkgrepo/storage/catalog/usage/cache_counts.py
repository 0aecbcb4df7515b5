"""How the caches of proxy repositories are used: counters for each repository and day."""

from __future__ import annotations

from collections.abc import Mapping
from operator import add, attrgetter
from typing import Self

from attrs import fields, frozen

from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.storage.catalog.rows import every

DAY_MS = 86_400_000

Place = tuple[int, int]  # the id of a repository, and a day since the epoch


@frozen
class CacheCounts:
    """
    Numbers of requests, by how they were answered, and what was got from upstreams.

    ``hits`` were answered with what is kept, ``misses`` with what an upstream sent, ``confirmed`` with what is kept,
    after an upstream had confirmed it; ``stale`` with what is kept, because an upstream failed; ``absent`` asked for
    what no upstream has. ``saved_bytes`` is the size of the kept files that were sent, ``fetched_bytes`` that of the
    bodies that upstreams sent, ``upstream_ms`` the time that they took.
    """

    hits: int = 0
    misses: int = 0
    confirmed: int = 0
    stale: int = 0
    absent: int = 0
    saved_bytes: int = 0
    fetched_bytes: int = 0
    upstream_ms: int = 0

    def __add__(self, other: Self) -> CacheCounts:
        return CacheCounts(*map(add, _FIGURES(self), _FIGURES(other)))

    @property
    def hit_ratio(self) -> float | None:
        """The part of the requests for what exists that needed no upstream; None without any."""
        asked = self.hits + self.misses + self.confirmed + self.stale
        return None if not asked else (self.hits + self.stale) / asked


_FIGURES = attrgetter(*(each.name for each in fields(CacheCounts)))  # attrs.astuple takes ten times as long

_SUMS = """
    SUM(hits), SUM(misses), SUM(confirmed), SUM(stale), SUM(absent), SUM(saved_bytes), SUM(fetched_bytes),
    SUM(upstream_ms)
"""


def add_cache_counts(tx: Transaction, counts: Mapping[Place, CacheCounts]) -> None:
    """Add to the counters."""
    for (repository_id, day), found in counts.items():
        tx.execute(
            """
            INSERT INTO cache_count (repository_id, day, hits, misses, confirmed, stale, absent, saved_bytes,
                fetched_bytes, upstream_ms)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (repository_id, day) DO UPDATE
            SET hits = cache_count.hits + excluded.hits, misses = cache_count.misses + excluded.misses,
                confirmed = cache_count.confirmed + excluded.confirmed, stale = cache_count.stale + excluded.stale,
                absent = cache_count.absent + excluded.absent,
                saved_bytes = cache_count.saved_bytes + excluded.saved_bytes,
                fetched_bytes = cache_count.fetched_bytes + excluded.fetched_bytes,
                upstream_ms = cache_count.upstream_ms + excluded.upstream_ms
            """,
            (repository_id, day, *_FIGURES(found)),
        )


def cache_counts(r: Reader, repository_id: int) -> CacheCounts:
    """The counters of a repository over all days."""
    row = r.one(f"SELECT {_SUMS} FROM cache_count WHERE repository_id = ?", (repository_id,))
    assert row is not None, "sums have a row"
    return _counts(row)


def all_cache_counts(r: Reader) -> list[tuple[str, CacheCounts]]:
    """The path of each proxy repository that was used, with its counters over all days."""
    return every(
        r,
        lambda row: (f"{row[0]}/{row[1]}", _counts(row[2:])),
        f"""
        SELECT s.name, r.name, {_SUMS} FROM cache_count c
        JOIN repository r ON r.id = c.repository_id JOIN storage s ON s.id = r.storage_id
        WHERE r.deleted_at IS NULL GROUP BY r.id, s.name, r.name ORDER BY s.name, r.name
        """,
    )


def _counts(row: Row) -> CacheCounts:
    return CacheCounts(*(int(value or 0) for value in row))
