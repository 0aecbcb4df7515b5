"""Finds projects, and shows as much of them as the caller may know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

from msgspec import UNSET, Meta, UnsetType

from pkgrepo.auth.permissions.rules import ProjectViewer
from pkgrepo.errors import AuthenticationRequired, Forbidden, NotFound
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import CreatedAt, ObjectId, RepositoryId, RepositoryPath, UpdatedAt, VisibilityName
from pkgrepo.management.api.schema import Body, Line, Record, Text, Word
from pkgrepo.management.quotas import Amount, QuotaGiven
from pkgrepo.model import Action, Project, ProjectRole
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.publish.owner_quotas import usage_of_project
from pkgrepo.storage.catalog.people import projects
from pkgrepo.storage.catalog.server.quotas import QuotaKind, limits_of
from pkgrepo.untrusted.patterns import pattern
from pkgrepo.untrusted.text import END

Slug = Annotated[
    str,
    Meta(
        pattern=pattern(
            r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}" + END,
            "up to 100 letters, digits, dots, dashes and underscores, first a letter or a digit",
        )
    ),
]


class NewProject(Body):
    """A new project; the caller becomes its owner."""

    key: Annotated[Slug, meaning("The key, with which names may begin.")]
    name: Annotated[Line, meaning("The name for people.")] = ""
    description: Annotated[Text, meaning("A text for people about the project.")] = ""
    visibility: VisibilityName = "private"
    quota: Annotated[Amount | QuotaGiven | None, meaning("The number of bytes, or limits; null removes them all.")] = (
        None
    )


class ProjectChange(Body):
    """
    The fields of a project that can be changed. The key cannot: image names may contain it.

    quota is the number of bytes, or an object of limits; null removes them all.
    """

    name: Annotated[Line | UnsetType, meaning("The name for people.")] = UNSET
    description: Annotated[Text | UnsetType, meaning("A text for people about the project.")] = UNSET
    visibility: Annotated[str | UnsetType, meaning("Who may read it: public, private or hidden.")] = UNSET
    quota: Annotated[
        Amount | QuotaGiven | UnsetType | None, meaning("The number of bytes, or limits; null removes them all.")
    ] = UNSET


class MemberRecord(Record):
    """The role of a user or group in a project."""

    kind: Annotated[str, meaning("user or group.")]
    id: Annotated[str, meaning("The id of the user or group.")]
    name: Annotated[str, meaning("The name of the user or group.")]
    role: Annotated[ProjectRole, meaning("The role in the project.")]


class BindingRecord(Record):
    """Package names in a repository that a project owns, as a pattern."""

    repository_id: RepositoryId
    repository: RepositoryPath
    pattern: Annotated[str, meaning("The pattern of the names.")]


class ProjectSummary(Record):
    """A project in a list."""

    id: ObjectId
    key: Annotated[str, meaning("The key, with which names may begin.")]
    name: Annotated[str, meaning("The name for people.")]
    description: Annotated[str, meaning("A text for people about the project.")]
    visibility: VisibilityName
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def of(cls, project: Project) -> Self:
        """The record of a project in a list."""
        return cls.from_attributes(project, id=project.uid)


class ProjectRecord(ProjectSummary):
    """A project with its members (null if the caller may not see them) and the package names that it owns."""

    measured = frozenset({"usage_bytes"})

    quota: Annotated[
        int | None, meaning("The most bytes that its packages may have in all hosted repositories; null for no limit.")
    ]
    usage_bytes: Annotated[
        int | None, meaning("The size of its packages in bytes, where it has a quota; null for others than members.")
    ]
    members: Annotated[list[MemberRecord] | None, meaning("The members; null if the caller may not see them.")]
    bindings: Annotated[list[BindingRecord], meaning("The names of packages that it owns.")]


class MemberGiven(Body):
    """The role of a user or a group (name or id) in a project; either user or group is required."""

    user: Annotated[str | None, meaning("The name or id of a user; either user or group is given.")] = None
    group: Annotated[str | None, meaning("The name or id of a group; either user or group is given.")] = None
    role: Annotated[ProjectRole, meaning("The role in the project.")] = ProjectRole.DEVELOPER


class BindingGiven(Body):
    """Package names: a repository (id or storage/name) and a pattern in the syntax of its format."""

    repository: Annotated[str, meaning("The repository: its id, or storage/name.")]
    pattern: Annotated[Word, meaning("The pattern of the names, in the syntax of the format.")]


async def find_project(call: Call, key: str, role: ProjectRole | None = None) -> Project:
    """
    The project with this id or key.

    :raises NotFound: the caller may see no such one
    :raises AuthenticationRequired: a ``role`` is needed, and the caller is anonymous
    :raises Forbidden: the caller has neither this ``role`` in the project nor a higher one
    """
    project: Project | None = await call.catalog.look(projects.find_project, key)
    viewer = await _viewer(call)
    if project is None or not viewer.may_see(project):
        raise NotFound("project", key)
    call.object = project.key
    if role is not None and not viewer.manages:
        if call.identity.anonymous:
            raise AuthenticationRequired
        held = viewer.roles.get(project.id)
        if held is None or held.rank < role.rank:
            raise Forbidden(f"this needs the role {role} in project {project.key!r}, or above")
    return project


async def visible_projects(call: Call, some: Sequence[Project]) -> list[Project]:
    """The projects, of some, that the caller may see."""
    viewer = await _viewer(call)
    return [each for each in some if viewer.may_see(each)]


async def project_record(call: Call, project: Project) -> ProjectRecord:
    """The record of a project without the bindings in repositories that the caller may not read."""
    bound = await call.catalog.look(projects.list_bindings, project_id=project.id)
    places = [(call.shared.registry.find_id(each.repository_id), each.pattern) for each in bound]
    there = [(repository, pattern) for repository, pattern in places if repository is not None]
    readable = await call.services.callers.authorizer.may_each(
        call.identity, [(Action.READ, repository, None) for repository, _ in there]
    )
    sees = (await _viewer(call)).may_list_members(project)
    quota = (await call.catalog.look(limits_of, QuotaKind.PROJECT, project.id)).bytes
    used = await call.catalog.scan(usage_of_project, project) if sees and quota is not None else None
    return ProjectRecord.from_attributes(
        project,
        id=project.uid,
        quota=quota,
        usage_bytes=None if used is None else used.bytes,
        members=await member_records(call, project) if sees else None,
        bindings=[
            BindingRecord(repository_id=repository.uid, repository=repository.path, pattern=pattern)
            for (repository, pattern), may in zip(there, readable, strict=True)
            if may
        ],
    )


async def member_records(call: Call, project: Project) -> list[MemberRecord]:
    """The members of a project, users before groups."""
    return [
        MemberRecord(kind=each.subject_kind, id=each.subject_uid, name=each.subject_name, role=each.role)
        for each in await call.catalog.look(projects.list_project_members, project.id)
    ]


async def check_may_list_members(call: Call, project: Project) -> None:
    """
    Raise an error unless the caller may see the list of members.

    :raises AuthenticationRequired: the caller is anonymous; :raises Forbidden: the caller is no member
    """
    if (await _viewer(call)).may_list_members(project):
        return
    if call.identity.anonymous:
        raise AuthenticationRequired
    raise Forbidden(f"only members of project {project.key!r} and system managers see who its members are")


async def check_may_limit_projects(call: Call) -> None:
    """:raises Forbidden: the caller is no system manager, who alone decides what a project may use"""
    if not (await _viewer(call)).manages:
        raise Forbidden("only system managers change the quota of a project")


async def _viewer(call: Call) -> ProjectViewer:
    return await call.services.callers.authorizer.project_viewer(call.identity)
