"""
Projects, their members, and their bindings.

A binding gives the packages of a repository whose names match a pattern to a project.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict, Unpack

from pkgrepo.errors import AlreadyExists, NotFound, existing
from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.model import Project, ProjectBinding, ProjectMember, ProjectRole, SubjectKind, Visibility
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.rows import (
    dump,
    every,
    find,
    insert,
    load,
    non_null,
    optional_conditions,
    rows,
    scalar,
    to_ms,
    update,
)
from pkgrepo.storage.catalog.server.quotas import QuotaKind, remove_limits

from .grants import SUBJECT_JOINS, SUBJECT_NAME, SUBJECT_UID
from .users import bump_identity_serial, name_key

_PROJECT, _project = rows(Project, "project", publishers=lambda text: tuple(load(text)))

PROJECT_ORDERS: Final[Mapping[str, Order[Project]]] = both_ways(
    {
        "key": [("key", str, lambda each: each.key)],
        "visibility": [("visibility", str, lambda each: str(each.visibility)), ("key", str, lambda each: each.key)],
        "updated_at": [("updated_at", int, lambda each: to_ms(each.updated_at)), ("key", str, lambda each: each.key)],
    }
)

_BINDING, _binding = rows(ProjectBinding, "project_binding")
_BINDING_FILTERS = ("project_id = ?", "repository_id = ?")

_MEMBER, _member = rows(
    ProjectMember, f"project_member s {SUBJECT_JOINS}", of="s", subject_uid=SUBJECT_UID, subject_name=SUBJECT_NAME
)


class ProjectChanges(TypedDict, total=False):
    """What ``update_project`` can change; the key cannot change, since it may be part of image names."""

    name: str
    description: str
    visibility: Visibility


def find_project(r: Reader, uid_or_key: str) -> Project | None:
    """The project with this public id or this key (case does not matter), or None."""
    by_uid = find(r, _project, f"{_PROJECT} WHERE uid = ?", (uid_or_key,))
    return by_uid or find(r, _project, f"{_PROJECT} WHERE key = ?", (name_key(uid_or_key),))


def get_project(r: Reader, project_id: int) -> Project:
    """
    The project with this catalog key.

    :raises NotFound: there is none
    """
    return existing(find(r, _project, f"{_PROJECT} WHERE id = ?", (project_id,)), "project", str(project_id))


def list_projects(r: Reader, *, after: Sequence[Value] = (), limit: int = 50, order: str = "key") -> list[Project]:
    """A page of projects in one of the ``PROJECT_ORDERS``, beginning after a position."""
    sorting = PROJECT_ORDERS[order]
    beyond = f"WHERE {sorting.beyond}" if after else ""
    return every(r, _project, f"{_PROJECT} {beyond} ORDER BY {sorting.by} LIMIT ?", (*after, limit))


def add_project(
    tx: Transaction,
    *,
    key: str,
    now_ms: int,
    owner_id: int | None = None,
    **values: Unpack[ProjectChanges],
) -> Project:
    """
    Add a project; its name is ``key`` unless given. The user ``owner_id``, if given, becomes a member as its owner.

    :raises AlreadyExists: a project has this key (case does not matter)
    """
    if tx.one("SELECT 1 FROM project WHERE key = ?", (name_key(key),)) is not None:
        raise AlreadyExists("project", key)
    project_id = insert(
        tx,
        "project",
        uid=str(uuid.uuid4()),
        key=name_key(key),
        created_at=now_ms,
        updated_at=now_ms,
        **{**values, "name": values.get("name") or key},
    )
    if owner_id is not None:
        set_project_member(tx, project_id, SubjectKind.USER, owner_id, ProjectRole.OWNER)
    bump_identity_serial(tx)
    return get_project(tx, project_id)


def update_project(tx: Transaction, project_id: int, *, now_ms: int, **changes: Unpack[ProjectChanges]) -> Project:
    """
    Change the given fields.

    :raises NotFound: no such project
    """
    get_project(tx, project_id)
    update(tx, "project", project_id, **changes, updated_at=now_ms)
    bump_identity_serial(tx)
    return get_project(tx, project_id)


def remove_project(tx: Transaction, project_id: int) -> None:
    """
    Remove a project with its memberships and bindings. Its packages stay, without a project.

    :raises NotFound: no such project
    """
    if not tx.execute("DELETE FROM project WHERE id = ?", (project_id,)):
        raise NotFound("project", str(project_id))
    remove_limits(tx, QuotaKind.PROJECT, project_id)
    bump_identity_serial(tx)


def set_project_member(
    tx: Transaction, project_id: int, kind: SubjectKind, subject_id: int, role: ProjectRole | None
) -> None:
    """Set the role of a user or group in a project; ``None`` removes the membership."""
    if role is None:
        tx.execute(
            "DELETE FROM project_member WHERE project_id = ? AND subject_kind = ? AND subject_id = ?",
            (project_id, kind, subject_id),
        )
    else:
        tx.execute(
            """
            INSERT INTO project_member (project_id, subject_kind, subject_id, role) VALUES (?, ?, ?, ?)
            ON CONFLICT (project_id, subject_kind, subject_id) DO UPDATE SET role = excluded.role
            """,
            (project_id, kind, subject_id, role),
        )
    bump_identity_serial(tx)


def list_project_members(r: Reader, project_id: int) -> list[ProjectMember]:
    """The members of a project, users before groups."""
    sql = f"{_MEMBER} WHERE s.project_id = ? ORDER BY s.subject_kind DESC, s.subject_id"
    return every(r, _member, sql, (project_id,))


def roles_of_user(r: Reader, user_id: int) -> dict[int, ProjectRole]:
    """The highest role of a user in each project, as a member or through a group, by the project's catalog key."""
    rows = r.all(
        "SELECT project_id, role FROM project_member WHERE subject_kind = 'user' AND subject_id = ?", (user_id,)
    )
    rows += r.all(
        """
        SELECT project_id, role FROM project_member
        WHERE subject_kind = 'group' AND subject_id IN (SELECT group_id FROM group_member WHERE user_id = ?)
        """,
        (user_id,),
    )
    return _highest(rows)


