"""
The download log: who fetched what, and when, one row for each file or manifest, client, network and day.

``download_item`` names what was fetched as it was when that was asked for (L{find_names}), and ``download_client`` who
fetched it, so that the log can still be read after the package, the repository, the user or the token was removed. Rows
are removed by their age.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.rows import batches, column, every, insert, number, only_row, placeholders, scalar
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.usage_counts import Download, Names

SINCE: Final = "downloads_logged_since"  # the key among the settings: when the first row was written, in ms
ROWS: Final = "download_log_rows"  # the key among the settings: the number of rows when they were last counted
ANONYMOUS: Final = 0  # the client without a user, see ``_WHO``
EXPIRED_ITEMS: Final = 50  # of which old rows are looked for at once

# A repository of a stage stands for the one that its content is for, and the channel beside it for that one's.
_WHERE: Final = "COALESCE(o.id, r.id), s.name || '/' || COALESCE(o.name, r.name), r.format"
_FOR: Final = """
    JOIN storage s ON s.id = r.storage_id LEFT JOIN repository q ON q.id = r.parent_id AND r.stage IS NOT NULL
    LEFT JOIN repository o ON o.id = CASE WHEN q.stage IS NULL THEN q.id ELSE (
        SELECT MIN(c.id) FROM repository c WHERE c.parent_id = q.parent_id AND c.format = r.format AND c.stage IS NULL
    ) END
