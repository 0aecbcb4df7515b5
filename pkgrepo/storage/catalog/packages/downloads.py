"""Who fetched what: counters for everybody, and a log of what was fetched with a token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import number

DAY_MS = 86_400_000


@frozen
class Download:
    """One whole thing that was sent; ``kind`` is file, or manifest for an image that was pulled."""

    item_id: int
    repository_id: int
    package_id: int | None
    path: str
    user_id: int | None
    token_id: int | None
    at_ms: int
    kind: str = "file"


def record_downloads(tx: Transaction, batch: Sequence[Download]) -> None:
    """Count a batch of downloads, and log those that a token was used for."""
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


def downloads_by_day(r: Reader, repository_id: int, from_day: int, to_day: int) -> list[tuple[int, int]]:
    """Day and downloads of a repository, for days with any, from ``from_day`` up to before ``to_day``."""
    return r.all(
        """
        SELECT day, SUM(count) FROM download_count WHERE repository_id = ? AND day >= ? AND day < ?
        GROUP BY day ORDER BY day
        """,
        (repository_id, from_day, to_day),
    )


def downloads_by_package(r: Reader, repository_id: int) -> list[tuple[str, int]]:
    """
    Keys of the packages that somebody has fetched with how often, the most often first.

    It reads a row for each file and day: for a reader thread.
    """
    return r.all(
        """
        SELECT p.key, SUM(d.count) FROM download_count d JOIN package p ON p.id = d.package_id
        WHERE d.repository_id = ? GROUP BY p.key ORDER BY 2 DESC, 1
        """,
        (repository_id,),
    )


def downloads_of_package(r: Reader, package_id: int) -> int:
    """How often files of a package were sent, ever."""
    return number(r, "SELECT COALESCE(SUM(count), 0) FROM download_count WHERE package_id = ?", (package_id,))
