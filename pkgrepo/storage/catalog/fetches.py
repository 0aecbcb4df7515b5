"""Questions to the download log: who has fetched what, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Value
from pkgrepo.storage.catalog.download_log import ANONYMOUS
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.rows import column, every, marks_of, only_row

_WHO: Final[Mapping[bool | None, str]] = {None: "", True: "AND l.client_id = 0", False: "AND l.client_id > 0"}


@frozen(kw_only=True)
class Question:
    """
    What was fetched: the files and manifests that fit all fields that are not None; a digest or a package is given.

    ``repositories`` are catalog keys; fetches from removed repositories fit, too, that had one of their ``paths``.
    ``packages`` are keys: the formats spell one name differently. So are ``versions``, or tags and digests by which
    images were asked for. ``digests`` are sha256. What fits one of the questions for ``copies`` fits, too.
    """

    repositories: Sequence[int] | None = None
    paths: Sequence[str] = ()
    format: str | None = None
    packages: Sequence[str] | None = None
    versions: Sequence[str] | None = None
    digests: Sequence[bytes] | None = None
    copies: Sequence[Question] = ()

    @property
    def wanted(self) -> Mapping[str, Sequence[Value]]:
        """The values that columns of ``download_item`` may have."""
        assert self.packages is not None or self.digests is not None, "an index has these"
        every: dict[str, Sequence[Value] | None] = {
            "format": None if self.format is None else [self.format],
            "package_key": self.packages,
            "version_key": self.versions,
            "sha256": self.digests,
        }
        return {name: values for name, values in every.items() if values is not None}

    @property
    def parameters(self) -> list[Value]:
        """The values of the parameters of the condition."""
        values = [value for values in self.wanted.values() for value in values]
        places: list[Value] = [] if self.repositories is None else [*self.repositories, *self.paths]
        return [*values, *places, *(value for each in self.copies for value in each.parameters)]


def _condition(question: Question) -> str:
    """The condition on rows of ``download_item``."""
    conditions = [f"i.{name} IN ({marks_of(values)})" for name, values in question.wanted.items()]
    if question.repositories is not None:
        of, path = marks_of(question.repositories), marks_of(question.paths)
        conditions.append(f"(i.repository_id IN ({of}) OR i.repository IN ({path}))")
    either = [" AND ".join(conditions), *map(_condition, question.copies)]
    return "({})".format(" OR ".join(either))


@frozen
class Fetches:
    """
    The fetches by one client from one network; times are in ms.

    ``username`` is None for anonymous clients, ``token`` for those without one. ``address`` is the network, empty if it
    was not kept.
    """

    client_id: int
    address: str
    first_ms: int
    last_ms: int
    count: int
    username: str | None
    token: str | None


@frozen
class FetchedItem:
    """A file or manifest that was fetched, as it was named then, with all fetches of it; times are in ms."""

    id: int
    repository: str
    package: str
    version: str
    path: str
    sha256: bytes | None
    first_ms: int
    last_ms: int
    count: int


@frozen
class Totals:
    """All fetches that fit a question: of how many items, by how many clients, and how many by anonymous ones."""

    items: int
    count: int
    anonymous: int
    clients: int


@frozen
class PackageFetches:
    """The fetches of all that belongs to a package (a key), and by how many clients; anonymous ones are one."""

    package: str
    count: int
    clients: int


@frozen
class ItemFetches:
    """The fetches of one file or manifest by one client from one network; for the fields see those of the others."""

    id: int
    client_id: int
    address: str
    repository: str
    package: str
    version: str
    path: str
    first_ms: int
    last_ms: int
    count: int
    username: str | None
    token: str | None
    pipeline: str


def _order(name: str, value: Any) -> list[Any]:
    return [(name, int, value), ("client_id", int, lambda each: each.client_id), ("address", str, _address)]


def _address(each: Fetches) -> str:
    return each.address


FETCH_ORDERS: Final[Mapping[str, Order[Fetches]]] = both_ways(
    {
        "last_at": _order("last_at", lambda each: each.last_ms),
        "first_at": _order("first_at", lambda each: each.first_ms),
        "count": _order("count", lambda each: each.count),
    }
)
BY_ITEM: Final[Order[ItemFetches]] = both_ways(
    {
        "item": [
            ("id", int, lambda each: each.id),
            ("client_id", int, lambda each: each.client_id),
            ("address", str, lambda each: each.address),
        ]
    }
)["item"]


def list_fetches(
    r: Reader,
    question: Question,
    *,
    after: Sequence[Value] = (),
    limit: int,
    order: str = "-last_at",
    anonymous: bool | None = None,
) -> list[Fetches]:
    """
    A page of the clients that fetched what a question is about, in one of the ``FETCH_ORDERS``.

    ``anonymous`` selects those without a user (True), or those with one (False).
    """
    sorting = FETCH_ORDERS[order]
    beyond = f"WHERE {sorting.beyond}" if after else ""
    return every(
        r,
        lambda row: Fetches(*row),
        f"""
        WITH fetched AS (
            SELECT l.client_id AS client_id, l.address AS address, MIN(l.first_at) AS first_at,
                MAX(l.last_at) AS last_at, CAST(SUM(l.count) AS BIGINT) AS count
            FROM download_item i JOIN download_log l ON l.item_id = i.id
            WHERE {_condition(question)} {_WHO[anonymous]} GROUP BY l.client_id, l.address
        ), page AS (SELECT * FROM fetched {beyond} ORDER BY {sorting.by} LIMIT ?)
        SELECT p.client_id, p.address, p.first_at, p.last_at, p.count, COALESCE(a.username, c.username),
            NULLIF(COALESCE(t.name, c.token), '')
        FROM page p LEFT JOIN download_client c ON c.id = p.client_id
        LEFT JOIN account a ON a.id = c.user_id LEFT JOIN token t ON t.id = c.token_id
        ORDER BY {sorting.by}
        """,
        (*question.parameters, *after, limit),
    )


def list_fetched(r: Reader, question: Question, limit: int) -> list[FetchedItem]:
    """The files and manifests that a question is about, those that were fetched last first."""
    return every(
        r,
        lambda row: FetchedItem(*row),
        f"""
        SELECT i.id, i.repository, i.package, i.version, i.path, i.sha256, MIN(l.first_at), MAX(l.last_at),
            CAST(SUM(l.count) AS BIGINT)
        FROM download_item i JOIN download_log l ON l.item_id = i.id WHERE {_condition(question)}
        GROUP BY i.id, i.repository, i.package, i.version, i.path, i.sha256 ORDER BY MAX(l.last_at) DESC, i.id LIMIT ?
        """,
        (*question.parameters, limit),
    )


def list_item_fetches(r: Reader, question: Question, after: Sequence[Value], limit: int) -> list[ItemFetches]:
    """A page of who fetched each file or manifest that a question is about."""
    return every(
        r,
        lambda row: ItemFetches(*row),
        f"""
        WITH page AS (
            SELECT i.id AS id, l.client_id AS client_id, l.address AS address, i.repository AS repository,
                i.package AS package, i.version AS version, i.path AS path, MIN(l.first_at) AS first_at,
                MAX(l.last_at) AS last_at, CAST(SUM(l.count) AS BIGINT) AS count
            FROM download_item i JOIN download_log l ON l.item_id = i.id
            WHERE {_condition(question)} {"AND (i.id, l.client_id, l.address) > (?, ?, ?)" if after else ""}
            GROUP BY i.id, l.client_id, l.address, i.repository, i.package, i.version, i.path
            ORDER BY i.id, l.client_id, l.address LIMIT ?
        )
        SELECT p.id, p.client_id, p.address, p.repository, p.package, p.version, p.path, p.first_at, p.last_at, p.count,
            COALESCE(a.username, c.username), NULLIF(COALESCE(t.name, c.token), ''), COALESCE(c.pipeline, '')
        FROM page p LEFT JOIN download_client c ON c.id = p.client_id
        LEFT JOIN account a ON a.id = c.user_id LEFT JOIN token t ON t.id = c.token_id
        ORDER BY p.id, p.client_id, p.address
        """,
        (*question.parameters, *after, limit),
    )


def fetched_versions(r: Reader, format: str, package_key: str, limit: int) -> list[str]:
    """The versions of a package that were fetched, as they were called then."""
    sql = "SELECT DISTINCT version FROM download_item WHERE package_key = ? AND format = ? ORDER BY version LIMIT ?"
    return column(r, sql, (package_key, format, limit))


def count_fetches(r: Reader, question: Question) -> Totals:
    """The sums over all clients."""
    row = only_row(
        r,
        f"""
        SELECT COUNT(DISTINCT i.id), SUM(l.count), SUM(CASE WHEN l.client_id = ? THEN l.count ELSE 0 END),
            COUNT(DISTINCT CASE WHEN l.client_id <> ? THEN l.client_id END)
        FROM download_item i JOIN download_log l ON l.item_id = i.id WHERE {_condition(question)}
        """,
        (ANONYMOUS, ANONYMOUS, *question.parameters),
    )
    return Totals(*(int(each or 0) for each in row))


def packages_fetched(r: Reader, question: Question, from_day: int) -> list[PackageFetches]:
    """The fetches of each package that a question is about, since a day, of those of which there are any."""
    return every(
        r,
        lambda row: PackageFetches(row[0], int(row[1]), row[2]),
        f"""
        SELECT i.package_key, SUM(l.count), COUNT(DISTINCT l.client_id)
        FROM download_item i JOIN download_log l ON l.item_id = i.id AND l.day >= ?
        WHERE {_condition(question)} GROUP BY i.package_key ORDER BY i.package_key
        """,
        (from_day, *question.parameters),
    )


def is_stored(r: Reader, question: Question, repository_ids: Sequence[int]) -> bool:
    """Whether something that a question is about is stored in one of these repositories now."""
    if question.digests is not None:
        sql = "SELECT 1 FROM file WHERE sha256 = ? UNION ALL SELECT 1 FROM manifest WHERE sha256 = ?"
        return any(r.one(sql, (each, each)) is not None for each in question.digests)
    keys, names = question.packages or (), question.versions
    for repository_id in repository_ids:
        sql = f"SELECT id FROM package WHERE repository_id = ? AND key IN ({marks_of(keys)})"
        for package_id in column(r, sql, (repository_id, *keys)):
            if names is None:
                return True
            sql = f"""
                SELECT 1 FROM version WHERE package_id = ? AND key IN ({marks_of(names)})
                UNION ALL SELECT 1 FROM tag WHERE package_id = ? AND name IN ({marks_of(names)})
            """
            if r.one(sql, (package_id, *names, package_id, *names)) is not None:
                return True
    return False
