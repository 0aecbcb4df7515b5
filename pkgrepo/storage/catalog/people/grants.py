"""Groups of users, and the actions that users and groups may perform in a repository (table ``permission``)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from pkgrepo.errors import AlreadyExists
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Action, Grant, Group, SubjectKind
from pkgrepo.storage.catalog.rows import dump_words, every, rows

from .users import SUBJECT_JOINS, SUBJECT_NAME, SUBJECT_UID, bump_identity_serial, name_key

_GROUP, _group = rows(Group, "user_group")

_GROUPS_OF_USER = "(SELECT group_id FROM group_member WHERE user_id = ?)"

_GRANT, _grant = rows(
    Grant, f"permission s {SUBJECT_JOINS}", of="s", subject_uid=SUBJECT_UID, subject_name=SUBJECT_NAME
)


def find_group(r: Reader, uid_or_name: str) -> Group | None:
    """The group with this public id or this name (case does not matter), or None."""
    row = r.one(f"{_GROUP} WHERE uid = ?", (uid_or_name,)) or r.one(f"{_GROUP} WHERE key = ?", (name_key(uid_or_name),))
    return _group(row) if row else None


def add_group(tx: Transaction, *, name: str, now_ms: int, description: str = "") -> Group:
    """
    Add a group without members.

    :raises AlreadyExists: a group has this name (case does not matter)
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


def add_group_member(tx: Transaction, group_id: int, user_id: int) -> None:
    """Add a user to a group; does nothing if the user is a member already."""
    tx.execute("INSERT INTO group_member (group_id, user_id) VALUES (?, ?) ON CONFLICT DO NOTHING", (group_id, user_id))
    bump_identity_serial(tx)


def set_permission(
    tx: Transaction, repository_id: int, kind: SubjectKind, subject_id: int, actions: Iterable[Action] | None
) -> None:
    """
    Set the actions that a user or group may perform in a repository.

    They replace the previous ones. An empty set refuses every action; ``None`` removes the grant.
    """
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
    """The grants of a user, then those of the groups that the user is a member of."""
    own = every(r, _grant, f"{_GRANT} WHERE s.subject_kind = 'user' AND s.subject_id = ?", (user_id,))
    sql = f"{_GRANT} WHERE s.subject_kind = 'group' AND s.subject_id IN {_GROUPS_OF_USER}"
    return own + every(r, _grant, sql, (user_id,))
