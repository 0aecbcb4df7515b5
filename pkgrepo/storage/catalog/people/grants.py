"""Groups and their members, and what users and groups were granted in repositories."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from pkgrepo.errors import AlreadyExists, NotFound
from pkgrepo.interfaces import Reader, Row, Transaction
from pkgrepo.model import Action, Grant, Group, SubjectKind, User
from pkgrepo.storage.catalog.columns import at, dump_words, load_actions
from pkgrepo.storage.catalog.rows import every

from .identity import SUBJECT, SUBJECTS, bump_identity_serial, find_user, name_key

_GROUP = "SELECT id, uid, key, name, description, created_at FROM user_group"

_GROUPS_OF_USER = "(SELECT group_id FROM group_member WHERE user_id = ?)"

_GRANT = f"""
    SELECT s.repository_id, s.subject_kind, s.subject_id, s.actions, {SUBJECT} FROM permission s {SUBJECTS}
"""


def find_group(r: Reader, uid_or_name: str) -> Group | None:
    """The group with this public id, or this name in any case, or None."""
    row = r.one(f"{_GROUP} WHERE uid = ?", (uid_or_name,)) or r.one(f"{_GROUP} WHERE key = ?", (name_key(uid_or_name),))
    return _group(row) if row else None


def list_groups(r: Reader, *, after: str = "", limit: int = 50) -> list[Group]:
    """Groups ordered by key, from after the key ``after``."""
    return every(r, _group, f"{_GROUP} WHERE key > ? ORDER BY key LIMIT ?", (after, limit))


def add_group(tx: Transaction, *, name: str, now_ms: int, description: str = "") -> Group:
    """
    Add a group without members.

    :raises AlreadyExists: the name is taken, in whatever case
    """
    if tx.one("SELECT 1 FROM user_group WHERE key = ?", (name_key(name),)) is not None:
        raise AlreadyExists("group", name)
    uid = str(uuid.uuid4())
    tx.execute(
        "INSERT INTO user_group (uid, name, key, description, created_at) VALUES (?, ?, ?, ?, ?)",
        (uid, name, name_key(name), description, now_ms),
    )
    bump_identity_serial(tx)
    row = tx.one(f"{_GROUP} WHERE uid = ?", (uid,))
    assert row is not None
    return _group(row)


def remove_group(tx: Transaction, group_id: int) -> None:
    """
    Remove a group with its grants and its project memberships.

    :raises NotFound: no such group
    """
    tx.execute("DELETE FROM permission WHERE subject_kind = 'group' AND subject_id = ?", (group_id,))
    tx.execute("DELETE FROM project_member WHERE subject_kind = 'group' AND subject_id = ?", (group_id,))
    if not tx.execute("DELETE FROM user_group WHERE id = ?", (group_id,)):
        raise NotFound("group", str(group_id))
    bump_identity_serial(tx)


def add_group_member(tx: Transaction, group_id: int, user_id: int) -> None:
    """Put a user into a group; being in it already is fine."""
    tx.execute("INSERT INTO group_member (group_id, user_id) VALUES (?, ?) ON CONFLICT DO NOTHING", (group_id, user_id))
    bump_identity_serial(tx)


def remove_group_member(tx: Transaction, group_id: int, user_id: int) -> None:
    """Take a user out of a group; not being in it is fine."""
    tx.execute("DELETE FROM group_member WHERE group_id = ? AND user_id = ?", (group_id, user_id))
    bump_identity_serial(tx)


def list_group_members(r: Reader, group_id: int, *, after: int = 0, limit: int = 50) -> list[User]:
    """A group's users ordered by id, from after the id ``after``."""
    rows = r.all(
        "SELECT user_id FROM group_member WHERE group_id = ? AND user_id > ? ORDER BY user_id LIMIT ?",
        (group_id, after, limit),
    )
    return [user for (user_id,) in rows if (user := find_user(r, user_id)) is not None]


def groups_of_user(r: Reader, user_id: int) -> list[Group]:
    """The groups that a user is in, by key."""
    return every(r, _group, f"{_GROUP} WHERE id IN {_GROUPS_OF_USER} ORDER BY key", (user_id,))


def set_permission(
    tx: Transaction, repository_id: int, kind: SubjectKind, subject_id: int, actions: Iterable[Action] | None
) -> None:
    """Grant exactly these actions; none at all refuse everything, and ``None`` takes the grant back."""
    if actions is None:
        tx.execute(
            "DELETE FROM permission WHERE repository_id = ? AND subject_kind = ? AND subject_id = ?",
            (repository_id, kind, subject_id),
        )
    else:
        tx.execute(
            """
            INSERT INTO permission (repository_id, subject_kind, subject_id, actions) VALUES (?, ?, ?, ?)
            ON CONFLICT (repository_id, subject_kind, subject_id) DO UPDATE SET actions = excluded.actions
            """,
            (repository_id, kind, subject_id, dump_words(actions)),
        )
    bump_identity_serial(tx)


def permissions_of_user(r: Reader, user_id: int) -> list[Grant]:
    """Every grant that concerns a user: their own, and those of the groups that they are in."""
    own = every(r, _grant, f"{_GRANT} WHERE s.subject_kind = 'user' AND s.subject_id = ?", (user_id,))
    sql = f"{_GRANT} WHERE s.subject_kind = 'group' AND s.subject_id IN {_GROUPS_OF_USER}"
    return own + every(r, _grant, sql, (user_id,))


def permissions_of_repository(r: Reader, repository_id: int) -> list[Grant]:
    """Every grant in a repository, users before groups."""
    return every(
        r, _grant, f"{_GRANT} WHERE s.repository_id = ? ORDER BY s.subject_kind DESC, s.subject_id", (repository_id,)
    )


def _group(row: Row) -> Group:
    return Group(id=row[0], uid=row[1], key=row[2], name=row[3], description=row[4], created_at=at(row[5]))


def _grant(row: Row) -> Grant:
    return Grant(
        repository_id=row[0],
        subject_kind=SubjectKind(row[1]),
        subject_id=row[2],
        actions=load_actions(row[3]),
        subject_uid=row[4],
        subject_name=row[5],
    )
