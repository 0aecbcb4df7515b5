"""
Users, and the serial by which every process notices that who may do what has changed.

Each command that could change the outcome of a login or of a permission check bumps the serial in its own
transaction; caches of identities and decisions live until it moves.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TypedDict, Unpack

from attrs import evolve

from pkgrepo.errors import AlreadyExists, Conflict, NotFound
from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.model import Action, TokenKind, User, UserKind
from pkgrepo.storage.catalog.columns import LIKE, at, at_or_none, dump_words, like, load_actions
from pkgrepo.storage.catalog.rows import every, exists, find, number
from pkgrepo.storage.catalog.server import settings

SERIAL = "identity_serial"

_USER = """
    SELECT id, uid, username, key, name, email, kind, active, admin, user_manager, system_manager, default_actions,
           generation, created_at, updated_at, last_login_at
    FROM account
"""

_FOUND = f"key {LIKE} OR name {LIKE} OR email {LIKE}"

# Of a row ``s`` that names a user or a group: the public id and the name, and where they are from.
SUBJECT = "COALESCE(a.uid, g.uid, ''), COALESCE(a.username, g.name, '')"
SUBJECTS = """
    LEFT JOIN account a ON s.subject_kind = 'user' AND a.id = s.subject_id
    LEFT JOIN user_group g ON s.subject_kind = 'group' AND g.id = s.subject_id
