"""What the download log has for rehearsals of rules: the fetches of each file or manifest, day by day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.rows import column, every, marks_of

_REQUESTS: Final = """
    SELECT i.id, i.repository_id, i.repository, i.format, i.package_key, i.package, i.version_key, i.version, i.sha256,
        l.day, MIN(l.first_at), MAX(l.last_at), CAST(SUM(l.count) AS BIGINT)
    FROM download_item i JOIN download_log l ON l.item_id = i.id AND l.day >= ?
"""
_BY_DAY: Final = """
    GROUP BY i.id, i.repository_id, i.repository, i.format, i.package_key, i.package, i.version_key, i.version,
        i.sha256, l.day
    ORDER BY i.id, l.day
"""


@frozen
class Requests:
    """The fetches of one item on one day; times are in ms."""

    item_id: int
    repository_id: int
    repository: str
    format: str
    package_key: str
    package: str
    version_key: str
    version: str
    sha256: bytes | None
    day: int
    first_ms: int
    last_ms: int
    count: int


def requests_of_package(r: Reader, repository_id: int, key: str, from_day: int) -> list[Requests]:
    """The fetches of what belongs to a package, by item and day."""
    sql = f"{_REQUESTS} WHERE i.package_key = ? AND i.repository_id = ? {_BY_DAY}"
    return every(r, lambda row: Requests(*row), sql, (from_day, key, repository_id))


def requests_of_removed(r: Reader, after: int, from_day: int, limit: int) -> tuple[list[Requests], int | None]:
    """
    The fetches of what belonged to packages that are not stored any more, by item and day.

    Of ``limit`` items with an id above ``after``; with the greatest of these ids, None at the end.
    """
    ids = column(r, "SELECT id FROM download_item WHERE id > ? ORDER BY id LIMIT ?", (after, limit))
    if not ids:
        return [], None
    gone = """
        NOT EXISTS (SELECT 1 FROM package p WHERE p.repository_id = i.repository_id AND p.key = i.package_key)
    """
    sql = f"{_REQUESTS} WHERE i.id > ? AND i.id <= ? AND {gone} {_BY_DAY}"
    return every(r, lambda row: Requests(*row), sql, (from_day, after, ids[-1])), ids[-1]


def clients_of_items(r: Reader, item_ids: Sequence[int], from_day: int, to_day: int, limit: int) -> list[str]:
    """The users who fetched some items in some days, each with the name of the token: ``ada``, ``ada (token ci)``."""
    found = r.all(
        f"""
        SELECT DISTINCT COALESCE(a.username, c.username), COALESCE(t.name, c.token)
        FROM download_log l JOIN download_client c ON c.id = l.client_id
        LEFT JOIN account a ON a.id = c.user_id LEFT JOIN token t ON t.id = c.token_id
        WHERE l.item_id IN ({marks_of(item_ids)}) AND l.day >= ? AND l.day <= ? ORDER BY 1, 2 LIMIT ?
        """,
        (*item_ids, from_day, to_day, limit),
    )
    return [f"{user} (token {token})" if token else user for user, token in found]
