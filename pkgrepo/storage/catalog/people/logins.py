"""
Sessions of browsers, web logins of clients, and unlocks of blocked logins.

A session ends when it was not used for some time, at a fixed time after the login, when the password changes, or when
its user or an administrator ends it. Only the hash of its secret is stored.

A web login is approved by a user in a browser, and the client then fetches it once. It is identified by the digest of a
secret that only the client has. Its approval is a row of the table ``setting``, and stays there until it expires, also
after it was fetched.

An unlock removes the login block of an account or address. Each process keeps login blocks in memory, and reads the
unlocks that were added since its last look.
"""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.people.users import bump_identity_serial, name_key
from pkgrepo.storage.catalog.rows import dump, every, find, insert, load, number, only_row, rows
from pkgrepo.storage.catalog.server import settings

MOST_SESSIONS = 100  # of one user; a further login ends the one that was not used for the longest time


MAX_ROWS = 100  # a process that misses older rows keeps its blocks until they expire
WEB_LOGIN = "login:"


@frozen
class Session:
    """
    A login in a browser. ``address`` and ``client`` (a User-Agent) are those of the login, ``linked_id`` is its
    provider's, None of a login with a password. ``passkey_id`` is the passkey of the login, None without.
    """

    id: int
    user_id: int
    created_at: datetime
    seen_at: datetime
    address: str
    client: str
    linked_id: int | None
    passkey_id: int | None


_SELECT, _session = rows(Session, "session")


def add_session(
    tx: Transaction,
    *,
    user_id: int,
    hash: bytes,
    address: str,
    client: str,
    now_ms: int,
    linked_id: int | None = None,
    sid: str = "",
    passkey_id: int | None = None,
    before: bytes | None = None,
) -> Session:
    """
    Add a session of a user; ``hash`` is the sha256 of its secret.

    ``linked_id`` is the key of the linked identity of a login at a provider, whose session there is ``sid``;
    ``passkey_id`` that of the passkey of a login with one. The session with the hash ``before``, of whichever user, was
    that of the browser, and ends.
    """
    if before is not None and tx.execute("DELETE FROM session WHERE hash = ?", (before,)):
        bump_identity_serial(tx)
    tx.execute(
        """
        DELETE FROM session WHERE user_id = ? AND id NOT IN
            (SELECT id FROM session WHERE user_id = ? ORDER BY seen_at DESC, id DESC LIMIT ?)
        """,
        (user_id, user_id, MOST_SESSIONS - 1),
    )
    session_id = insert(
        tx,
        "session",
        hash=hash,
        user_id=user_id,
        created_at=now_ms,
        seen_at=now_ms,
        address=address,
        client=client,
        linked_id=linked_id,
        sid=sid,
        passkey_id=passkey_id,
    )
    return _session(only_row(tx, f"{_SELECT} WHERE id = ?", (session_id,)))


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


@frozen
class LoginUnlock:
    """One unlock. ``account`` is the key of a user name; one of ``account`` and ``address`` may be empty."""

    id: int
    account: str
    address: str


def add_unlock(tx: Transaction, *, username: str = "", address: str = "", now_ms: int) -> None:
    """Add an unlock of an account, of an address, or of both, and remove old unlocks."""
    added = insert(tx, "login_unlock", account=name_key(username), address=address, created_at=now_ms)
    tx.execute("DELETE FROM login_unlock WHERE id <= ?", (added - MAX_ROWS,))


def newest_unlock_id(r: Reader) -> int:
    """The id of the newest unlock, or 0."""
    return number(r, "SELECT max(id) FROM login_unlock")


def unlocks_after(r: Reader, id: int) -> list[LoginUnlock]:
    """The unlocks whose id is greater than ``id``, oldest first."""
    sql = "SELECT id, account, address FROM login_unlock WHERE id > ? ORDER BY id"
    return [LoginUnlock(*row) for row in r.all(sql, (id,))]


@frozen
class Approval:
    """The user who approved a login, and when the approval expires. ``fetched``: the client has used the login."""

    user_id: int
    until_ms: int  # milliseconds since the epoch
    fetched: bool


def find_approval(r: Reader, digest: str) -> Approval | None:
    """The approval of a login, or None. It may have expired: the caller checks that."""
    text = settings.get(r, WEB_LOGIN + digest)
    return None if text is None else Approval(**load(text))


def approve_login(tx: Transaction, digest: str, *, user_id: int, until_ms: int, now_ms: int) -> bool:
    """Add the approval of a login; False if it is approved already. Removes all expired approvals."""
    for key, text in tx.all(
        "SELECT key, value FROM setting WHERE key >= ? AND key < ?", (WEB_LOGIN, WEB_LOGIN[:-1] + ";")
    ):
        if load(text)["until_ms"] <= now_ms:
            tx.execute("DELETE FROM setting WHERE key = ?", (key,))
    if find_approval(tx, digest) is not None:
        return False
    settings.put(tx, WEB_LOGIN + digest, dump({"user_id": user_id, "until_ms": until_ms, "fetched": False}))
    return True


def fetch_login(tx: Transaction, digest: str, *, now_ms: int) -> int | None:
    """Use a login up: the catalog key of its user, or None if it is not approved, fetched already, or expired."""
    found = find_approval(tx, digest)
    if found is None or found.fetched or found.until_ms <= now_ms:
        return None
    value = {"user_id": found.user_id, "until_ms": found.until_ms, "fetched": True}
    settings.put(tx, WEB_LOGIN + digest, dump(value))
    return found.user_id
