"""
Users and their passwords, what users and groups may do in repositories, and the identity serial.

Every command that can change the result of a login or of a permission check increments the identity serial in its own
transaction. Each process caches identities and permission decisions until the serial changes.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict, Unpack, cast

from attrs import evolve

from pkgrepo.errors import AlreadyExists, Conflict, NotFound, existing
from pkgrepo.interfaces import ICatalog, Reader, Transaction, Value
from pkgrepo.model import Action, Owner, SubjectKind, TokenKind, User, UserKind
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.rows import (
    LIKE,
    every,
    exists,
    find,
    insert,
    like,
    non_null,
    number,
    optional_conditions,
    rows,
    scalar,
    to_ms,
    update,
)
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.server.quotas import QuotaKind, remove_limits
from pkgrepo.storage.catalog.snapshot import Snapshot

IDENTITY_SERIAL = "identity_serial"  # the setting that holds the serial


def _owner(kind: str | None, subject_id: int, person: str | None, group: str | None) -> Owner | None:
    uid, _, name = (person or group or "").partition(" ")
    return None if kind is None else Owner(SubjectKind(kind), subject_id, uid, name)


_OWNER_IS = "account.owner_kind ="
_USER, _user = rows(
    User,
    "account",
    mfa="(SELECT COUNT(*) FROM second_factor f WHERE f.account_id = account.id AND f.confirmed_at IS NOT NULL)",
    owner=(
        "owner_kind",
        "owner_id",
        f"(SELECT p.uid || ' ' || p.username FROM account p WHERE {_OWNER_IS} 'user' AND p.id = account.owner_id)",
        f"(SELECT g.uid || ' ' || g.name FROM user_group g WHERE {_OWNER_IS} 'group' AND g.id = account.owner_id)",
        _owner,
    ),
)

_FILTERS = (
    f"(key {LIKE} OR name {LIKE} OR email {LIKE})",
    "kind = ?",
    "id IN (SELECT user_id FROM group_member WHERE group_id = ?)",
    "COALESCE(last_login_at, created_at) < ?",
)

USER_ORDERS: Final[Mapping[str, Order[User]]] = both_ways(
    {
        "username": [("key", str, lambda each: each.key)],
        "name": [("name", str, lambda each: each.name), ("key", str, lambda each: each.key)],
        "created_at": [("created_at", int, lambda each: to_ms(each.created_at)), ("key", str, lambda each: each.key)],
        "last_login_at": [
            ("COALESCE(last_login_at, 0)", int, lambda each: to_ms(each.last_login_at) if each.last_login_at else 0),
            ("key", str, lambda each: each.key),
        ],
    }
)


GROUPS_OF_USER = "(SELECT group_id FROM group_member WHERE user_id = ?)"
_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


class _Fields(TypedDict, total=False):
    username: str
    name: str
    email: str
    active: bool
    admin: bool
    user_manager: bool
    system_manager: bool
    default_actions: frozenset[Action]


class UserChanges(_Fields, total=False):
    """What ``update_user`` can change."""

    owner: Owner | None


class _Columns(_Fields, total=False):
    owner_kind: str | None
    owner_id: int | None


def identity_serial(r: Reader) -> int:
    """A number that increases with every change of users, groups, grants, tokens and projects."""
    return int(settings.get(r, IDENTITY_SERIAL) or 0)


def identity_snapshot(catalog: ICatalog) -> Snapshot[int]:
    """The identity serial of a catalog in memory, read again after each commit; all who need it share one."""
    return Snapshot(catalog, lambda reader, _: identity_serial(reader), 0)


def bump_identity_serial(tx: Transaction) -> None:
    """Increment the serial, which invalidates the cached identities and decisions of every process."""
    settings.increment(tx, IDENTITY_SERIAL)


def name_key(name: str) -> str:
    """The key of a user, group or project name: two names with the same key cannot exist."""
    return ascii_lower(name.strip(" "))


def ascii_lower(text: str) -> str:
    """A text with the letters A to Z in lower case. Others stay: some look like letters and would become these."""
    return text.translate(_LOWER)


def find_user(r: Reader, user_id: int) -> User | None:
    """The user with this catalog key, or None."""
    return find(r, _user, f"{_USER} WHERE id = ?", (user_id,))


def find_user_by_name(r: Reader, username: str) -> User | None:
    """The user with this name (case does not matter), or None."""
    return find(r, _user, f"{_USER} WHERE key = ?", (name_key(username),))


def find_user_by_uid(r: Reader, uid: str) -> User | None:
    """The user with this public id, or None."""
    return find(r, _user, f"{_USER} WHERE uid = ?", (uid,))


def find_user_by_id(r: Reader, uid_or_name: str) -> User | None:
    """The user with this public id or this name (case does not matter), or None."""
    return find_user_by_uid(r, uid_or_name) or find_user_by_name(r, uid_or_name)


def usernames(r: Reader, user_ids: Sequence[int]) -> dict[int, str]:
    """The names of users by their catalog keys."""
    found = {each: find_user(r, each) for each in set(user_ids)}
    return {user_id: user.username for user_id, user in found.items() if user is not None}


def get_user(r: Reader, user_id: int) -> User:
    """
    The user with this catalog key.

    :raises NotFound: there is none
    """
    return existing(find_user(r, user_id), "user", str(user_id))


def has_users(r: Reader) -> bool:
    """Whether there is any user."""
    return exists(r, "SELECT 1 FROM account LIMIT 1")


def list_users(
    r: Reader,
    *,
    after: Sequence[Value] = (),
    limit: int = 50,
    search: str = "",
    kind: UserKind | None = None,
    group_id: int | None = None,
    absent_since_ms: int | None = None,
    order: str = "username",
) -> list[User]:
    """
    A page of users in one of the ``USER_ORDERS``, beginning after the position of the last one of the page before.

    ``search`` selects users whose user name, name or email contains it (case does not matter), ``group_id`` the members
    of a group, ``absent_since_ms`` those who were neither made nor logged in since then.
    """
    sorting = USER_ORDERS[order]
    beyond = f"AND {sorting.beyond}" if after else ""
    values = (like(name_key(search)) if search else None, kind, group_id, absent_since_ms)
    sql = f"{_USER} WHERE {optional_conditions(_FILTERS, values)} {beyond} ORDER BY {sorting.by} LIMIT ?"
    return every(r, _user, sql, (*_parameters(values), *after, limit))


def count_users(r: Reader, search: str = "", kind: UserKind | None = None, absent_since_ms: int | None = None) -> int:
    """The number of users on all pages of ``list_users``."""
    values = (like(name_key(search)) if search else None, kind, None, absent_since_ms)
    sql = f"SELECT COUNT(*) FROM account WHERE {optional_conditions(_FILTERS, values)}"
    return number(r, sql, _parameters(values))


def services_of(r: Reader, user_id: int, *, limit: int = 1000) -> list[User]:
    """The service accounts that a user owns, alone or as a member of a group, by name."""
    sql = f"""{_USER} WHERE (owner_kind = 'user' AND owner_id = ?)
        OR (owner_kind = 'group' AND owner_id IN {GROUPS_OF_USER}) ORDER BY key LIMIT ?"""
    return every(r, _user, sql, (user_id, user_id, limit))


def owned_by(r: Reader, owner: Owner, *, limit: int = 1000) -> list[User]:
    """The service accounts of an owner, by name."""
    sql = f"{_USER} WHERE owner_kind = ? AND owner_id = ? ORDER BY key LIMIT ?"
    return every(r, _user, sql, (owner.kind, owner.subject_id, limit))


def check_owns_nothing(r: Reader, owner: Owner, what: str) -> None:
    """Check that an owner can be removed. :raises Conflict: service accounts would be without an owner"""
    owned = [each.username for each in owned_by(r, owner, limit=5)]
    if owned:
        raise Conflict(f"{what} owns the service accounts {', '.join(owned)}: give them another owner, or remove them")


def password_hash(r: Reader, user_id: int) -> str:
    """The stored password hash of a user; empty if there is no such user, or no password."""
    return scalar(r, "SELECT password_hash FROM account WHERE id = ?", (user_id,)) or ""


def add_user(
    tx: Transaction,
    *,
    now_ms: int,
    password_hash: str = "",
    kind: UserKind = UserKind.PERSON,
    **values: Unpack[UserChanges],
) -> User:
    """
    Add a user; a username is required. With an empty ``password_hash`` the user cannot log in with a password.

    :raises AlreadyExists: a user has this name (case does not matter)
    """
    username = values["username"]
    if find_user_by_name(tx, username) is not None:
        raise AlreadyExists("user", username)
    user_id = insert(
        tx,
        "account",
        uid=str(uuid.uuid4()),
        key=name_key(username),
        password_hash=password_hash,
        kind=kind,
        created_at=now_ms,
        updated_at=now_ms,
        **_columns(values),
    )
    bump_identity_serial(tx)
    return get_user(tx, user_id)


def update_user(tx: Transaction, user_id: int, *, now_ms: int, **changes: Unpack[UserChanges]) -> User:
    """
    Change the given fields.

    A change of ``active`` or of a privilege also invalidates the short-lived tokens issued to the user before. Browser
    sessions end when the user is switched off: they must not come back when the user does.

    :raises NotFound: no such user; :raises AlreadyExists: the new name is taken
    :raises Conflict: no active admin would remain
    """
    before = get_user(tx, user_id)
    after = evolve(before, **changes)
    after = evolve(after, key=name_key(after.username))
    if after.key != before.key and find_user_by_name(tx, after.username) is not None:
        raise AlreadyExists("user", after.username)
    if not (after.active and after.admin):
        _check_other_admin(tx, before)
    update(tx, "account", user_id, **{**_columns(changes), "key": after.key, "updated_at": now_ms})
    if _privileges(after) != _privileges(before):
        bump_generation(tx, user_id)
    if not after.active:
        tx.execute("DELETE FROM session WHERE user_id = ?", (user_id,))
    bump_identity_serial(tx)
    return get_user(tx, user_id)


def set_password(tx: Transaction, user_id: int, password_hash: str, *, now_ms: int) -> None:
    """
    Set the password hash (empty: no password).

    The user's login tokens are revoked, browser sessions end, short-lived tokens and a one-time link become invalid.
    Access tokens stay valid.

    :raises NotFound: no such user
    """
    changed = tx.execute(
        "UPDATE account SET password_hash = ?, updated_at = ? WHERE id = ?", (password_hash, now_ms, user_id)
    )
    if not changed:
        raise NotFound("user", str(user_id))
    tx.execute("DELETE FROM one_time_link WHERE user_id = ?", (user_id,))
    end_logins(tx, user_id, now_ms=now_ms)


def end_logins(tx: Transaction, user_id: int, *, now_ms: int) -> None:
    """End what was issued for a password: login tokens, browser sessions and short-lived tokens."""
    # a login token was issued for the old password, so it must not outlive it on any machine
    tx.execute(
        "UPDATE token SET revoked_at = ? WHERE user_id = ? AND kind = ? AND revoked_at IS NULL",
        (now_ms, user_id, TokenKind.LOGIN.value),
    )
    tx.execute("DELETE FROM session WHERE user_id = ?", (user_id,))
    bump_generation(tx, user_id)


def bump_generation(tx: Transaction, user_id: int) -> None:
    """Invalidate the short-lived tokens that were issued to the user before; takes effect at once."""
    tx.execute("UPDATE account SET generation = generation + 1 WHERE id = ?", (user_id,))
    bump_identity_serial(tx)


def record_login(tx: Transaction, user_id: int, *, now_ms: int, rehashed: tuple[str, str] | None = None) -> None:
    """
    Store the time of a login with a password. The identity serial stays, so caches stay valid.

    ``rehashed`` holds the hash that was verified, and a hash of the same password with the current parameters. The
    second replaces the first, unless the password was changed in between.
    """
    tx.execute("UPDATE account SET last_login_at = ? WHERE id = ?", (now_ms, user_id))
    if rehashed is not None:
        old, new = rehashed
        tx.execute("UPDATE account SET password_hash = ? WHERE id = ? AND password_hash = ?", (new, user_id, old))


def remove_user(tx: Transaction, user_id: int) -> None:
    """
    Remove a user with the user's tokens, grants and memberships. Events and audit entries keep the user name.

    :raises NotFound: no such user
    :raises Conflict: it is the last active admin, or owns service accounts
    """
    user = get_user(tx, user_id)
    _check_other_admin(tx, user)
    check_owns_nothing(tx, Owner(SubjectKind.USER, user_id), user.username)
    tx.execute("DELETE FROM permission WHERE subject_kind = 'user' AND subject_id = ?", (user_id,))
    tx.execute("DELETE FROM permission_pattern WHERE subject_kind = 'user' AND subject_id = ?", (user_id,))
    tx.execute("DELETE FROM project_member WHERE subject_kind = 'user' AND subject_id = ?", (user_id,))
    tx.execute("DELETE FROM account WHERE id = ?", (user_id,))
    remove_limits(tx, QuotaKind.USER, user_id)
    bump_identity_serial(tx)


def _check_other_admin(tx: Transaction, leaving: User) -> None:
    if not (leaving.active and leaving.admin):
        return
    other = tx.one("SELECT 1 FROM account WHERE admin = 1 AND active = 1 AND id <> ? LIMIT 1", (leaving.id,))
    if other is None:
        raise Conflict(f"{leaving.username} is the last active admin; make somebody else admin first")


def _columns(values: UserChanges) -> _Columns:
    """The values by column; an owner has two."""
    columns: Any = {**values}
    if "owner" in values:
        owner = columns.pop("owner")
        columns["owner_kind"], columns["owner_id"] = (owner.kind, owner.subject_id) if owner else (None, None)
    return cast("_Columns", columns)


def _parameters(values: Sequence[Value]) -> list[Value]:
    """The parameters of the ``_FILTERS`` with these values; that of the search is needed three times."""
    return non_null((values[0], values[0], *values))


def _privileges(user: User) -> tuple[bool, ...]:
    return user.active, user.admin, user.user_manager, user.system_manager
