"""Projects as far as a caller may know of them."""

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
    """A caller: whether they manage every project, and their roles by the keys of projects."""

    manages: bool
    roles: Mapping[int, ProjectRole]

    def may_see(self, project: Project) -> bool:
        """Whether the caller may know of the project."""
        return project.visibility is Visibility.PUBLIC or self.knows_members(project)

    def knows_members(self, project: Project) -> bool:
        """Whether the caller may know who its members are."""
        return self.manages or project.id in self.roles


class ProjectAccess:
    """
    Finds and shows projects.

    A private one is known to its members and to system managers, who may do with every project what its owners may.
    Nobody else is told who the members are, of a public one neither.
    """

    def __init__(self, services: ManagementServices) -> None:
        self._services = services
        self._catalog: ICatalog = services.shared.catalog

    async def find(self, call: Call, key: str, role: ProjectRole | None = None) -> Project:
        """
        The project with this id or key.

        :raises NotFound: there is none, or none that the caller may know of
        :raises Forbidden: the caller has not the ``role`` there that is asked for, nor a higher one
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
        """Those of the projects that the caller may know of."""
        viewer = await self._viewer(call)
        return [each for each in some if viewer.may_see(each)]

    async def shown(self, call: Call, project: Project) -> ProjectRecord:
        """The record of a project; bindings in repositories that the caller may not read are left out."""
        bound = await self._catalog.look(projects.list_bindings, project_id=project.id)
        places = [(self._services.shared.registry.find_id(each.repository_id), each.pattern) for each in bound]
        there = [(repository, pattern) for repository, pattern in places if repository is not None]
        readable = await self._services.authorizer.may_each(
            call.identity, [(Action.READ, repository, None) for repository, _ in there]
        )
        return ProjectRecord.from_attributes(
            project,
            id=project.uid,
            members=await self.members(project) if (await self._viewer(call)).knows_members(project) else None,
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

    async def check_knows_members(self, call: Call, project: Project) -> None:
        """
        Let the caller be told who the members are.

        :raises AuthenticationRequired: nobody was named; :raises Forbidden: the caller is none of them
        """
        if (await self._viewer(call)).knows_members(project):
            return
        if call.identity.anonymous:
            raise AuthenticationRequired
        raise Forbidden(f"only members of project {project.key!r} and system managers see who its members are")

    async def _viewer(self, call: Call) -> _Viewer:
        manages = await self._services.authorizer.may_use(call.identity, "system")
        if call.identity.user_id is None:
            return _Viewer(manages, {})
        return _Viewer(manages, await self._catalog.look(projects.roles_of_user, call.identity.user_id))