"""


class UserChanges(TypedDict, total=False):
    """What ``update_user`` can change."""

    username: str
    name: str
    email: str
    active: bool
    admin: bool
    user_manager: bool
    system_manager: bool
    default_actions: frozenset[Action]


def identity_serial(r: Reader) -> int:
    """A number that grows with every change of users, groups, grants, tokens and projects."""
    return int(settings.get(r, SERIAL) or 0)


def bump_identity_serial(tx: Transaction) -> None:
    """Let every process forget the identities and decisions that it remembers."""
    settings.grow(tx, SERIAL)


def name_key(name: str) -> str:
    """The spelling under which names of users, groups and projects are unique."""
    return name.strip().casefold()


def find_user(r: Reader, user_id: int) -> User | None:
    """The user with this catalog key, or None."""
    return find(r, _user, f"{_USER} WHERE id = ?", (user_id,))


def find_user_by_name(r: Reader, username: str) -> User | None:
    """The user with this name in any case, or None."""
    return find(r, _user, f"{_USER} WHERE key = ?", (name_key(username),))


def find_user_by_uid(r: Reader, uid: str) -> User | None:
    """The user with this public id, or None."""
    return find(r, _user, f"{_USER} WHERE uid = ?", (uid,))


def get_user(r: Reader, user_id: int) -> User:
    """
    The user with this catalog key.

    :raises NotFound: there is none
    """
    user = find_user(r, user_id)
    if user is None:
        raise NotFound("user", str(user_id))
    return user


def has_users(r: Reader) -> bool:
    """Whether anybody was ever added and is still there."""
    return exists(r, "SELECT 1 FROM account LIMIT 1")


def list_users(r: Reader, *, after: str = "", limit: int = 50, search: str = "") -> list[User]:
    """Users ordered by key, from after the key ``after``; ``search`` is looked for in user name, name and email."""
    found = f"AND ({_FOUND})" if search else ""
    return every(r, _user, f"{_USER} WHERE key > ? {found} ORDER BY key LIMIT ?", (after, *_searched(search), limit))


def count_users(r: Reader, search: str = "") -> int:
    """How many users ``list_users`` goes through."""
    found = f"WHERE {_FOUND}" if search else ""
    return number(r, f"SELECT COUNT(*) FROM account {found}", _searched(search))


def password_hash(r: Reader, user_id: int) -> str:
    """The stored password hash; empty when there is no such user or they have no password."""
    row = r.one("SELECT password_hash FROM account WHERE id = ?", (user_id,))
    return str(row[0]) if row else ""


def add_user(
    tx: Transaction,
    *,
    username: str,
    now_ms: int,
    password_hash: str = "",
    name: str = "",
    email: str = "",
    kind: UserKind = UserKind.PERSON,
    active: bool = True,
    admin: bool = False,
    user_manager: bool = False,
    system_manager: bool = False,
    default_actions: Iterable[Action] = (),
) -> User:
    """
    Add a user; an empty ``password_hash`` means that no password logs in.

    :raises AlreadyExists: the name is taken, in whatever case
    """
    if find_user_by_name(tx, username) is not None:
        raise AlreadyExists("user", username)
    user_id = tx.insert(
        """
        INSERT INTO account (uid, username, key, name, email, password_hash, kind, active, admin, user_manager,
                             system_manager, default_actions, created_at, updated_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id
        """,
        (
            str(uuid.uuid4()),
            username,
            name_key(username),
            name,
            email,
            password_hash,
            kind,
            int(active),
            int(admin),
            int(user_manager),
            int(system_manager),
            dump_words(default_actions),
            now_ms,
            now_ms,
        ),
    )
    bump_identity_serial(tx)
    return get_user(tx, user_id)


def update_user(tx: Transaction, user_id: int, *, now_ms: int, **changes: Unpack[UserChanges]) -> User:
    """
    Change the named fields; a change of standing also ends what was issued to the user before.

    :raises NotFound: no such user; :raises AlreadyExists: the new name is taken
    :raises Conflict: the last active admin would cease to be one
    """
    before = get_user(tx, user_id)
    after = evolve(before, **changes)
    after = evolve(after, key=name_key(after.username))
    if after.key != before.key and find_user_by_name(tx, after.username) is not None:
        raise AlreadyExists("user", after.username)
    if not (after.active and after.admin):
        _keep_an_admin(tx, before)
    tx.execute(
        """
        UPDATE account
        SET username = ?, key = ?, name = ?, email = ?, active = ?, admin = ?, user_manager = ?, system_manager = ?,
            default_actions = ?, updated_at = ?
        WHERE id = ?
        """,
        (
            after.username,
            after.key,
            after.name,
            after.email,
            int(after.active),
            int(after.admin),
            int(after.user_manager),
            int(after.system_manager),
            dump_words(after.default_actions),
            now_ms,
            user_id,
        ),
    )
    if _standing(after) != _standing(before):
        bump_generation(tx, user_id)
    bump_identity_serial(tx)
    return get_user(tx, user_id)


def set_password(tx: Transaction, user_id: int, password_hash: str, *, now_ms: int) -> None:
    """
    Set the password hash (empty: no password) and end what was issued before, logins too; access tokens live on.

    :raises NotFound: no such user
    """
    changed = tx.execute(
        "UPDATE account SET password_hash = ?, updated_at = ? WHERE id = ?", (password_hash, now_ms, user_id)
    )
    if not changed:
        raise NotFound("user", str(user_id))
    # a login stands for the password that it was given for, on whichever machine that was
    tx.execute(
        "UPDATE token SET revoked_at = ? WHERE user_id = ? AND kind = ? AND revoked_at IS NULL",
        (now_ms, user_id, TokenKind.LOGIN.value),
    )
    bump_generation(tx, user_id)


def bump_generation(tx: Transaction, user_id: int) -> None:
    """Make the short-lived tokens that were issued to the user before invalid at once."""
    tx.execute("UPDATE account SET generation = generation + 1 WHERE id = ?", (user_id,))
    bump_identity_serial(tx)


def record_login(tx: Transaction, user_id: int, *, now_ms: int, rehashed: tuple[str, str] | None = None) -> None:
    """
    Note a login by password.

    ``rehashed`` is the hash that was checked and the same password hashed with today's parameters; it is stored
    unless the password was changed meanwhile. Nothing that is cached becomes invalid.
    """
    tx.execute("UPDATE account SET last_login_at = ? WHERE id = ?", (now_ms, user_id))
    if rehashed is not None:
        old, new = rehashed
        tx.execute("UPDATE account SET password_hash = ? WHERE id = ? AND password_hash = ?", (new, user_id, old))


def remove_user(tx: Transaction, user_id: int) -> None:
    """
    Remove the user with tokens, grants and memberships; events and audit lines keep the name.

    :raises NotFound: no such user; :raises Conflict: it is the last active admin
    """
    user = get_user(tx, user_id)
    _keep_an_admin(tx, user)
    tx.execute("DELETE FROM permission WHERE subject_kind = 'user' AND subject_id = ?", (user_id,))
    tx.execute("DELETE FROM project_member WHERE subject_kind = 'user' AND subject_id = ?", (user_id,))
    tx.execute("DELETE FROM account WHERE id = ?", (user_id,))
    bump_identity_serial(tx)


def _keep_an_admin(tx: Transaction, leaving: User) -> None:
    if not (leaving.active and leaving.admin):
        return
    other = tx.one("SELECT 1 FROM account WHERE admin = 1 AND active = 1 AND id <> ? LIMIT 1", (leaving.id,))
    if other is None:
        raise Conflict(f"{leaving.username} is the last active admin; make somebody else admin first")


def _searched(search: str) -> list[str]:
    """The parameters of ``_FOUND``."""
    return [like(name_key(search))] * 3 if search else []


def _standing(user: User) -> tuple[bool, ...]:
    return user.active, user.admin, user.user_manager, user.system_manager


def _user(row: Row) -> User:
    return User(
        id=row[0],
        uid=row[1],
        username=row[2],
        key=row[3],
        name=row[4],
        email=row[5],
        kind=UserKind(row[6]),
        active=bool(row[7]),
        admin=bool(row[8]),
        user_manager=bool(row[9]),
        system_manager=bool(row[10]),
        default_actions=load_actions(row[11]),
        generation=row[12],
        created_at=at(row[13]),
        updated_at=at(row[14]),
        last_login_at=at_or_none(row[15]),
    )
