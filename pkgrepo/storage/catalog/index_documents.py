"""
What index documents are made of: fragments, lists that only grow, and documents that were replaced.

Fragments are prerendered parts of a package's documents, which are joined in the order of (sort, key). Lines are only
appended to a list, so that a reader who has a part asks for the rest alone. A list that is written anew, or loses
lines, gets a new epoch: parts of two epochs do not fit together. A superseded document is kept for clients that were
told its address before. It is added when it is replaced, and removed a week later by housekeeping, or earlier if the
repository has more than ``MOST_SUPERSEDED`` of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Row, Transaction, Value
from pkgrepo.model import Fragment
from pkgrepo.storage.catalog.rows import batches, every, find, placeholders, scalar

SUPERSEDED_MS: Final = 7 * 24 * 60 * 60_000
_PLACED: Final = "((SELECT last + ? FROM fragment_place WHERE package_id = ?), ?, ?, ?, ?, ?)"
MOST_SUPERSEDED: Final = 500  # of one repository; the last ones are kept


def put_fragment(tx: Transaction, package_id: int, kind: str, sort: bytes, key: str, body: bytes) -> None:
    """Upsert one fragment."""
    put_fragments(tx, package_id, [(kind, Fragment(sort, key, body))])


def put_fragments(tx: Transaction, package_id: int, new: Sequence[tuple[str, Fragment]]) -> None:
    """Upsert fragments, given with their kinds, by statements for many; no two have the same kind, sort and key."""
    for some in batches(new):
        values: list[Value] = []
        for place, (kind, fragment) in enumerate(some, 1):
            values += (place, package_id, package_id, kind, *fragment)
        tx.send(
            f"""
            INSERT INTO fragment (rowid, package_id, kind, sort, key, body) VALUES {placeholders(len(some), _PLACED)}
            ON CONFLICT (package_id, kind, sort, key) DO UPDATE SET body = excluded.body
            """,
            values,
        )


def remove_fragment(tx: Transaction, package_id: int, kind: str, sort: bytes, key: str) -> None:
    """Remove one fragment if it exists."""
    tx.send(
        "DELETE FROM fragment WHERE package_id = ? AND kind = ? AND sort = ? AND key = ?",
        (package_id, kind, sort, key),
    )


def find_fragment(r: Reader, package_id: int, kind: str, sort: bytes, key: str) -> bytes | None:
    """The body of one fragment, or None."""
    return scalar(
        r,
        "SELECT body FROM fragment WHERE package_id = ? AND kind = ? AND sort = ? AND key = ?",
        (package_id, kind, sort, key),
    )


def list_fragments(r: Reader, package_id: int, kind: str) -> list[Fragment]:
    """All fragments of one kind of a package, in order."""
    return every(
        r,
        Fragment._make,
        "SELECT sort, key, body FROM fragment WHERE package_id = ? AND kind = ? ORDER BY sort, key",
        (package_id, kind),
    )


def fragment_bodies(r: Reader, package_id: int, kind: str) -> list[bytes]:
    """The bodies of all fragments of one kind of a package, in order; twice as fast as ``list_fragments``."""
    sql = "SELECT body FROM fragment WHERE package_id = ? AND kind = ? ORDER BY sort, key"
    return list(map(itemgetter(0), r.all(sql, (package_id, kind))))


def all_fragments(r: Reader, package_id: int) -> list[tuple[str, Fragment]]:
    """All fragments of a package as pairs of kind and fragment, in order."""
    rows = r.all(
        "SELECT kind, sort, key, body FROM fragment WHERE package_id = ? ORDER BY kind, sort, key", (package_id,)
    )
    return [(kind, Fragment._make(fields)) for kind, *fields in rows]


def fragments_after(r: Reader, repository_id: int, kind: str, after: str, limit: int) -> list[tuple[str, bytes | None]]:
    """
    A page of packages after the key ``after``, ordered by key, as pairs (package key, fragment body or None).

    Only for kinds of which a package has at most one fragment.
    """
    return r.all(
        """
        SELECT p.key, f.body FROM package p LEFT JOIN fragment f ON f.package_id = p.id AND f.kind = ?
        WHERE p.repository_id = ? AND p.key > ? ORDER BY p.key LIMIT ?
        """,
        (kind, repository_id, after, limit),
    )


def find_single_fragment(r: Reader, repository_id: int, key: str, kind: str) -> bytes | None:
    """The fragment of a package by package key, or None. Only for kinds of which a package has at most one."""
    return scalar(
        r,
        """
        SELECT f.body FROM package p JOIN fragment f ON f.package_id = p.id AND f.kind = ?
        WHERE p.repository_id = ? AND p.key = ?
        """,
        (kind, repository_id, key),
    )


def fragments_by_package(r: Reader, repository_id: int, kind: str) -> list[tuple[str, list[Fragment]]]:
    """
    All fragments of one kind of a repository, by package key and in order, of packages that have any.

    Takes 2 us for each fragment: call it on a thread, or rarely.
    """
    rows = r.all(
        """
        SELECT p.key, f.sort, f.key, f.body FROM package p JOIN fragment f ON f.package_id = p.id AND f.kind = ?
        WHERE p.repository_id = ? ORDER BY p.key, f.sort, f.key
        """,
        (kind, repository_id),
    )
    return [(key, [Fragment._make(fields) for _, *fields in some]) for key, some in groupby(rows, key=itemgetter(0))]


@frozen
class ListState:
    """
    The state of a list, which differs whenever the list does.

    It began at ``began_ms`` (Unix milliseconds). ``next_seq`` is the number of the line that will be appended next, the
    first one being 0, and ``removals`` how many lines say that something is gone.
    """

    epoch: int
    began_ms: int
    next_seq: int
    removals: int


def find_list(r: Reader, repository_id: int) -> ListState | None:
    """The state of a repository's list; None if it never had a line."""
    sql = "SELECT epoch, began_at, next_seq, removals FROM appended_list WHERE repository_id = ?"
    return find(r, _state, sql, (repository_id,))


