"""
The download log: who fetched what, and when, one row for each file or manifest, client, network and day.

``download_item`` names what was fetched as it was when that was asked for (L{find_names}), and ``download_client`` who
fetched it, so that the log can still be read after the package, the repository, the user or the token was removed. Rows
are removed by their age.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import batches, column, insert, number, placeholders, scalar
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.usage_counts import Download, Names

SINCE: Final = "downloads_logged_since"  # the key among the settings: when the first row was written, in ms
ROWS: Final = "download_log_rows"  # the key among the settings: the number of rows when they were last counted
ANONYMOUS: Final = 0  # the client without a user
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
