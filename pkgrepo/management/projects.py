"""Projects: made, listed, changed, deleted; their members and the names that they own."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from pkgrepo.errors import AuthenticationRequired, Forbidden, Invalid, NotFound
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Action, Project, ProjectRole, Repository, SubjectKind, Visibility
from pkgrepo.storage.catalog import grants, identity, projects

from .call import Call
from .pages import Page
from .repository_records import visibility_of
from .route import Created, Parameter, Table
from .schemas.projects import (
    BindingGiven,
    BindingRecord,
    MemberGiven,
    MemberRecord,
    NewProject,
    ProjectChange,
    ProjectRecord,
    ProjectSummary,
)
from .services import ManagementServices
from .who import PUBLIC, SELF, SYSTEM_MANAGERS

USER = Parameter("user", "The user, by name or id.")
GROUP = Parameter("group", "The group, by name or id.")


class Projects:
    """
    The projects of the server.

    A private project is known to its members and to system managers; its maintainers change it, its owners decide who
    belongs to it. Which names it owns is for system managers to say, since that takes them from everybody else.
    """

    table = Table("projects")

    def __init__(self, services: ManagementServices) -> None:
        self._services = services
        self._catalog: ICatalog = services.catalog

    @table.route(
        "GET",
        "/project",
        who=PUBLIC,
        summary="List the projects that the caller may see",
        answer=ProjectSummary,
        paged=True,
    )
    async def list_page(self, call: Call) -> Page[ProjectSummary]:
        """By key."""
        wanted = call.wanted
        found: list[Project] = []
        after, step = wanted.after(""), wanted.limit + 1
        while len(found) <= wanted.limit:
            some = await self._catalog.scan(projects.list_projects, after=after, limit=step)
            found += [each for each in some if self._may_see(call, each)]
            if len(some) < step:
                break
            after = some[-1].key
        return wanted.page(found, lambda project: project.key, _summary)

    @table.route(
        "POST",
        "/project",
        who=SYSTEM_MANAGERS,
        summary="Add a project",
        body=NewProject,
        answer=ProjectRecord,
        status=201,
        audit="project.create",
    )
    async def create(self, call: Call, body: NewProject) -> Created:
        """Its first owner is the caller."""
        project = await call.write(
            call.entry(body.key),
            projects.add_project,
            key=body.key,
            name=body.name,
            description=body.description,
            visibility=visibility_of(body.visibility),
            quota=body.quota,
            owner_id=call.identity.user_id,
            now_ms=call.now_ms,
        )
        return Created(self._shown(call, project), f"/api/project/{project.key}")

    @table.route(
        "GET",
        "/project/by-key/<repository>/<package>",
        who=PUBLIC,
        summary="Show the project that owns a package's name",
        answer=ProjectRecord,
    )
    async def by_key(self, call: Call) -> ProjectRecord:
        """Whether the package exists or not."""
        package = call.package or ""
        repository = call.repository
        project = self._services.authorizer.owning_project(repository, package)
        if project is None or not self._may_see(call, project) or not call.may(Action.READ, repository, package):
            raise NotFound("owner of package", package)
        return self._shown(call, project)

    @table.route("GET", "/project/<key>", who=PUBLIC, summary="Show a project", answer=ProjectRecord)
    async def get(self, call: Call, key: str) -> ProjectRecord:
        """By key or id."""
        return self._shown(call, self._find(call, key))

    @table.route(
        "PATCH",
        "/project/<key>",
        who=SELF,
        summary="Change a project",
        body=ProjectChange,
        answer=ProjectRecord,
        audit="project.update",
        conditional=True,
    )
    async def change(self, call: Call, body: ProjectChange, key: str) -> ProjectRecord:
        """For its maintainers."""
        project = self._find(call, key, ProjectRole.MAINTAINER)
        call.check_unchanged(self._shown(call, project))
        changes: dict[str, Any] = {
            name: value for name in ("name", "description", "quota") if (value := getattr(body, name)) is not UNSET
        }
        if body.visibility is not UNSET:
            changes["visibility"] = visibility_of(body.visibility)
        project = await call.write(
            call.entry(project.key, changes), projects.update_project, project.id, now_ms=call.now_ms, **changes
        )
        return self._shown(call, project)

    @table.route(
        "DELETE",
        "/project/<key>",
        who=SELF,
        summary="Remove a project",
        status=204,
        audit="project.delete",
        conditional=True,
    )
    async def delete(self, call: Call, key: str) -> None:
        """For its owners; the packages stay, and belong to nobody."""
        project = self._find(call, key, ProjectRole.OWNER)
        call.check_unchanged(self._shown(call, project))
        await call.write(call.entry(project.key), projects.remove_project, project.id)

    @table.route(
        "GET", "/project/<key>/members", who=PUBLIC, summary="List a project's members", answer=list[MemberRecord]
    )
    async def members(self, call: Call, key: str) -> list[MemberRecord]:
        """Users before groups."""
        return self._shown(call, self._find(call, key)).members

    @table.route(
        "POST",
        "/project/<key>/members",
        who=SELF,
        summary="Give somebody a role in a project",
        body=MemberGiven,
        answer=ProjectRecord,
        audit="project.member",
        aliases=[("PUT", "/project/<key>/members")],
    )
    async def set_member(self, call: Call, body: MemberGiven, key: str) -> ProjectRecord:
        """For its owners; somebody who has a role already gets this one instead."""
        project = self._find(call, key, ProjectRole.OWNER)
        kind, subject_id, name = self._subject(body.user, body.group)
        entry = call.entry(project.key, {kind: name, "role": body.role})
        await call.write(entry, projects.set_project_member, project.id, kind, subject_id, body.role)
        return self._shown(call, project)

    @table.route(
        "DELETE",
        "/project/<key>/members",
        who=SELF,
        summary="End a membership",
        status=204,
        query=(USER, GROUP),
        audit="project.member",
    )
    async def remove_member(self, call: Call, key: str) -> None:
        """For its owners."""
        project = self._find(call, key, ProjectRole.OWNER)
        kind, subject_id, name = self._subject(call.query("user") or None, call.query("group") or None)
        entry = call.entry(project.key, {kind: name, "role": None})
        await call.write(entry, projects.set_project_member, project.id, kind, subject_id, None)

    @table.route(
        "GET",
        "/project/<key>/bindings",
        who=PUBLIC,
        summary="List the names that a project owns",
        answer=list[BindingRecord],
    )
    async def bindings(self, call: Call, key: str) -> list[BindingRecord]:
        """In repositories that the caller may read."""
        return self._shown(call, self._find(call, key)).bindings

    @table.route(
        "POST",
        "/project/<key>/bindings",
        who=SYSTEM_MANAGERS,
        summary="Give names to a project",
        body=BindingGiven,
        answer=ProjectRecord,
        audit="project.binding",
        aliases=[("PUT", "/project/<key>/bindings")],
    )
    async def bind(self, call: Call, body: BindingGiven, key: str) -> ProjectRecord:
        """Names that are another project's are refused (409)."""
        project = self._find(call, key)
        repository = self._repository(body.repository, "/repository")
        entry = call.entry(project.key, {"repository": repository.path, "pattern": body.pattern})
        await call.write(entry, projects.bind_names, repository.id, body.pattern, project.id)
        return self._shown(call, project)

    @table.route(
        "DELETE",
        "/project/<key>/bindings",
        who=SYSTEM_MANAGERS,
        summary="Take names from a project",
        status=204,
        query=[Parameter("repository", "Its id, or storage/name."), Parameter("pattern", "The pattern.")],
        audit="project.binding",
    )
    async def unbind(self, call: Call, key: str) -> None:
        """Nobody owns them then."""
        project = self._find(call, key)
        repository = self._repository(call.query("repository"), "repository")
        pattern = call.query("pattern")
        bound = self._catalog.look(projects.list_bindings, project_id=project.id, repository_id=repository.id)
        if all(each.pattern != pattern for each in bound):
            raise NotFound("binding", pattern)
        entry = call.entry(project.key, {"repository": repository.path, "unbound": pattern})
        await call.write(entry, projects.unbind_names, repository.id, pattern)

    # Below

    def _find(self, call: Call, key: str, role: ProjectRole | None = None) -> Project:
        """The project, if the caller may know of it and, when ``role`` is given, has that role or a higher one."""
        project: Project | None = self._catalog.look(projects.find_project, key)
        if project is None or not self._may_see(call, project):
            raise NotFound("project", key)
        call.object = project.key
        if role is not None and not self._manages(call):
            if call.identity.anonymous:
                raise AuthenticationRequired
            held = self._role(call, project)
            if held is None or held.rank < role.rank:
                raise Forbidden(f"this needs the role {role} in project {project.key!r}, or above")
        return project

    def _may_see(self, call: Call, project: Project) -> bool:
        return project.visibility is Visibility.PUBLIC or self._manages(call) or self._role(call, project) is not None

    def _manages(self, call: Call) -> bool:
        return self._services.authorizer.may_use(call.identity, "system")

    def _role(self, call: Call, project: Project) -> ProjectRole | None:
        if call.identity.user_id is None:
            return None
        roles: dict[int, ProjectRole] = self._catalog.look(projects.roles_of_user, call.identity.user_id)
        return roles.get(project.id)

    def _subject(self, user: str | None, group: str | None) -> tuple[SubjectKind, int, str]:
        if (user is None) == (group is None):
            raise Invalid("name either a user or a group", "/user")
        if user is not None:
            found = self._catalog.look(identity.find_user_by_uid, user) or self._catalog.look(
                identity.find_user_by_name, user
            )
            if found is None:
                raise Invalid(f"there is no user {user!r}", "/user")
            return SubjectKind.USER, found.id, found.username
        there = self._catalog.look(grants.find_group, group or "")
        if there is None:
            raise Invalid(f"there is no group {group!r}", "/group")
        return SubjectKind.GROUP, there.id, there.name

    def _repository(self, name: str, pointer: str) -> Repository:
        storage, slash, rest = name.partition("/")
        registry = self._services.registry
        repository = registry.find(storage, rest) if slash else registry.find_uid(name)
        if repository is None:
            raise Invalid(f"there is no repository {name!r}", pointer)
        return repository

    def _shown(self, call: Call, project: Project) -> ProjectRecord:
        members = self._catalog.look(projects.list_project_members, project.id)
        bound = self._catalog.look(projects.list_bindings, project_id=project.id)
        places = [(self._services.registry.find_id(each.repository_id), each.pattern) for each in bound]
        return ProjectRecord(
            id=project.uid,
            key=project.key,
            name=project.name,
            description=project.description,
            visibility=project.visibility,
            quota=project.quota,
            created_at=project.created_at,
            updated_at=project.updated_at,
            members=[
                MemberRecord(kind=each.subject_kind, id=each.subject_uid, name=each.subject_name, role=each.role)
                for each in members
            ],
            bindings=[
                BindingRecord(repository_id=repository.uid, repository=repository.path, pattern=pattern)
                for repository, pattern in places
                if repository is not None and call.may(Action.READ, repository)
            ],
        )


def _summary(project: Project) -> ProjectSummary:
    return ProjectSummary(
        id=project.uid,
        key=project.key,
        name=project.name,
        description=project.description,
        visibility=project.visibility,
        created_at=project.created_at,
        updated_at=project.updated_at,
    )
