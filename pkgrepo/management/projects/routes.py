"""The routes that list, add, show, change and remove projects."""

from __future__ import annotations

from msgspec import UNSET

from pkgrepo.errors import NotFound
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, PROJECT_FINDERS, PROJECT_VIEWERS, SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.names import parse_visibility
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Created, Table, sorting
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Project, ProjectRole
from pkgrepo.storage.catalog.people import projects

from .access import ProjectAccess
from .schema import NewProject, ProjectChange, ProjectRecord, ProjectSummary


class Projects(Handlers):
    """
    The projects of the server.

    Maintainers change a project, owners remove it, system managers add one.
    """

    table = Table("projects")

    def __init__(self, services: ManagementServices) -> None:
        super().__init__(services)
        self._access = ProjectAccess(services)

    @table.route(
        "GET",
        "/project",
        access=PROJECT_VIEWERS,
        summary="List the projects that the caller may see",
        answer=ProjectSummary,
        paged=True,
        query=[sorting(projects.PROJECT_ORDERS, "key")],
    )
    async def list_page(self, call: Call) -> Page[ProjectSummary]:
        """Private projects are listed only for their members and for system managers."""
        page_request, order = call.page_request, call.order(projects.PROJECT_ORDERS, "key")
        found: list[Project] = []
        after, step = page_request.after_position(order), page_request.limit + 1
        while len(found) <= page_request.limit:
            some = await self._catalog.scan(projects.list_projects, after=after, limit=step, order=order.name)
            found += await self._access.visible(call, some)
            if len(some) < step:
                break
            after = order.position(some[-1])
        return page_request.page(found, order.place, ProjectSummary.of)

    @table.route(
        "POST",
        "/project",
        access=SYSTEM_MANAGERS,
        summary="Add a project",
        body=NewProject,
        answer=ProjectRecord,
        status=201,
        audit="project.create",
    )
    async def create(self, call: Call, body: NewProject) -> Created:
        """The caller becomes its first owner. The quota is stored, but not enforced."""
        project = await call.write(
            call.entry(body.key),
            projects.add_project,
            key=body.key,
            name=body.name,
            description=body.description,
            visibility=parse_visibility(body.visibility),
            quota=body.quota,
            owner_id=call.identity.user_id,
            now_ms=call.now_ms,
        )
        return Created(await self._access.record(call, project), f"/api/project/{project.key}")

    @table.route(
        "GET",
        "/project/by-key/<repository>/<package>",
        access=PROJECT_FINDERS,
        summary="Show the project that owns a package name",
        answer=ProjectRecord,
    )
    async def by_key(self, call: Call) -> ProjectRecord:
        """The package need not exist. The answer is 404 if no project that the caller may see owns the name."""
        package = call.package or ""
        repository = call.repository
        project = await self._services.authorizer.owning_project(repository, package)
        if project is None or not await self._access.visible(call, [project]):
            raise NotFound("owner of package", package)
        return await self._access.record(call, project)

    @table.route("GET", "/project/<key>", access=PROJECT_VIEWERS, summary="Show a project", answer=ProjectRecord)
    async def get(self, call: Call, key: str) -> ProjectRecord:
        """The project is found by key or id."""
        return await self._access.record(call, await self._access.find(call, key))

    @table.route(
        "PATCH",
        "/project/<key>",
        access=ACCOUNT_HOLDERS,
        summary="Change a project",
        body=ProjectChange,
        answer=ProjectRecord,
        audit="project.update",
        conditional=True,
    )
    async def change(self, call: Call, body: ProjectChange, key: str) -> ProjectRecord:
        """Also needs the role maintainer or owner, unless the caller is a system manager. The key cannot be changed."""
        project = await self._access.find(call, key, ProjectRole.MAINTAINER)
        call.check_unchanged(await self._access.record(call, project))
        changes = body.given("name", "description", "quota")
        if body.visibility is not UNSET:
            changes["visibility"] = parse_visibility(body.visibility)
        project = await call.write(
            call.entry(project.key, changes), projects.update_project, project.id, now_ms=call.now_ms, **changes
        )
        return await self._access.record(call, project)

    @table.route(
        "DELETE",
        "/project/<key>",
        access=ACCOUNT_HOLDERS,
        summary="Remove a project",
        status=204,
        audit="project.delete",
        conditional=True,
    )
    async def delete(self, call: Call, key: str) -> None:
        """Also needs the role owner, unless the caller is a system manager. Its packages stay, without an owner."""
        project = await self._access.find(call, key, ProjectRole.OWNER)
        call.check_unchanged(await self._access.record(call, project))
        await call.write(call.entry(project.key), projects.remove_project, project.id)
