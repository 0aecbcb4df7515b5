"""
Many versions of one package at once.

One statement takes some hundred rows: with one for each row a package of thousands of versions would keep other writers
waiting for seconds, and other threads from running in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import frozen

from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import Actor, Package, VersionState
from pkgrepo.storage.catalog.clauses import marks, pieces
from pkgrepo.storage.catalog.columns import dump

from .tombstones import LATEST

_PLACE = "(CAST(? AS BLOB), ?)"  # of rows that PostgreSQL could not tell the types of otherwise


@frozen
class VersionRow:
    """A version without what its format keeps of it."""

    id: int
    key: str
    text: str
    sort: bytes
    state: VersionState
    reason: str


def version_rows(r: Reader, package_id: int, keys: Iterable[str]) -> list[VersionRow]:
    """Those of the versions that exist; in the format's order, where the keys are in it."""
    found: list[VersionRow] = []
    for some in pieces(list(keys)):
        rows = r.all(
            f"""
            SELECT id, key, text, sort, state, reason FROM version
            WHERE package_id = ? AND key IN ({marks(len(some))}) ORDER BY sort, key
            """,
            (package_id, *some),
        )
        found += [
            VersionRow(id=row[0], key=row[1], text=row[2], sort=row[3], state=VersionState(row[4]), reason=row[5])
            for row in rows
        ]
    return found


def set_states(tx: Transaction, rows: Iterable[VersionRow]) -> None:
    """Give every version the state and the reason that its row has here."""
    alike: dict[tuple[VersionState, str], list[int]] = {}
    for row in rows:
        alike.setdefault((row.state, row.reason), []).append(row.id)
    for (state, reason), ids in alike.items():
        for some in pieces(ids):
            tx.execute(
                f"UPDATE version SET state = ?, reason = ? WHERE id IN ({marks(len(some))})",
                (state, reason, *some),
            )


def paths_and_sizes(r: Reader, rows: Iterable[VersionRow]) -> dict[int, list[tuple[str, int]]]:
    """Path and size of the files of each version, by its id; nothing for one that has none."""
    found: dict[int, list[tuple[str, int]]] = {}
    for some in pieces([row.id for row in rows]):
        sql = f"SELECT version_id, path, size FROM file WHERE version_id IN ({marks(len(some))}) ORDER BY path"
        for version_id, path, size in r.all(sql, some):
            found.setdefault(version_id, []).append((path, size))
    return found


def burn(tx: Transaction, package_key: str, rows: Iterable[VersionRow], actor: Actor, now_ms: int) -> None:
    """Let nothing but the same content ever come back under the paths of these versions' files."""
    for some in pieces([row.id for row in rows]):
        tx.execute(
            f"""
            INSERT INTO tombstone (repository_id, path, package_key, sha256, deleted_at, actor)
            SELECT repository_id, path, ?, sha256, ?, ? FROM file WHERE version_id IN ({marks(len(some))})
            {LATEST}
            """,
            (package_key, now_ms, actor.name, *some),
        )


def remove_rows(tx: Transaction, rows: Iterable[VersionRow]) -> None:
    """Remove versions with their files and the tags on them; their fragments are removed by key."""
    for some in pieces([row.id for row in rows]):
        tx.execute(f"DELETE FROM version WHERE id IN ({marks(len(some))})", some)


def find_fragments(r: Reader, package_id: int, kind: str, rows: Iterable[VersionRow]) -> dict[str, bytes]:
    """The parts of one kind that stand for these versions, by key."""
    found: dict[str, bytes] = {}
    for some in pieces(list(rows)):
        found |= r.all(
            f"""
            SELECT key, body FROM fragment
            WHERE package_id = ? AND kind = ? AND (sort, key) IN (VALUES {marks(len(some), _PLACE)})
            """,
            (package_id, kind, *_places(some)),
        )
    return found


def put_fragments(tx: Transaction, package_id: int, kind: str, parts: Iterable[tuple[VersionRow, bytes]]) -> None:
    """Set or replace the part of one kind that stands for each version."""
    for some in pieces(list(parts)):
        values: list[Value] = []
        for row, body in some:
            values += (package_id, kind, row.sort, row.key, body)
        tx.execute(
            f"""
            INSERT INTO fragment (package_id, kind, sort, key, body) VALUES {marks(len(some), "(?, ?, ?, ?, ?)")}
            ON CONFLICT (package_id, kind, sort, key) DO UPDATE SET body = excluded.body
            """,
            values,
        )


def remove_fragments(tx: Transaction, package_id: int, kind: str, rows: Iterable[VersionRow]) -> None:
    """Remove the parts of one kind that stand for these versions; absent is fine."""
    for some in pieces(list(rows)):
        tx.execute(
            f"""
            DELETE FROM fragment
            WHERE package_id = ? AND kind = ? AND (sort, key) IN (VALUES {marks(len(some), _PLACE)})
            """,
            (package_id, kind, *_places(some)),
        )


def append_events(
    tx: Transaction,
    package: Package,
    happened: Iterable[tuple[VersionRow, str, Mapping[str, Any]]],
    actor: Actor,
    now_ms: int,
) -> None:
    """Add an event about each version: its kind, and its data, which name the version as it is written."""
    for some in pieces(list(happened)):
        values: list[Value] = []
        for row, kind, data in some:
            values += (package.repository_id, package.id, package.key, row.key, kind)
            values += (dump({"version": row.text, **data}), actor.user_id, actor.name, actor.token_id, now_ms)
        tx.execute(
            f"""
            INSERT INTO event (repository_id, package_id, package_key, version_key, kind, data, user_id, actor,
                               token_id, at)
            VALUES {marks(len(some), "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")}
            """,
            values,
        )


def _places(rows: Iterable[VersionRow]) -> Iterator[Value]:
    for row in rows:
        yield row.sort
        yield row.key
