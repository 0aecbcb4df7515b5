"""Download statistics: a counter per item and day, and a log of the downloads that were made with a token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import column, number

from .cache_counts import DAY_MS, CacheCounts, Place, add_cache_counts

Kind = Literal["file", "manifest", "blob"]

_SIZES = {
    "file": "SELECT size FROM file WHERE id = ?",
    "manifest": "SELECT size FROM manifest WHERE id = ?",
}


@frozen
class Download:
    """
    One complete download.

    ``kind`` is file or manifest (for an image pull), ``item_id`` the row id in the table of that kind. ``package_id``
    is None for a file without a package, ``user_id`` and ``token_id`` are None for an anonymous client. A ``blob`` with
    its ``size`` (bytes) is only a hit of a cache. What was ``fetched`` from an upstream for this download is none.
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


def record_downloads(tx: Transaction, batch: Sequence[Download]) -> None:
    """
    Add a batch of downloads to the counters, and add those made with a token to the log.

    A download from a proxy repository is also a hit of its cache, unless it was fetched for it.
    """
    add_cache_counts(tx, _cache_hits(tx, batch))
    batch = [each for each in batch if each.kind != "blob"]
    counts = Counter(
        (each.kind, each.item_id, each.at_ms // DAY_MS, each.repository_id, each.package_id) for each in batch
    )
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
    for each in batch:
        if each.token_id is not None:
            tx.execute(
                """
                INSERT INTO download (kind, item_id, repository_id, package_id, path, user_id, token_id, at)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """,
                (
                    each.kind,
                    each.item_id,
                    each.repository_id,
                    each.package_id,
                    each.path,
                    each.user_id,
                    each.token_id,
                    each.at_ms,
                ),
            )


def _count_packages(tx: Transaction, batch: Sequence[Download]) -> None:
    """Add downloads to the totals of their packages; those of a package that was removed meanwhile are left out."""
    by_day = Counter((each.package_id, each.at_ms // DAY_MS) for each in batch if each.package_id is not None)
    for (package_id, day), count in by_day.items():
        tx.execute(
            """
            INSERT INTO package_download (package_id, day, count)
            SELECT id, CAST(? AS BIGINT), CAST(? AS BIGINT) FROM package WHERE id = ?
            ON CONFLICT (package_id, day) DO UPDATE SET count = package_download.count + excluded.count
            """,
            (day, count, package_id),
        )
    for package_id, count in Counter(each.package_id for each in batch if each.package_id is not None).items():
        tx.execute("UPDATE package SET downloads = downloads + ? WHERE id = ?", (count, package_id))


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
        place = each.repository_id, each.at_ms // DAY_MS
        hits[place] += 1
        saved_bytes[place] += size
    return {place: CacheCounts(hits=count, saved_bytes=saved_bytes[place]) for place, count in hits.items()}


def downloads_by_day(r: Reader, repository_id: int, from_day: int, to_day: int) -> list[tuple[int, int]]:
    """
    The downloads of a repository per day, as pairs (day, count), oldest day first.

    Days are counted from 1970-01-01 UTC. ``from_day`` is included, ``to_day`` is not; days without downloads are
    left out.
    """
    return r.all(
        """
        SELECT day, SUM(count) FROM download_count WHERE repository_id = ? AND day >= ? AND day < ?
        GROUP BY day ORDER BY day
        """,
        (repository_id, from_day, to_day),
    )


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
