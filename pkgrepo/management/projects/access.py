"""Finds projects, and shows as much of them as the caller may know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from pkgrepo.errors import AuthenticationRequired, Forbidden, NotFound
from pkgrepo.interfaces import ICatalog
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Action, Project, ProjectRole, Visibility
from pkgrepo.storage.catalog.people import projects

from .schema import BindingRecord, MemberRecord, ProjectRecord


@frozen
class _Viewer:
    """A caller: whether they may manage every project, and their roles by the catalog keys of projects."""

    manages: bool
    roles: Mapping[int, ProjectRole]

    def may_see(self, project: Project) -> bool:
        """Whether the caller may know that the project exists."""
        return project.visibility is Visibility.PUBLIC or self.may_list_members(project)

    def may_list_members(self, project: Project) -> bool:
        """Whether the caller may see the list of members."""
        return self.manages or project.id in self.roles


class ProjectAccess:
    """
    Checks which projects and members a caller may see.

    Everybody may see a public project, its members and system managers also a private one. The list of members is
    shown to members and system managers only. System managers may do everything that an owner may.
    """

    def __init__(self, services: ManagementServices) -> None:
        self._services = services
        self._catalog: ICatalog = services.shared.catalog

    async def find(self, call: Call, key: str, role: ProjectRole | None = None) -> Project:
        """
        The project with this id or key.

        :raises NotFound: there is none that the caller may see
        :raises AuthenticationRequired: a ``role`` is needed, and the caller is anonymous
        :raises Forbidden: the caller has neither this ``role`` in the project nor a higher one
        """
        project: Project | None = await self._catalog.look(projects.find_project, key)
        viewer = await self._viewer(call)
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

    async def visible(self, call: Call, some: Sequence[Project]) -> list[Project]:
        """Those of the projects that the caller may see."""
        viewer = await self._viewer(call)
        return [each for each in some if viewer.may_see(each)]

    async def record(self, call: Call, project: Project) -> ProjectRecord:
        """The record of a project without the bindings in repositories that the caller may not read."""
        bound = await self._catalog.look(projects.list_bindings, project_id=project.id)
        places = [(self._services.shared.registry.find_id(each.repository_id), each.pattern) for each in bound]
        there = [(repository, pattern) for repository, pattern in places if repository is not None]
        readable = await self._services.authorizer.may_each(
            call.identity, [(Action.READ, repository, None) for repository, _ in there]
        )
        return ProjectRecord.from_attributes(
            project,
            id=project.uid,
            members=await self.members(project) if (await self._viewer(call)).may_list_members(project) else None,
            bindings=[
                BindingRecord(repository_id=repository.uid, repository=repository.path, pattern=pattern)
                for (repository, pattern), may in zip(there, readable, strict=True)
                if may
            ],
        )

    async def members(self, project: Project) -> list[MemberRecord]:
        """The members of a project, users before groups."""
        return [
            MemberRecord(kind=each.subject_kind, id=each.subject_uid, name=each.subject_name, role=each.role)
            for each in await self._catalog.look(projects.list_project_members, project.id)
        ]

    async def check_may_list_members(self, call: Call, project: Project) -> None:
        """
        Raise an error unless the caller may see the list of members.

        :raises AuthenticationRequired: the caller is anonymous; :raises Forbidden: the caller is no member
        """
        if (await self._viewer(call)).may_list_members(project):
            return
        if call.identity.anonymous:
            raise AuthenticationRequired
        raise Forbidden(f"only members of project {project.key!r} and system managers see who its members are")

    async def _viewer(self, call: Call) -> _Viewer:
        manages = await self._services.authorizer.may_use(call.identity, "system")
        if call.identity.user_id is None:
            return _Viewer(manages, {})
        return _Viewer(manages, await self._catalog.look(projects.roles_of_user, call.identity.user_id))