"""
_NAMES: Final = {
    "file": f"""
        SELECT {_WHERE}, COALESCE(p.key, ''), COALESCE(p.name, ''), COALESCE(v.key, ''), COALESCE(v.text, ''), f.sha256
        FROM file f JOIN repository r ON r.id = f.repository_id {_FOR}
        LEFT JOIN package p ON p.id = f.package_id LEFT JOIN version v ON v.id = f.version_id WHERE f.id = ?
    """,
    "manifest": f"""
        SELECT {_WHERE}, p.key, p.name, m.digest, m.digest, m.sha256
        FROM manifest m JOIN package p ON p.id = m.package_id
        JOIN repository r ON r.id = m.repository_id {_FOR} WHERE m.id = ?
    """,
}


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


def marks_of(values: Sequence[Value]) -> str:
    """Placeholders for values of an IN, also for none."""
    return placeholders(len(values)) if values else "NULL"  # which no value is in


_WHO: Final[Mapping[bool | None, str]] = {None: "", True: "AND l.client_id = 0", False: "AND l.client_id > 0"}


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


def find_names(r: Reader, kind: str, item_id: int) -> Names | None:
    """
    What a file or manifest is called now; None if it was removed.

    Asked for at the time of the request: what is fetched may be deleted, replaced or approved a moment later.
    """
    row = r.one(_NAMES[kind], (item_id,))
    return None if row is None else Names(*row)


def log_downloads(tx: Transaction, batch: Sequence[Download]) -> None:
    """Add a batch of downloads to the log."""
    if not batch:
        return
    if settings.get(tx, SINCE) is None:
        settings.put(tx, SINCE, str(min(each.at_ms for each in batch)))
    items, clients = _items(tx, batch), _clients(tx, batch)
    for each in batch:
        tx.send(
            """
            INSERT INTO download_log (item_id, day, client_id, address, first_at, last_at, count)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (item_id, day, client_id, address) DO UPDATE SET
                first_at = CASE WHEN excluded.first_at < download_log.first_at THEN excluded.first_at
                    ELSE download_log.first_at END,
                last_at = CASE WHEN excluded.last_at > download_log.last_at THEN excluded.last_at
                    ELSE download_log.last_at END,
                count = download_log.count + excluded.count
            """,
            (
                items[each.kind, each.item_id, each.reference],
                each.day,
                clients[_client(each)],
                each.address,
                each.at_ms,
                max(each.at_ms, each.last_ms),
                each.count,
            ),
        )


def _items(tx: Transaction, batch: Sequence[Download]) -> dict[tuple[str, int, str], int]:
    """The ids of what was fetched; what is not named yet gets a row."""
    found: dict[tuple[str, int, str], tuple[int, int]] = {}
    for some in batches(sorted({each.item_id for each in batch})):
        rows = tx.all(
            f"SELECT kind, item_id, reference, id, first_day FROM download_item WHERE item_id IN "
            f"({placeholders(len(some))})",
            some,
        )
        found.update({(kind, item_id, reference): (row_id, day) for kind, item_id, reference, row_id, day in rows})
    for each in batch:
        key = each.kind, each.item_id, each.reference
        if key not in found:
            found[key] = _add_item(tx, each), each.day
        elif each.day < found[key][1]:  # another process has written those of the next day before
            found[key] = found[key][0], each.day
            tx.send("UPDATE download_item SET first_day = ? WHERE id = ?", (each.day, found[key][0]))
    return {key: row_id for key, (row_id, _) in found.items()}


def _add_item(tx: Transaction, each: Download) -> int:
    names = each.names or find_names(tx, each.kind, each.item_id)
    if names is None:  # it was removed before anybody could ask
        names = Names(each.repository_id, "", "", "", "", "", "", None)
    return insert(
        tx,
        "download_item",
        kind=each.kind,
        item_id=each.item_id,
        reference=each.reference,
        repository_id=names.repository_id,
        repository=names.repository,
        format=names.format,
        package_key=names.package_key,
        package=names.package,
        version_key=each.reference or names.version_key,
        version=each.reference or names.version,
        path=each.path,
        sha256=names.sha256,
        first_day=each.day,
    )


def _client(each: Download) -> tuple[int, int, str]:
    return each.user_id or 0, each.token_id or 0, each.pipeline


def _clients(tx: Transaction, batch: Sequence[Download]) -> dict[tuple[int, int, str], int]:
    """The ids of clients; those that are not named yet get a row."""
    last: dict[tuple[int, int, str], int] = {}
    for each in batch:
        if each.user_id is not None:
            last[_client(each)] = max(each.day, last.get(_client(each), 0))
    found = {(0, 0, ""): ANONYMOUS}
    for (user_id, token_id, pipeline), day in sorted(last.items()):
        row = tx.one(
            "SELECT id, last_day FROM download_client WHERE user_id = ? AND token_id = ? AND pipeline = ?",
            (user_id, token_id, pipeline),
        )
        if row is None:
            client_id = insert(
                tx,
                "download_client",
                user_id=user_id,
                token_id=token_id,
                pipeline=pipeline,
                username=scalar(tx, "SELECT username FROM account WHERE id = ?", (user_id,)) or "",
                token=pipeline or scalar(tx, "SELECT name FROM token WHERE id = ?", (token_id,)) or "",
                last_day=day,
            )
        else:
            client_id = row[0]
            if row[1] < day:
                tx.send("UPDATE download_client SET last_day = ? WHERE id = ?", (day, client_id))
        found[user_id, token_id, pipeline] = client_id
    return found


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


BY_ITEM: Final[Order[ItemFetches]] = both_ways(
    {
        "item": [
            ("id", int, lambda each: each.id),
            ("client_id", int, lambda each: each.client_id),
            ("address", str, lambda each: each.address),
        ]
    }
)["item"]


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


def logged_since(r: Reader) -> int | None:
    """When the first row was written, in ms; None before that."""
    text = settings.get(r, SINCE)
    return None if text is None else int(text)


def counted_rows(r: Reader) -> int | None:
    """The number of rows of the log when they were last counted; None if they never were."""
    text = settings.get(r, ROWS)
    return None if text is None else int(text)


def count_rows(r: Reader) -> int:
    """The number of rows of the log, of which all are read."""
    return number(r, "SELECT COUNT(*) FROM download_log")


def remove_expired_downloads(tx: Transaction, before_day: int, limit: int) -> int:
    """
    Remove rows of days before ``before_day``, ``limit`` at most.

    Returns how many rows were removed or brought up to date; call it again until it returns 0.
    """
    done = 0
    sql = "SELECT id FROM download_item WHERE first_day < ? ORDER BY first_day LIMIT ?"
    for item_id in column(tx, sql, (before_day, EXPIRED_ITEMS)):
        done += tx.execute(
            """
            DELETE FROM download_log WHERE (item_id, day, client_id, address) IN (
                SELECT item_id, day, client_id, address FROM download_log WHERE item_id = ? AND day < ? LIMIT ?
            )
            """,
            (item_id, before_day, limit - done),
        )
        if done >= limit:
            return done
        first = scalar(tx, "SELECT MIN(day) FROM download_log WHERE item_id = ?", (item_id,))
        if first is None:
            tx.execute("DELETE FROM download_item WHERE id = ?", (item_id,))
        else:
            tx.execute("UPDATE download_item SET first_day = ? WHERE id = ?", (first, item_id))
        done += 1
    # a client's rows are of its last day at the latest, so none is left
    return done or tx.execute("DELETE FROM download_client WHERE last_day < ?", (before_day,))