def lines_from(r: Reader, repository_id: int, seq: int, limit: int) -> list[tuple[int, bytes]]:
    """At most ``limit`` lines from the number ``seq`` on, in order, as pairs of number and line."""
    return r.all(
        "SELECT seq, line FROM appended_line WHERE repository_id = ? AND seq >= ? ORDER BY seq LIMIT ?",
        (repository_id, seq, limit),
    )


def append_line(
    tx: Transaction, repository_id: int, package_key: str, line: bytes, *, began_ms: int, removal: bool = False
) -> ListState:
    """
    Append a line, and return the new state; a list without lines begins at ``began_ms``.

    ``removal`` tells that the line says that something is gone.
    """
    state = _count_line(tx, repository_id, removal=removal)
    if state is None:
        _ensure_list(tx, repository_id, began_ms)
        state = _count_line(tx, repository_id, removal=removal)
        assert state is not None
    _add(tx, repository_id, state.next_seq - 1, package_key, line)
    return state


def replace_lines(tx: Transaction, repository_id: int, lines: Iterable[tuple[str, bytes]], began_ms: int) -> None:
    """
    Write a list anew, from pairs of package key and line, none of which says that something is gone.

    It begins at ``began_ms``, or a second after the old list if that is later. Takes 10 us for each line.
    """
    _ensure_list(tx, repository_id, 0)
    tx.send("DELETE FROM appended_line WHERE repository_id = ?", (repository_id,))
    count = 0
    for count, (package_key, line) in enumerate(lines, 1):
        _add(tx, repository_id, count - 1, package_key, line)
    _begin_epoch(tx, repository_id, began_ms, count)


def remove_lines(tx: Transaction, repository_id: int, package_key: str, began_ms: int) -> None:
    """Remove the lines of a package; the list begins anew with the others, as in L{replace_lines}."""
    rows = tx.all("SELECT package_key, line FROM appended_line WHERE repository_id = ? ORDER BY seq", (repository_id,))
    replace_lines(tx, repository_id, [(key, line) for key, line in rows if key != package_key], began_ms)


def _begin_epoch(tx: Transaction, repository_id: int, began_ms: int, lines: int) -> None:
    tx.send(
        """
        UPDATE appended_list
        SET epoch = epoch + 1, began_at = CASE WHEN began_at + 1000 > ? THEN began_at + 1000 ELSE ? END,
            next_seq = ?, removals = 0
        WHERE repository_id = ?
        """,
        (began_ms, began_ms, lines, repository_id),
    )


def _add(tx: Transaction, repository_id: int, seq: int, package_key: str, line: bytes) -> None:
    tx.send(
        "INSERT INTO appended_line (repository_id, seq, package_key, line) VALUES (?, ?, ?, ?)",
        (repository_id, seq, package_key, line),
    )


def _count_line(tx: Transaction, repository_id: int, *, removal: bool) -> ListState | None:
    sql = """
        UPDATE appended_list SET next_seq = next_seq + 1, removals = removals + ? WHERE repository_id = ?
        RETURNING epoch, began_at, next_seq, removals
    """
    return find(tx, _state, sql, (int(removal), repository_id))


def _ensure_list(tx: Transaction, repository_id: int, began_ms: int) -> None:
    tx.send(
        """
        INSERT INTO appended_list (repository_id, epoch, began_at, next_seq, removals) VALUES (?, 1, ?, 0, 0)
        ON CONFLICT (repository_id) DO NOTHING
        """,
        (repository_id, began_ms),
    )


def _state(row: Row) -> ListState:
    return ListState(*row)


def put_superseded(
    tx: Transaction, repository_id: int, documents: Iterable[tuple[str, str, bytes]], now_ms: int
) -> None:
    """Add documents as (key, package key, body), or keep them for another week."""
    for key, package_key, body in documents:
        tx.send(
            """
            INSERT INTO superseded_document (repository_id, key, package_key, body, expires_at) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (repository_id, key) DO UPDATE SET expires_at = excluded.expires_at
            """,
            (repository_id, key, package_key, body, now_ms + SUPERSEDED_MS),
        )
    tx.send(
        """
        DELETE FROM superseded_document WHERE repository_id = ? AND key IN (
            SELECT key FROM superseded_document WHERE repository_id = ? ORDER BY expires_at DESC, key
            LIMIT 1000000 OFFSET ?
        )
        """,
        (repository_id, repository_id, MOST_SUPERSEDED),
    )


def find_superseded(r: Reader, repository_id: int, key: str) -> tuple[str, bytes] | None:
    """The package key and the body of a document, or None."""
    sql = "SELECT package_key, body FROM superseded_document WHERE repository_id = ? AND key = ?"
    return r.one(sql, (repository_id, key))


def remove_expired_superseded(tx: Transaction, now_ms: int, limit: int) -> int:
    """Remove at most ``limit`` documents that are due; returns the number of removed ones."""
    return tx.execute(
        """
        DELETE FROM superseded_document WHERE (repository_id, key) IN (
            SELECT repository_id, key FROM superseded_document WHERE expires_at <= ? ORDER BY expires_at LIMIT ?
        )
        """,
        (now_ms, limit),
    )
