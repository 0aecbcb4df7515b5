"""Grants: what users and groups may do in repositories, one by one or by patterns of their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Action, Grant, SubjectKind
from pkgrepo.storage.catalog.people.users import GROUPS_OF_USER, bump_identity_serial
from pkgrepo.storage.catalog.rows import (
    column,
    dump_words,
    every,
    number,
    placeholders,
    rows,
)

MOST_PATTERNS: Final = 100  # of one user or group: all are compared with the name of a repository

# The public id and the name of the user or group in row ``s`` (subject_kind, subject_id), and the joins that they need.
SUBJECT_UID = "COALESCE(a.uid, g.uid, '')"
SUBJECT_NAME = "COALESCE(a.username, g.name, '')"
SUBJECT_JOINS = """
    LEFT JOIN account a ON s.subject_kind = 'user' AND a.id = s.subject_id
    LEFT JOIN user_group g ON s.subject_kind = 'group' AND g.id = s.subject_id
"""

_JOINED = f"permission s {SUBJECT_JOINS}"
_OF_PATTERNS = f"permission_pattern s {SUBJECT_JOINS}"
_GRANT, _grant = rows(Grant, _JOINED, of="s", pattern="''", subject_uid=SUBJECT_UID, subject_name=SUBJECT_NAME)
_PATTERN, _ = rows(
    Grant, _OF_PATTERNS, of="s", repository_id="NULL", subject_uid=SUBJECT_UID, subject_name=SUBJECT_NAME
)


def set_permission(
    tx: Transaction, place: int | str, kind: SubjectKind, subject_id: int, actions: Iterable[Action] | None
) -> None:
    """
    Set the actions that a user or group may perform at a place: in a repository, or in all whose names match a pattern.

    They replace the previous ones. An empty set refuses every action; ``None`` removes the grant.

    :raises Invalid: the user or group has too many patterns
    """
    if isinstance(place, int):
        remove = "DELETE FROM permission WHERE repository_id = ? AND subject_kind = ? AND subject_id = ?"
        replace = """
            INSERT INTO permission (repository_id, subject_kind, subject_id, actions) VALUES (?, ?, ?, ?)
            ON CONFLICT (repository_id, subject_kind, subject_id) DO UPDATE SET actions = excluded.actions
        """
    else:
        remove = "DELETE FROM permission_pattern WHERE pattern = ? AND subject_kind = ? AND subject_id = ?"
        replace = """
            INSERT INTO permission_pattern (pattern, subject_kind, subject_id, actions) VALUES (?, ?, ?, ?)
            ON CONFLICT (pattern, subject_kind, subject_id) DO UPDATE SET actions = excluded.actions
        """
    if actions is None:
        tx.execute(remove, (place, kind, subject_id))
    else:
        tx.execute(replace, (place, kind, subject_id, dump_words(actions)))
        if isinstance(place, str):
            _check_count(tx, kind, subject_id)
    bump_identity_serial(tx)


def _check_count(tx: Transaction, kind: SubjectKind, subject_id: int) -> None:
    sql = "SELECT count(*) FROM permission_pattern WHERE subject_kind = ? AND subject_id = ?"
    if number(tx, sql, (kind, subject_id)) > MOST_PATTERNS:
        raise Invalid(f"a {kind} has grants for at most {MOST_PATTERNS} patterns; make a group for others")


def grants_of(r: Reader, kind: SubjectKind, subject_id: int) -> list[Grant]:
    """The grants of a user or of a group itself, those for patterns last."""
    sql = f"""
        {_GRANT} WHERE s.subject_kind = ? AND s.subject_id = ?
        UNION ALL {_PATTERN} WHERE s.subject_kind = ? AND s.subject_id = ?
    """
    return every(r, _grant, sql, (kind, subject_id, kind, subject_id))


def permissions_of_user(r: Reader, user_id: int) -> list[Grant]:
    """The grants of a user, then those of the groups that the user is a member of."""
    sql = f"""
        {_GRANT} WHERE s.subject_kind = 'group' AND s.subject_id IN {GROUPS_OF_USER}
        UNION ALL {_PATTERN} WHERE s.subject_kind = 'group' AND s.subject_id IN {GROUPS_OF_USER}
    """
    return grants_of(r, SubjectKind.USER, user_id) + every(r, _grant, sql, (user_id, user_id))


def list_patterns(r: Reader) -> list[str]:
    """The patterns that any user or group has a grant for."""
    return column(r, "SELECT DISTINCT pattern FROM permission_pattern")


def users_with_rights(
    r: Reader, repository_id: int, patterns: Sequence[str], project_id: int | None, *, limit: int
) -> list[str]:
    """
    The names of active users who have more rights in a repository than everybody, at most ``limit``, sorted.

    That is by a grant for it or for one of the ``patterns``, which match its name, or by a role in a project, also
    through a group, by default actions, or by a flag.
    """
    marks = placeholders(len(patterns) or 1)
    sql = f"""
        SELECT username FROM account WHERE active = 1 AND (
            admin = 1 OR system_manager = 1 OR default_actions <> '[]' OR id IN (
                SELECT subject_id FROM permission WHERE subject_kind = 'user' AND repository_id = ?
                UNION SELECT m.user_id FROM permission p JOIN group_member m ON m.group_id = p.subject_id
                WHERE p.subject_kind = 'group' AND p.repository_id = ?
                UNION SELECT subject_id FROM permission_pattern WHERE subject_kind = 'user' AND pattern IN ({marks})
                UNION SELECT m.user_id FROM permission_pattern p JOIN group_member m ON m.group_id = p.subject_id
                WHERE p.subject_kind = 'group' AND p.pattern IN ({marks})
                UNION SELECT subject_id FROM project_member WHERE subject_kind = 'user' AND project_id = ?
                UNION SELECT m.user_id FROM project_member p JOIN group_member m ON m.group_id = p.subject_id
                WHERE p.subject_kind = 'group' AND p.project_id = ?
            )
        ) ORDER BY key LIMIT ?
    """
    matching = patterns or ("",)
    return column(r, sql, (repository_id, repository_id, *matching, *matching, project_id, project_id, limit))


def replace_grants(
    tx: Transaction, kind: SubjectKind, subject_id: int, wanted: Mapping[int | str, frozenset[Action]]
) -> None:
    """
    Make ``wanted``, actions by place (see L{set_permission}), the only grants of a user or group.

    :raises Invalid: there are too many patterns among them
    """
    for grant in grants_of(tx, kind, subject_id):
        if grant.place not in wanted:
            set_permission(tx, grant.place, kind, subject_id, None)
    for place, actions in wanted.items():
        set_permission(tx, place, kind, subject_id, actions)
