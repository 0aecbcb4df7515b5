"""
How the server is used: downloads, uploads, and reads of the caches of proxy repositories.

Downloads have a counter per item and day, and their sums for repositories, packages and versions; who made them is in
the log (L{download_log}). Caches have counters for each repository and day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import add, attrgetter
from typing import Literal, Self, TypeVar

from attrs import define, evolve, fields, frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import batches, column, every, number, only_row, placeholders, rows

Kind = Literal["file", "manifest", "blob"]
K = TypeVar("K", bound=Hashable)

_SIZES = {
    "file": "SELECT size FROM file WHERE id = ?",
    "manifest": "SELECT size FROM manifest WHERE id = ?",
}


DAY_MS = 86_400_000
WEEK = 7  # days; weeks are numbered from that of 1970-01-01
Place = tuple[int, int]  # the id of a repository, and a day since the epoch
_SUMS = """
    SUM(hits), SUM(misses), SUM(confirmed), SUM(stale), SUM(absent), SUM(saved_bytes), SUM(fetched_bytes),
    SUM(upstream_ms)
"""


@frozen
class Names:
    """
    What something was called when it was fetched, and where it was.

    Of what was staged, the repository is the one that it was for.
    """

    repository_id: int
    repository: str
    format: str
    package_key: str
    package: str
    version_key: str
    version: str
    sha256: bytes | None


@define
class Download:
    """
    The downloads of one item by one client on one day (UTC): their ``count``, and when the first and the last was.

    ``kind`` is file or manifest (of an image), ``item_id`` the row id in the table of that kind. ``reference`` is the
    tag or digest that an image was asked for by. ``package_id`` is None for a file without a package, ``user_id`` and
    ``token_id`` are None for an anonymous client; ``pipeline`` is the name of one, whose tokens are new for each run.
    ``address`` is the prefix of the client's address, empty if it is not kept.

    A ``blob`` with its ``size`` (bytes) is only a hit of a cache. What was ``fetched`` from an upstream for this
    download is no hit. What is not ``counted``, such as the beginning of a file, is only written to the log.
    ``names`` are as they were then; None if they are not known, or the log has them already.
    """

    item_id: int
    repository_id: int
    package_id: int | None
    path: str
    user_id: int | None
    token_id: int | None
    at_ms: int
    kind: Kind = "file"
    size: int | None = None
    fetched: bool = False
    counted: bool = True
    reference: str = ""
    pipeline: str = ""
    address: str = ""
    last_ms: int = 0
    count: int = 1
    names: Names | None = None

    @property
    def day(self) -> int:
        """The day since the epoch."""
        return self.at_ms // DAY_MS


def record_downloads(tx: Transaction, batch: Sequence[Download]) -> None:
    """
    Add a batch of downloads to the counters.

    A download from a proxy repository is also a hit of its cache, unless it was fetched for it.
    """
    batch = [each for each in batch if each.counted]
    add_cache_counts(tx, _cache_hits(tx, batch))
    batch = [each for each in batch if each.kind != "blob"]
    _count_repositories(tx, batch)
    counts = _sums(((each.kind, each.item_id, each.day, each.repository_id, each.package_id), each) for each in batch)
    for (kind, item_id, day, repository_id, package_id), count in counts.items():
        tx.execute(
            """
            INSERT INTO download_count (kind, item_id, day, repository_id, package_id, count)
            VALUES (?, ?, ?, ?, ?, ?)
            ON CONFLICT (kind, item_id, day) DO UPDATE SET count = download_count.count + excluded.count
            """,
            (kind, item_id, day, repository_id, package_id, count),
        )
    _count_packages(tx, batch)
    _count_versions(tx, batch)


def _sums(batch: Iterable[tuple[K, Download]]) -> Counter[K]:
    """The numbers of downloads by what they are summed for."""
    found: Counter[K] = Counter()
    for key, each in batch:
        found[key] += each.count
    return found


def _count_packages(tx: Transaction, batch: Sequence[Download]) -> None:
    """Add downloads to the totals of their packages; those of a package that was removed meanwhile are left out."""
    by_day = _sums(((each.package_id, each.day), each) for each in batch if each.package_id is not None)
    for (package_id, day), count in by_day.items():
        tx.execute(
            """
            INSERT INTO package_download (package_id, day, count)
            SELECT id, CAST(? AS BIGINT), CAST(? AS BIGINT) FROM package WHERE id = ?
            ON CONFLICT (package_id, day) DO UPDATE SET count = package_download.count + excluded.count
            """,
            (day, count, package_id),
        )
    for package_id, count in _sums((each.package_id, each) for each in batch if each.package_id is not None).items():
        tx.execute("UPDATE package SET downloads = downloads + ? WHERE id = ?", (count, package_id))


def _count_repositories(tx: Transaction, batch: Sequence[Download]) -> None:
    """Add downloads to the totals of repositories; those of a repository that was removed meanwhile are left out."""
    for (repository_id, day), count in _sums(((each.repository_id, each.day), each) for each in batch).items():
        tx.execute(
            """
            INSERT INTO repository_download (repository_id, day, count)
            SELECT id, CAST(? AS BIGINT), CAST(? AS BIGINT) FROM repository WHERE id = ?
            ON CONFLICT (repository_id, day) DO UPDATE SET count = repository_download.count + excluded.count
            """,
            (day, count, repository_id),
        )


def _count_versions(tx: Transaction, batch: Sequence[Download]) -> None:
    """Add downloads of files to the totals of their versions, if they have one."""
    of_files = (((each.item_id, each.day // WEEK), each) for each in batch if each.kind == "file")
    for (file_id, week), count in _sums(of_files).items():
        tx.execute(
            """
            INSERT INTO version_download (version_id, week, count)
            SELECT version_id, CAST(? AS BIGINT), CAST(? AS BIGINT) FROM file WHERE id = ? AND version_id IS NOT NULL
            ON CONFLICT (version_id, week) DO UPDATE SET count = version_download.count + excluded.count
            """,
            (week, count, file_id),
        )


def _cache_hits(tx: Transaction, batch: Sequence[Download]) -> dict[Place, CacheCounts]:
    proxies = set(column(tx, "SELECT id FROM repository WHERE type = 'Proxy'"))
    sizes: dict[tuple[Kind, int], int] = {}
    hits: Counter[Place] = Counter()
    saved_bytes: Counter[Place] = Counter()
    for each in batch:
        if each.fetched or each.repository_id not in proxies:
            continue
        size, item = each.size, (each.kind, each.item_id)
        if size is None:
            if item not in sizes:
                sizes[item] = number(tx, _SIZES[each.kind], (each.item_id,))
            size = sizes[item]
        place = each.repository_id, each.day
        hits[place] += each.count
        saved_bytes[place] += size * each.count
    return {place: CacheCounts(hits=count, saved_bytes=saved_bytes[place]) for place, count in hits.items()}


def downloads_by_day(r: Reader, repository_id: int, from_day: int, to_day: int) -> list[tuple[int, int]]:
    """
    The downloads of a repository per day, as pairs (day, count), oldest day first.

    Days are counted from 1970-01-01 UTC. ``from_day`` is included, ``to_day`` is not; days without downloads are
    left out.
    """
    return r.all(
        "SELECT day, count FROM repository_download WHERE repository_id = ? AND day >= ? AND day < ? ORDER BY day",
        (repository_id, from_day, to_day),
    )


def downloads_of_repositories(r: Reader, repository_ids: Sequence[int], from_day: int) -> dict[int, dict[int, int]]:
    """The downloads of some repositories since a day: by their ids, the counts by day."""
    found: dict[int, dict[int, int]] = {each: {} for each in repository_ids}
    for some in batches(repository_ids):
        rows = r.all(
            f"""
            SELECT repository_id, day, count FROM repository_download
            WHERE repository_id IN ({placeholders(len(some))}) AND day >= ?
            """,
            (*some, from_day),
        )
        for repository_id, day, count in rows:
            found[repository_id][day] = count
    return found


def downloads_by_package(r: Reader, repository_id: int) -> list[tuple[str, int]]:
    """
    The downloads per package, as pairs (package key, count), highest count first.

    Packages without downloads are left out.
    """
    return r.all(
        "SELECT key, downloads FROM package WHERE repository_id = ? AND downloads > 0 ORDER BY downloads DESC, key",
        (repository_id,),
    )


def downloads_of_package(r: Reader, package_id: int) -> int:
    """The total number of downloads of a package's files or manifests."""
    return number(r, "SELECT downloads FROM package WHERE id = ?", (package_id,))


