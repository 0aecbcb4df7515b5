"""
Replicas: proxy repositories that follow the events of a repository of another server, and what remains to be done.

A task is done after the events were noted of which it is, in one transaction with the position behind them: after a
crash it is still there, and doing one twice changes nothing. A task that is to be done anew while it is being done has
another ``serial`` then, and stays.

========  ==============================================================================================
walk      meaning
========  ==============================================================================================
new       nothing has been read yet
kept      the packages that are kept here become tasks: what the upstream does not have any more goes
listed    the packages that the upstream lists become tasks: what is wanted of them is fetched
deleted   the names that are taken there by what was deleted are noted, some at a time
(empty)   the comparison has ended: events say what to do
========  ==============================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import SYSTEM
from pkgrepo.storage.catalog.packages.events import append_repository_event
from pkgrepo.storage.catalog.rows import batches, every, find, only_row, placeholders, put, rows

NEW, KEPT, LISTED, DELETED, FOLLOWING = "new", "kept", "listed", "deleted", ""
ALL: Final = "*"  # as the version of a task: the whole package
DELETED_NAMES: Final = "*deleted"  # the same: the names that are taken by what was deleted of a package
ANNOUNCED_MS: Final = 60_000  # of failing, after which an event says so

Item = tuple[str, str]  # the key of a package, and what of it, as in ``Task.version``


@frozen
class Replica:
    """What is known of a replica; see the table ``replica``."""

    repository_id: int
    source: str
    position: str
    walk: str
    walked: str
    events_left: int
    compared_at: datetime | None
    reason: str
    checked_at: datetime | None
    current_at: datetime | None
    error: str
    failing_since: datetime | None


@frozen
class Task:
    """
    Something to be done.

    ``version`` is empty if it is about documents only, ``ALL`` for a whole package, and ``DELETED_NAMES`` for the names
    that are taken by what was deleted of it.
    """

    package_key: str
    version: str
    serial: int
    attempts: int


@frozen
class Backlog:
    """The numbers of tasks, and of those that failed, with the error of the one that failed most often."""

    tasks: int = 0
    failed: int = 0
    error: str = ""


_REPLICA, _replica = rows(Replica, "replica")
_TASK, _task = rows(Task, "replica_task")


def find_replica(r: Reader, repository_id: int) -> Replica | None:
    """The replica of a repository, or None if it has followed nothing yet."""
    return find(r, _replica, f"{_REPLICA} WHERE repository_id = ?", (repository_id,))


def all_replicas(r: Reader) -> list[Replica]:
    """All replicas, also those that follow nothing any more."""
    return every(r, _replica, f"{_REPLICA} ORDER BY repository_id")


def backlog_of(r: Reader, repository_id: int) -> Backlog:
    """What remains to be done."""
    sql = "SELECT COUNT(*), COALESCE(SUM(CASE WHEN attempts > 0 THEN 1 ELSE 0 END), 0) FROM replica_task"
    tasks, failed = only_row(r, f"{sql} WHERE repository_id = ?", (repository_id,))
    row = None
    if failed:
        worst = "SELECT error FROM replica_task WHERE repository_id = ? AND attempts > 0 ORDER BY attempts DESC LIMIT 1"
        row = r.one(worst, (repository_id,))
    return Backlog(int(tasks), int(failed), row[0] if row is not None else "")


def ensure_replica(tx: Transaction, repository_id: int, source: str) -> None:
    """Have a row for what is followed of a source, which is a new one if that is another one than before."""
    found = find_replica(tx, repository_id)
    if found is None or found.source != source:
        forget_replica(tx, repository_id)
        put(tx, "replica", repository_id=repository_id, source=source, walk=NEW)


def begin_comparison(
    tx: Transaction, repository_id: int, source: str, position: str, reason: str, now_ms: int
) -> list[str]:
    """
    Begin to follow a source at a position, with a comparison of all that is kept.

    Marks all documents as old, and returns their keys.
    """
    put(
        tx,
        "replica",
        "repository_id",
        repository_id=repository_id,
        source=source,
        position=position,
        walk=KEPT,
        walked="",
        events_left=0,
        compared_at=now_ms,
        reason=reason,
        checked_at=now_ms,
    )
    tx.execute("DELETE FROM replica_task WHERE repository_id = ?", (repository_id,))
    return _expire_documents(tx, repository_id, None)


def take_events(
    tx: Transaction, repository_id: int, before: str, position: str, left: int, items: Sequence[Item], now_ms: int
) -> list[str] | None:
    """
    Note what events are about, and the position behind them; the one ``before`` must be that of the replica.

    Marks the documents of the packages, and those of no package, as old. Returns their keys; None, without a change,
    if another process was faster.
    """
    if not tx.execute(
        "UPDATE replica SET position = ?, events_left = ?, checked_at = ? WHERE repository_id = ? AND position = ?",
        (position, left, now_ms, repository_id, before),
    ):
        return None
    add_tasks(tx, repository_id, items, now_ms)
    keys = {key for key, _ in items}
    return _expire_documents(tx, repository_id, [*sorted(keys), ""]) if keys else []


def walk_on(tx: Transaction, repository_id: int, walk: str, walked: str, items: Sequence[Item], now_ms: int) -> None:
    """Add the tasks of a step of the comparison, and note how far it has come."""
    add_tasks(tx, repository_id, items, now_ms, compared=True)
    tx.execute("UPDATE replica SET walk = ?, walked = ? WHERE repository_id = ?", (walk, walked, repository_id))


def add_tasks(
    tx: Transaction, repository_id: int, items: Iterable[Item], now_ms: int, *, compared: bool = False
) -> None:
    """Add tasks that are due now; one that is there already is to be done anew."""
    for some in batches(sorted(set(items))):
        values: list[Value] = []
        for key, version in some:
            values += (repository_id, key, version, int(compared), now_ms)
        tx.send(
            f"""
            INSERT INTO replica_task (repository_id, package_key, version, compared, due_at)
            VALUES {placeholders(len(some), "(?, ?, ?, ?, ?)")}
            ON CONFLICT (repository_id, package_key, version) DO UPDATE SET
                serial = replica_task.serial + 1, due_at = excluded.due_at, attempts = 0,
                compared = CASE WHEN excluded.compared = 0 THEN 0 ELSE replica_task.compared END
            """,
            values,
        )


def due_tasks(r: Reader, repository_id: int, now_ms: int, limit: int) -> list[Task]:
    """The tasks to do next, those of events before those of a comparison."""
    sql = f"{_TASK} WHERE repository_id = ? AND due_at <= ? ORDER BY compared, due_at LIMIT ?"
    return every(r, _task, sql, (repository_id, now_ms, limit))


def end_task(tx: Transaction, repository_id: int, task: Task) -> None:
    """Remove a task that was done, unless it is to be done anew."""
    tx.execute(
        "DELETE FROM replica_task WHERE repository_id = ? AND package_key = ? AND version = ? AND serial = ?",
        (repository_id, task.package_key, task.version, task.serial),
    )


def fail_task(tx: Transaction, repository_id: int, task: Task, error: str, due_ms: int) -> None:
    """Note that a task failed, and when to try it again."""
    tx.execute(
        """
        UPDATE replica_task SET attempts = attempts + 1, error = ?, due_at = ?
        WHERE repository_id = ? AND package_key = ? AND version = ? AND serial = ?
        """,
        (error, due_ms, repository_id, task.package_key, task.version, task.serial),
    )


def fold_failed(tx: Transaction, repository_id: int, most: int) -> int:
    """
    Make one task of those of a package that failed, for the ``most`` packages that have several, the most first.

    It is to be done when the first of them is. Returns how many tasks are fewer.
    """
    rest = f"repository_id = ? AND attempts > 0 AND version NOT IN ('', '{ALL}', '{DELETED_NAMES}')"
    found = tx.all(
        f"""
        SELECT package_key, COUNT(*), MIN(due_at), MAX(attempts), MAX(error) FROM replica_task WHERE {rest}
        GROUP BY package_key HAVING COUNT(*) > 1 ORDER BY COUNT(*) DESC, package_key LIMIT ?
        """,
        (repository_id, most),
    )
    for key, _, due_ms, attempts, error in found:
        tx.execute(f"DELETE FROM replica_task WHERE {rest} AND package_key = ?", (repository_id, key))
        add_tasks(tx, repository_id, [(key, ALL)], due_ms, compared=True)
        tx.execute(
            """
            UPDATE replica_task SET attempts = ?, error = ?
            WHERE repository_id = ? AND package_key = ? AND version = ?
            """,
            (attempts, error, repository_id, key, ALL),
        )
    return sum(int(count) - 1 for _, count, *_ in found)


def compare_again(tx: Transaction, repository_id: int, now_ms: int) -> bool:
    """
    Begin a comparison of all that is kept, and have tasks that failed done now.

    Returns False, without a change, if nothing of the source was read yet.
    """
    if not tx.execute(
        "UPDATE replica SET walk = ?, walked = '', compared_at = ?, reason = ? WHERE repository_id = ? AND walk <> ?",
        (KEPT, now_ms, "somebody asked for it", repository_id, NEW),
    ):
        return False
    sql = "UPDATE replica_task SET due_at = ? WHERE repository_id = ? AND attempts > 0 AND due_at > ?"
    tx.execute(sql, (now_ms, repository_id, now_ms))
    return True


def note_state(tx: Transaction, repository_id: int, error: str, now_ms: int, *, current: bool) -> None:
    """
    Note an error, or that there is none, and whether nothing is left to do.

    After ``ANNOUNCED_MS`` of failing there is an event about it, and another one when that is over.
    """
    row = tx.one("SELECT failing_since, announced, source FROM replica WHERE repository_id = ?", (repository_id,))
    if row is None:
        return
    since_ms, announced, source = row
    since_ms = (now_ms if since_ms is None else since_ms) if error else None
    announces = since_ms is not None and now_ms - since_ms >= ANNOUNCED_MS
    if bool(announced) != announces and (announces or not error):
        kind = "replication.failed" if announces else "replication.recovered"
        data: dict[str, Any] = {"name": source, "reason": error or "it is followed again"}
        append_repository_event(tx, repository_id, kind, data, SYSTEM, now_ms)
        announced = int(announces)
    tx.execute(
        """
        UPDATE replica SET error = ?, failing_since = ?, announced = ?,
            checked_at = CASE WHEN ? = 1 THEN ? ELSE checked_at END,
            current_at = CASE WHEN ? = 1 THEN ? ELSE current_at END
        WHERE repository_id = ?
        """,
        (error, since_ms, announced, int(not error), now_ms, int(current), now_ms, repository_id),
    )


def forget_replica(tx: Transaction, repository_id: int) -> None:
    """Remove what is known of a replica that follows nothing any more."""
    tx.execute("DELETE FROM replica_task WHERE repository_id = ?", (repository_id,))
    tx.execute("DELETE FROM replica WHERE repository_id = ?", (repository_id,))


def _expire_documents(tx: Transaction, repository_id: int, package_keys: Sequence[str] | None) -> list[str]:
    """
    Mark the responses about some packages (empty: about none), or all of them (None), as old. Returns their keys.

    Also those that there is nothing: what was removed there may be published again.

    They are served while upstreams fail, and else confirmed or replaced. What was made of them is not cached any more,
    since that is valid for a time of fetching.
    """
    sql = """
        UPDATE upstream_document SET fresh_until = 0, fetched_at = fetched_at + 1
        WHERE repository_id = ?
        """
    if package_keys is None:
        return [key for (key,) in tx.all(f"{sql} RETURNING key", (repository_id,))]
    found: list[str] = []
    for some in batches(package_keys):
        marked = f"{sql} AND package_key IN ({placeholders(len(some))}) RETURNING key"
        found += [key for (key,) in tx.all(marked, (repository_id, *some))]
    return found
