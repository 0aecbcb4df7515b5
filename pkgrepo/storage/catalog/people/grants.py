"""Grants: what users and groups may do in repositories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Action, Grant, SubjectKind
from pkgrepo.storage.catalog.people.users import GROUPS_OF_USER, bump_identity_serial
from pkgrepo.storage.catalog.rows import (
    column,
    dump_words,
    every,
    rows,
)

# The public id and the name of the user or group in row ``s`` (subject_kind, subject_id), and the joins that they need.
SUBJECT_UID = "COALESCE(a.uid, g.uid, '')"
SUBJECT_NAME = "COALESCE(a.username, g.name, '')"
SUBJECT_JOINS = """
    LEFT JOIN account a ON s.subject_kind = 'user' AND a.id = s.subject_id
    LEFT JOIN user_group g ON s.subject_kind = 'group' AND g.id = s.subject_id
"""


_GRANT, _grant = rows(
    Grant, f"permission s {SUBJECT_JOINS}", of="s", subject_uid=SUBJECT_UID, subject_name=SUBJECT_NAME
)


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


def grants_of(r: Reader, kind: SubjectKind, subject_id: int) -> list[Grant]:
    """The grants of a user or of a group itself."""
    return every(r, _grant, f"{_GRANT} WHERE s.subject_kind = ? AND s.subject_id = ?", (kind, subject_id))


def permissions_of_user(r: Reader, user_id: int) -> list[Grant]:
    """The grants of a user, then those of the groups that the user is a member of."""
    sql = f"{_GRANT} WHERE s.subject_kind = 'group' AND s.subject_id IN {GROUPS_OF_USER}"
    return grants_of(r, SubjectKind.USER, user_id) + every(r, _grant, sql, (user_id,))


def users_with_rights(r: Reader, repository_id: int, project_id: int | None, *, limit: int) -> list[str]:
    """
    The names of active users who have more rights in a repository than everybody, at most ``limit``, sorted.

    That is by a grant, or a role in a project, also through a group, by default actions, or by a flag.
    """
    sql = """
        SELECT username FROM account WHERE active = 1 AND (
            admin = 1 OR system_manager = 1 OR default_actions <> '[]' OR id IN (
                SELECT subject_id FROM permission WHERE subject_kind = 'user' AND repository_id = ?
                UNION SELECT m.user_id FROM permission p JOIN group_member m ON m.group_id = p.subject_id
                WHERE p.subject_kind = 'group' AND p.repository_id = ?
                UNION SELECT subject_id FROM project_member WHERE subject_kind = 'user' AND project_id = ?
                UNION SELECT m.user_id FROM project_member p JOIN group_member m ON m.group_id = p.subject_id
                WHERE p.subject_kind = 'group' AND p.project_id = ?
            )
        ) ORDER BY key LIMIT ?
    """
    return column(r, sql, (repository_id, repository_id, project_id, project_id, limit))


def replace_grants(
    tx: Transaction, kind: SubjectKind, subject_id: int, wanted: Mapping[int, frozenset[Action]]
) -> None:
    """Make ``wanted`` (actions by the catalog key of the repository) the only grants of a user or group."""
    for grant in grants_of(tx, kind, subject_id):
        if grant.repository_id not in wanted:
            set_permission(tx, grant.repository_id, kind, subject_id, None)
    for repository_id, actions in wanted.items():
        set_permission(tx, repository_id, kind, subject_id, actions)