def roles_through_group(r: Reader, group_id: int) -> dict[int, ProjectRole]:
    """The roles that the members of a group have through it, by the project's catalog key."""
    sql = "SELECT project_id, role FROM project_member WHERE subject_kind = 'group' AND subject_id = ?"
    return _highest(r.all(sql, (group_id,)))


def _highest(rows: Sequence[tuple[Any, ...]]) -> dict[int, ProjectRole]:
    roles: dict[int, ProjectRole] = {}
    for project_id, text in rows:
        role = ProjectRole(text)
        if project_id not in roles or roles[project_id].rank < role.rank:
            roles[project_id] = role
    return roles


def roles_of_group(r: Reader, group_id: int) -> dict[str, ProjectRole]:
    """The roles of a group, by the key of the project."""
    sql = """
        SELECT p.key, m.role FROM project_member m JOIN project p ON p.id = m.project_id
        WHERE m.subject_kind = 'group' AND m.subject_id = ? ORDER BY p.key
        """
    return {str(key): ProjectRole(role) for key, role in r.all(sql, (group_id,))}


def bind_names(tx: Transaction, repository_id: int, pattern: str, project_id: int) -> ProjectBinding:
    """
    Bind a pattern to a project; does nothing if it is bound to this project already.

    :raises AlreadyExists: the pattern is bound to another project
    """
    owner = tx.one(
        "SELECT project_id FROM project_binding WHERE repository_id = ? AND pattern = ?", (repository_id, pattern)
    )
    if owner is None:
        tx.execute(
            "INSERT INTO project_binding (repository_id, pattern, project_id) VALUES (?, ?, ?)",
            (repository_id, pattern, project_id),
        )
        bump_identity_serial(tx)
    elif owner[0] != project_id:
        raise AlreadyExists("binding", pattern)
    return ProjectBinding(repository_id=repository_id, pattern=pattern, project_id=project_id)


def unbind_names(tx: Transaction, repository_id: int, pattern: str) -> None:
    """Remove the binding of a pattern, if there is one."""
    tx.execute("DELETE FROM project_binding WHERE repository_id = ? AND pattern = ?", (repository_id, pattern))
    bump_identity_serial(tx)


def set_project_publishers(
    tx: Transaction, project_id: int, publishers: Sequence[Mapping[str, Any]], *, now_ms: int
) -> None:
    """Replace the publishers of a project. :raises NotFound: no such project"""
    get_project(tx, project_id)
    update(tx, "project", project_id, publishers=dump(publishers), updated_at=now_ms)
    bump_identity_serial(tx)


def projects_with_publishers(r: Reader) -> list[Project]:
    """The projects that have publishers, by their keys."""
    return every(r, _project, f"{_PROJECT} WHERE publishers <> '[]' ORDER BY key", ())


def list_bindings(
    r: Reader, *, project_id: int | None = None, repository_id: int | None = None
) -> list[ProjectBinding]:
    """The bindings, optionally of one project or one repository, ordered by repository and pattern."""
    values = (project_id, repository_id)
    sql = f"{_BINDING} WHERE {optional_conditions(_BINDING_FILTERS, values)} ORDER BY repository_id, pattern"
    return every(r, _binding, sql, non_null(values))


def projects_bound_in(r: Reader, repository_id: int) -> list[Project]:
    """The projects to which patterns of a repository are bound, by their keys."""
    bound = "SELECT project_id FROM project_binding WHERE repository_id = ?"
    return every(r, _project, f"{_PROJECT} WHERE id IN ({bound}) ORDER BY key", (repository_id,))


def owning_project(
    r: Reader, repository_id: int, candidates: Sequence[str], project_key: str | None = None
) -> Project | None:
    """
    The project that owns a package, or None.

    ``candidates`` are the patterns that match the package, the most specific first; the first that is bound decides.
    If none is bound, the project with the key ``project_key`` owns the package, in formats whose package names begin
    with the key of a project.
    """
    for pattern in candidates:
        sql = "SELECT project_id FROM project_binding WHERE repository_id = ? AND pattern = ?"
        project_id = scalar(r, sql, (repository_id, pattern))
        if project_id is not None:
            return get_project(r, project_id)
    if project_key is None:
        return None
    return find(r, _project, f"{_PROJECT} WHERE key = ?", (name_key(project_key),))


def claim_names(
    tx: Transaction, repository_id: int, *, pattern: str, project_key: str, owner_id: int, now_ms: int
) -> Project:
    """
    The project that a pattern is bound to; a new project, owned by this user, if the pattern is not bound yet.

    :raises AlreadyExists: the pattern is not bound, but a project with this key exists
    """
    owner = owning_project(tx, repository_id, (pattern,))
    if owner is not None:
        return owner
    project = add_project(tx, key=project_key, owner_id=owner_id, now_ms=now_ms)
    bind_names(tx, repository_id, pattern, project.id)
    return project
