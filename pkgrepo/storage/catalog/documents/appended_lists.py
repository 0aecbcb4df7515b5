"""
Lists of a repository to which lines are only appended, so that a reader who has a part asks for the rest alone.

A list that is written anew, or loses lines, gets a new epoch: parts of two epochs do not fit together.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.storage.catalog.rows import find


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
    state = _ensure_list(tx, repository_id, began_ms)
    _add(tx, repository_id, state.next_seq, package_key, line)
    tx.send(
        "UPDATE appended_list SET next_seq = next_seq + 1, removals = removals + ? WHERE repository_id = ?",
        (int(removal), repository_id),
    )
    return _get(tx, repository_id)


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


def _ensure_list(tx: Transaction, repository_id: int, began_ms: int) -> ListState:
    tx.send(
        """
        INSERT INTO appended_list (repository_id, epoch, began_at, next_seq, removals) VALUES (?, 1, ?, 0, 0)
        ON CONFLICT (repository_id) DO NOTHING
        """,
        (repository_id, began_ms),
    )
    return _get(tx, repository_id)


def _get(r: Reader, repository_id: int) -> ListState:
    state = find_list(r, repository_id)
    assert state is not None
    return state


def _state(row: Row) -> ListState:
    return ListState(*row)
