"""How the server was used on each day: downloads, uploads and what caches answered. Run it in a reader thread."""

from __future__ import annotations

from attrs import evolve, frozen

from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.rows import number

from .cache_counts import DAY_MS


@frozen
class DayCounts:
    """Complete downloads, published versions, and requests to proxies by whether an upstream was needed."""

    downloads: int = 0
    uploads: int = 0
    hits: int = 0
    misses: int = 0

    @property
    def hit_ratio(self) -> float | None:
        """The part of the requests to proxies that needed no upstream; None without any."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else None


def daily_counts(r: Reader, from_day: int) -> dict[int, DayCounts]:
    """The counts by day since the epoch (UTC), from ``from_day`` on; days without any are left out."""
    found: dict[int, DayCounts] = {}
    # by repository, since the index with the day begins with it
    rows = r.all(
        """
        SELECT d.day, SUM(d.count) FROM repository r JOIN download_count d ON d.repository_id = r.id AND d.day >= ?
        GROUP BY d.day
        """,
        (from_day,),
    )
    for day, count in rows:
        found[day] = DayCounts(downloads=int(count))
    for day, count in _uploads(r, from_day):
        found[day] = evolve(found.get(day, DayCounts()), uploads=count)
    rows = r.all(
        """
        SELECT day, SUM(hits + stale), SUM(misses + confirmed) FROM cache_count WHERE day >= ? GROUP BY day
        """,
        (from_day,),
    )
    for day, hits, misses in rows:
        found[day] = evolve(found.get(day, DayCounts()), hits=int(hits), misses=int(misses))
    return found


def _uploads(r: Reader, from_day: int) -> list[tuple[int, int]]:
    # Events have no index by time, and follow each other in time: those before the days are not read.
    before = number(r, "SELECT seq FROM event WHERE at < ? ORDER BY seq DESC LIMIT 1", (from_day * DAY_MS,))
    return r.all(
        """
        SELECT at / ?, COUNT(*) FROM event WHERE seq > ? AND kind = 'published' AND at >= ? GROUP BY 1 ORDER BY 1
        """,
        (DAY_MS, before, from_day * DAY_MS),
    )
