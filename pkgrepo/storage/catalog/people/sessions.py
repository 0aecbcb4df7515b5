"""
Browser sessions. Only the hash of a session's secret is stored.

A session ends when it was not used for some time, at a fixed time after the login, when the password changes, or when
its user or somebody for them ends it.
"""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.storage.catalog.rows import at, every, find

from .users import bump_identity_serial

MOST_SESSIONS = 100  # of one user; a further login ends the one that was not used for the longest time

_SELECT = "SELECT id, user_id, created_at, seen_at, address, client FROM session"


@frozen
class Session:
    """A login in a browser. ``address`` and ``client`` (a User-Agent) are those of the login."""

    id: int
    user_id: int
    created_at: datetime
    seen_at: datetime
    address: str
    client: str


def add_session(tx: Transaction, *, user_id: int, hash: bytes, address: str, client: str, now_ms: int) -> Session:
    """Add a session of a user; ``hash`` is the sha256 of its secret."""
    tx.execute(
        """
        DELETE FROM session WHERE user_id = ? AND id NOT IN
            (SELECT id FROM session WHERE user_id = ? ORDER BY seen_at DESC, id DESC LIMIT ?)
        """,
        (user_id, user_id, MOST_SESSIONS - 1),
    )
    session_id = tx.insert(
        """
        INSERT INTO session (hash, user_id, created_at, seen_at, address, client)
        VALUES (?, ?, ?, ?, ?, ?) RETURNING id
        """,
        (hash, user_id, now_ms, now_ms, address, client),
    )
    found = find(tx, _session, f"{_SELECT} WHERE id = ?", (session_id,))
    assert found is not None
    return found


def find_session(r: Reader, hash: bytes) -> Session | None:
    """The session whose secret has this hash, or None. It may have ended by age."""
    return find(r, _session, f"{_SELECT} WHERE hash = ?", (hash,))


def list_sessions(r: Reader, user_id: int) -> list[Session]:
    """The sessions of a user, the one that was used last first."""
    return every(r, _session, f"{_SELECT} WHERE user_id = ? ORDER BY seen_at DESC, id DESC", (user_id,))


def note_session_use(tx: Transaction, session_id: int, *, now_ms: int) -> None:
    """Record that a session was used now."""
    tx.execute("UPDATE session SET seen_at = ? WHERE id = ?", (now_ms, session_id))


def end_session(tx: Transaction, user_id: int, session_id: int) -> None:
    """End a session of a user; takes effect at once. :raises NotFound: the user has no such session"""
    if not tx.execute("DELETE FROM session WHERE id = ? AND user_id = ?", (session_id, user_id)):
        raise NotFound("session", str(session_id))
    bump_identity_serial(tx)


def end_other_sessions(tx: Transaction, user_id: int, kept_id: int | None) -> int:
    """End all sessions of a user but one; takes effect at once. Returns their number."""
    ended = tx.execute("DELETE FROM session WHERE user_id = ? AND id <> ?", (user_id, kept_id or 0))
    bump_identity_serial(tx)
    return ended


def remove_old_sessions(tx: Transaction, *, idle_since_ms: int, begun_before_ms: int) -> None:
    """Remove the sessions that ended by age."""
    tx.execute("DELETE FROM session WHERE seen_at < ? OR created_at < ?", (idle_since_ms, begun_before_ms))


def _session(row: Row) -> Session:
    id_, user_id, created_at, seen_at, address, client = row
    return Session(id_, user_id, at(created_at), at(seen_at), address, client)
