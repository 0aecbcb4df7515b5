"""Projects as far as a caller may know of them."""

from __future__ import annotations

from pkgrepo.errors import AuthenticationRequired, Forbidden, NotFound
from pkgrepo.interfaces import ICatalog
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Action, Project, ProjectRole, Visibility
from pkgrepo.storage.catalog.people import projects

from .schema import BindingRecord, MemberRecord, ProjectRecord


class ProjectAccess:
    """
    Finds and shows projects.

    A private one is known to its members and to system managers, who may do with every project what its owners may.
    Nobody else is told who the members are, of a public one neither.
    """

    def __init__(self, services: ManagementServices) -> None:
        self._services = services
        self._catalog: ICatalog = services.shared.catalog

    def find(self, call: Call, key: str, role: ProjectRole | None = None) -> Project:
        """
        The project with this id or key.

        :raises NotFound: there is none, or none that the caller may know of
        :raises Forbidden: the caller has not the ``role`` there that is asked for, nor a higher one
        """
        project: Project | None = self._catalog.look_inline(projects.find_project, key)
        if project is None or not self.may_see(call, project):
            raise NotFound("project", key)
        call.object = project.key
        if role is not None and not self._manages(call):
            if call.identity.anonymous:
                raise AuthenticationRequired
            held = self._role(call, project)
            if held is None or held.rank < role.rank:
                raise Forbidden(f"this needs the role {role} in project {project.key!r}, or above")
        return project

    def may_see(self, call: Call, project: Project) -> bool:
        """Whether the caller may know of the project."""
        return project.visibility is Visibility.PUBLIC or self._manages(call) or self._role(call, project) is not None

    def shown(self, call: Call, project: Project) -> ProjectRecord:
        """The record of a project; bindings in repositories that the caller may not read are left out."""
        bound = self._catalog.look_inline(projects.list_bindings, project_id=project.id)
        places = [(self._services.shared.registry.find_id(each.repository_id), each.pattern) for each in bound]
        return ProjectRecord.from_attributes(
            project,
            id=project.uid,
            members=self.members(project) if self._knows_members(call, project) else None,
            bindings=[
                BindingRecord(repository_id=repository.uid, repository=repository.path, pattern=pattern)
                for repository, pattern in places
                if repository is not None and call.may(Action.READ, repository)
            ],
        )

    def members(self, project: Project) -> list[MemberRecord]:
        """The members of a project, users before groups."""
        return [
            MemberRecord(kind=each.subject_kind, id=each.subject_uid, name=each.subject_name, role=each.role)
            for each in self._catalog.look_inline(projects.list_project_members, project.id)
        ]

    def check_knows_members(self, call: Call, project: Project) -> None:
        """
        Let the caller be told who the members are.

        :raises AuthenticationRequired: nobody was named; :raises Forbidden: the caller is none of them
        """
        if self._knows_members(call, project):
            return
        if call.identity.anonymous:
            raise AuthenticationRequired
        raise Forbidden(f"only members of project {project.key!r} and system managers see who its members are")

    def _knows_members(self, call: Call, project: Project) -> bool:
        return self._manages(call) or self._role(call, project) is not None

    def _manages(self, call: Call) -> bool:
        return self._services.authorizer.may_use(call.identity, "system")

    def _role(self, call: Call, project: Project) -> ProjectRole | None:
        if call.identity.user_id is None:
            return None
        roles: dict[int, ProjectRole] = self._catalog.look_inline(projects.roles_of_user, call.identity.user_id)
        return roles.get(project.id)
