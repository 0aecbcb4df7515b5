"""Groups of users, and their members."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Final, TypedDict, Unpack

from attrs import define, evolve

from pkgrepo.errors import AlreadyExists, NotFound, existing
from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import Grant, Group, Owner, SubjectKind
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.rows import LIKE, column, every, exists, find, insert, like, number, rows, to_ms, update

from .grants import grants_of
from .users import bump_identity_serial, check_owns_nothing, get_user, name_key

_GROUP, _group = rows(Group, "user_group")
_SEARCH = f"key {LIKE} OR description {LIKE}"

GROUP_ORDERS: Final[Mapping[str, Order[Group]]] = both_ways(
    {
        "name": [("key", str, lambda each: each.key)],
        "created_at": [("created_at", int, lambda each: to_ms(each.created_at)), ("key", str, lambda each: each.key)],
    }
)


@define
class NotInGroup(NotFound):
    """A user is no member of a group: ``what`` is the name of the user, ``name`` that of the group."""

    def __str__(self) -> str:
        return f"{self.what} is not in {self.name}"


class GroupChanges(TypedDict, total=False):
    """What ``update_group`` can change."""

    name: str
    description: str


def find_group(r: Reader, uid_or_name: str) -> Group | None:
    """The group with this public id or this name (case does not matter), or None."""
    by_uid = find(r, _group, f"{_GROUP} WHERE uid = ?", (uid_or_name,))
    return by_uid or find(r, _group, f"{_GROUP} WHERE key = ?", (name_key(uid_or_name),))


def get_group(r: Reader, group_id: int) -> Group:
    """The group with this catalog key. :raises NotFound: there is none"""
    return existing(find(r, _group, f"{_GROUP} WHERE id = ?", (group_id,)), "group", str(group_id))


def list_groups(
    r: Reader, *, after: Sequence[Value] = (), limit: int = 50, search: str = "", order: str = "name"
) -> list[Group]:
    """A page of groups in one of the ``GROUP_ORDERS``; ``search`` is a part of the name or the description."""
    sorting = GROUP_ORDERS[order]
    beyond = f"AND {sorting.beyond}" if after else ""
    matching = f"AND ({_SEARCH})" if search else ""
    values = [like(name_key(search)), like(search)] if search else []
    sql = f"{_GROUP} WHERE 1 = 1 {matching} {beyond} ORDER BY {sorting.by} LIMIT ?"
    return every(r, _group, sql, (*values, *after, limit))


def count_groups(r: Reader, search: str = "") -> int:
    """The number of groups on all pages of ``list_groups``."""
    values = [like(name_key(search)), like(search)] if search else []
    return number(r, f"SELECT COUNT(*) FROM user_group {f'WHERE {_SEARCH}' if search else ''}", values)


def is_member(r: Reader, group_id: int, user_id: int) -> bool:
    """Whether a user is in a group."""
    return exists(r, "SELECT 1 FROM group_member WHERE group_id = ? AND user_id = ?", (group_id, user_id))


def member_ids(r: Reader, group_id: int, *, limit: int) -> list[int]:
    """The catalog keys of at most ``limit`` members."""
    return column(r, "SELECT user_id FROM group_member WHERE group_id = ? ORDER BY user_id LIMIT ?", (group_id, limit))


def count_members(r: Reader, group_id: int) -> int:
    """The number of members of a group."""
    return number(r, "SELECT COUNT(*) FROM group_member WHERE group_id = ?", (group_id,))


def grants_of_group(r: Reader, group_id: int) -> list[Grant]:
    """The grants of a group."""
    return grants_of(r, SubjectKind.GROUP, group_id)


def add_group(tx: Transaction, *, name: str, now_ms: int, description: str = "") -> Group:
    """
    Add a group without members.

    :raises AlreadyExists: a group has this name (case does not matter)
    """
    _check_free(tx, name)
    group_id = insert(
        tx,
        "user_group",
        uid=str(uuid.uuid4()),
        name=name,
        key=name_key(name),
        description=description,
        created_at=now_ms,
    )
    bump_identity_serial(tx)
    return get_group(tx, group_id)


def update_group(tx: Transaction, group_id: int, **changes: Unpack[GroupChanges]) -> Group:
    """Change the given fields. :raises NotFound: no such group; :raises AlreadyExists: the new name is taken"""
    before = get_group(tx, group_id)
    after = evolve(before, **changes)
    key = name_key(after.name)
    if key != before.key:
        _check_free(tx, after.name)
    update(tx, "user_group", group_id, **{**changes, "key": key})
    bump_identity_serial(tx)
    return get_group(tx, group_id)


def remove_group(tx: Transaction, group_id: int) -> None:
    """
    Remove a group with its memberships, grants and roles.

    :raises NotFound: no such group; :raises Conflict: it owns service accounts
    """
    group = get_group(tx, group_id)
    check_owns_nothing(tx, Owner(SubjectKind.GROUP, group_id), f"group {group.name}")
    tx.execute("DELETE FROM permission WHERE subject_kind = 'group' AND subject_id = ?", (group_id,))
    tx.execute("DELETE FROM permission_pattern WHERE subject_kind = 'group' AND subject_id = ?", (group_id,))
    tx.execute("DELETE FROM project_member WHERE subject_kind = 'group' AND subject_id = ?", (group_id,))
    tx.execute("DELETE FROM user_group WHERE id = ?", (group_id,))
    bump_identity_serial(tx)


def add_group_member(tx: Transaction, group_id: int, user_id: int) -> None:
    """Add a user to a group; does nothing if the user is a member already."""
    tx.execute("INSERT INTO group_member (group_id, user_id) VALUES (?, ?) ON CONFLICT DO NOTHING", (group_id, user_id))
    bump_identity_serial(tx)


def remove_group_member(tx: Transaction, group_id: int, user_id: int) -> None:
    """Remove a user from a group. :raises NotInGroup: the user is no member"""
    if not tx.execute("DELETE FROM group_member WHERE group_id = ? AND user_id = ?", (group_id, user_id)):
        raise NotInGroup(get_user(tx, user_id).username, get_group(tx, group_id).name)
    bump_identity_serial(tx)


def _check_free(r: Reader, name: str) -> None:
    if exists(r, "SELECT 1 FROM user_group WHERE key = ?", (name_key(name),)):
        raise AlreadyExists("group", name)