def package_downloads_by_day(r: Reader, package_id: int, from_day: int, to_day: int) -> list[tuple[int, int]]:
    """The same as L{downloads_by_day} for one package."""
    return r.all(
        "SELECT day, count FROM package_download WHERE package_id = ? AND day >= ? AND day < ? ORDER BY day",
        (package_id, from_day, to_day),
    )


def downloads_by_version(r: Reader, package_id: int, from_day: int, limit: int) -> list[tuple[str, int]]:
    """
    The versions of a package that were downloaded most since the week of a day, as pairs (version, count).

    Reads a row for each version and week.
    """
    return r.all(
        """
        SELECT v.text, SUM(d.count) FROM version v JOIN version_download d ON d.version_id = v.id AND d.week >= ?
        WHERE v.package_id = ? GROUP BY v.id, v.text, v.sort ORDER BY 2 DESC, v.sort DESC LIMIT ?
        """,
        (from_day // WEEK, package_id, limit),
    )


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
        SELECT d.day, SUM(d.count) FROM repository r JOIN repository_download d ON d.repository_id = r.id AND d.day >= ?
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
    return _counts(only_row(r, f"SELECT {_SUMS} FROM cache_count WHERE repository_id = ?", (repository_id,)))


def all_cache_counts(r: Reader) -> list[tuple[str, CacheCounts]]:
    """The path of each proxy repository that was used, with its counters over all days."""
    rows = r.all(
        f"""
        SELECT s.name, r.name, {_SUMS} FROM cache_count c
        JOIN repository r ON r.id = c.repository_id JOIN storage s ON s.id = r.storage_id
        WHERE r.deleted_at IS NULL GROUP BY r.id, s.name, r.name ORDER BY s.name, r.name
        """
    )
    return [(f"{storage}/{name}", _counts(sums)) for storage, name, *sums in rows]


def cache_counts_since(r: Reader, from_day: int) -> dict[int, CacheCounts]:
    """The counters of the proxy repositories that were used since a day, by their ids."""
    sql = f"SELECT repository_id, {_SUMS} FROM cache_count WHERE day >= ? GROUP BY repository_id"
    return {repository_id: _counts(sums) for repository_id, *sums in r.all(sql, (from_day,))}


@frozen
class StorageSize:
    """The blobs of a storage, and their size in bytes, as last measured on a day."""

    storage_id: int
    day: int
    blobs: int
    bytes: int


_SIZE, to_size = rows(StorageSize, "storage_size")


def note_size(tx: Transaction, storage_id: int, day: int, blobs: int, size: int) -> None:
    """Keep what a storage holds, in place of what it held earlier on this day."""
    tx.execute(
        """
        INSERT INTO storage_size (storage_id, day, blobs, bytes)
        SELECT id, CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT) FROM storage WHERE id = ?
        ON CONFLICT (storage_id, day) DO UPDATE SET blobs = excluded.blobs, bytes = excluded.bytes
        """,
        (day, blobs, size, storage_id),
    )


def sizes_since(r: Reader, from_day: int) -> list[StorageSize]:
    """What each storage held on each day since ``from_day`` on which it was measured, the oldest first."""
    return every(r, to_size, f"{_SIZE} WHERE day >= ? ORDER BY day, storage_id", (from_day,))


def _counts(row: Iterable[int | None]) -> CacheCounts:
    return CacheCounts(*(int(value or 0) for value in row))
