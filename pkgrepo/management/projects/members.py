"""The routes to the members of a project, and to the package names that it owns."""

from __future__ import annotations

from pkgrepo.auth.permissions.ownership import check_pattern
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, PROJECT_VIEWERS, SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.names import get_repository
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import ProjectRole, SubjectKind
from pkgrepo.storage.catalog.people import grants, projects, users

from .access import ProjectAccess
from .schema import BindingGiven, BindingRecord, MemberGiven, MemberRecord, ProjectRecord

USER = Parameter("user", "The name or id of the user.")
GROUP = Parameter("group", "The name or id of the group.")


class ProjectMembers(Handlers):
    """
    Members and bindings of projects.

    Owners of a project change its members. Only system managers change its bindings: with the push rule
    must_be_project_member, a binding excludes other users from pushing under the names.
    """

    table = Table("projects")

    def __init__(self, services: ManagementServices) -> None:
        super().__init__(services)
        self._access = ProjectAccess(services)

    @table.route(
        "GET",
        "/project/<key>/members",
        access=PROJECT_VIEWERS,
        summary="List a project's members",
        answer=list[MemberRecord],
    )
    async def members(self, call: Call, key: str) -> list[MemberRecord]:
        """Also needs membership in the project, unless the caller is a system manager. Users come before groups."""
        project = await self._access.find(call, key)
        await self._access.check_may_list_members(call, project)
        return await self._access.members(project)

    @table.route(
        "POST",
        "/project/<key>/members",
        access=ACCOUNT_HOLDERS,
        summary="Set the role of a user or group in a project",
        body=MemberGiven,
        answer=ProjectRecord,
        audit="project.member",
        aliases=[("PUT", "/project/<key>/members")],
    )
    async def set_member(self, call: Call, body: MemberGiven, key: str) -> ProjectRecord:
        """Also needs the role owner, unless the caller is a system manager. A role held before is replaced."""
        project = await self._access.find(call, key, ProjectRole.OWNER)
        kind, subject_id, name = await self._subject(body.user, body.group)
        entry = call.entry(project.key, {kind: name, "role": body.role})
        await call.write(entry, projects.set_project_member, project.id, kind, subject_id, body.role)
        return await self._access.record(call, project)

    @table.route(
        "DELETE",
        "/project/<key>/members",
        access=ACCOUNT_HOLDERS,
        summary="Remove a member from a project",
        status=204,
        query=(USER, GROUP),
        audit="project.member",
    )
    async def remove_member(self, call: Call, key: str) -> None:
        """Also needs the role owner, unless the caller is a system manager. Either user or group must be given."""
        project = await self._access.find(call, key, ProjectRole.OWNER)
        kind, subject_id, name = await self._subject(call.query("user") or None, call.query("group") or None)
        entry = call.entry(project.key, {kind: name, "role": None})
        await call.write(entry, projects.set_project_member, project.id, kind, subject_id, None)

    @table.route(
        "GET",
        "/project/<key>/bindings",
        access=PROJECT_VIEWERS,
        summary="List the package names that a project owns",
        answer=list[BindingRecord],
    )
    async def bindings(self, call: Call, key: str) -> list[BindingRecord]:
        """Only names in repositories that the caller may read."""
        return (await self._access.record(call, await self._access.find(call, key))).bindings

    @table.route(
        "POST",
        "/project/<key>/bindings",
        access=SYSTEM_MANAGERS,
        summary="Assign package names to a project",
        body=BindingGiven,
        answer=ProjectRecord,
        audit="project.binding",
        aliases=[("PUT", "/project/<key>/bindings")],
    )
    async def bind(self, call: Call, body: BindingGiven, key: str) -> ProjectRecord:
        """The answer is 409 if another project owns the same pattern, 422 if it could match no package."""
        project = await self._access.find(call, key)
        repository = await get_repository(self._registry, body.repository, "/repository")
        check_pattern(repository, body.pattern)
        entry = call.entry(project.key, {"repository": repository.path, "pattern": body.pattern})
        await call.write(entry, projects.bind_names, repository.id, body.pattern, project.id)
        return await self._access.record(call, project)

    @table.route(
        "DELETE",
        "/project/<key>/bindings",
        access=SYSTEM_MANAGERS,
        summary="Remove package names from a project",
        status=204,
        query=[
            Parameter("repository", "The repository of the names: its id, or storage/name."),
            Parameter("pattern", "The pattern exactly as it was assigned."),
        ],
        audit="project.binding",
    )
    async def unbind(self, call: Call, key: str) -> None:
        """The names then have no owning project. The answer is 404 if the project does not have this pattern."""
        project = await self._access.find(call, key)
        repository = await get_repository(self._registry, call.query("repository"), "repository")
        pattern = call.query("pattern")
        bound = await self._catalog.look(projects.list_bindings, project_id=project.id, repository_id=repository.id)
        if all(each.pattern != pattern for each in bound):
            raise NotFound("binding", pattern)
        entry = call.entry(project.key, {"repository": repository.path, "unbound": pattern})
        await call.write(entry, projects.unbind_names, repository.id, pattern)

    # Below

    async def _subject(self, user: str | None, group: str | None) -> tuple[SubjectKind, int, str]:
        if (user is None) == (group is None):
            raise Invalid("name either a user or a group", "/user")
        if user is not None:
            found = await self._catalog.look(users.find_user_by_id, user)
            if found is None:
                raise Invalid(f"there is no user {user!r}", "/user")
            return SubjectKind.USER, found.id, found.username
        there = await self._catalog.look(grants.find_group, group or "")
        if there is None:
            raise Invalid(f"there is no group {group!r}", "/group")
        return SubjectKind.GROUP, there.id, there.name
