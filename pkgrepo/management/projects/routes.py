"""The routes to projects, their members, and the package names that they own."""

from __future__ import annotations

from typing import Final

from attrs import evolve
from msgspec import UNSET

from pkgrepo.auth.permissions.ownership import check_pattern
from pkgrepo.errors import NotFound
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, PROJECT_FINDERS, PROJECT_VIEWERS, SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.names import find_subject, get_repository, parse_visibility
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Created, Parameter, Table, sorting
from pkgrepo.management.projects.access import (
    BindingGiven,
    BindingRecord,
    MemberGiven,
    MemberRecord,
    NewProject,
    ProjectChange,
    ProjectRecord,
    ProjectSummary,
    check_may_limit_projects,
    check_may_list_members,
    find_project,
    member_records,
    project_record,
    visible_projects,
)
from pkgrepo.management.quotas import (
    SET,
    SHOW,
    QuotaGiven,
    QuotaRecord,
    change_quota,
    limits_given,
    quota_record,
    with_limits,
)
from pkgrepo.model import Project, ProjectRole
from pkgrepo.storage.catalog.people import projects
from pkgrepo.storage.catalog.server import quotas
from pkgrepo.storage.catalog.server.quotas import QuotaKind

table = Table("projects")
USER = Parameter("user", "The name or id of the user.")
GROUP = Parameter("group", "The name or id of the group.")
GROUP_FLAG = {"--group": "The name is that of a group."}


@table.command(
    "project list",
    columns="PROJECT: key | NAME: name | VISIBILITY: visibility | CHANGED: updated_at:ago | DESCRIPTION: description",
    nothing="there are no projects that you may see",
)
@table.get(
    "/project",
    PROJECT_VIEWERS,
    "List the projects that the caller may see",
    query=[sorting(projects.PROJECT_ORDERS, "key")],
)
async def list_projects(call: Call) -> Page[ProjectSummary]:
    """Private projects are listed only for their members and for system managers."""
    page_request, order = call.page_request, call.order(projects.PROJECT_ORDERS, "key")
    found: list[Project] = []
    after, step = page_request.after_position(order), page_request.limit + 1
    while len(found) <= page_request.limit:
        some = await call.catalog.scan(projects.list_projects, after=after, limit=step, order=order.name)
        found += await visible_projects(call, some)
        if len(some) < step:
            break
        after = order.position(some[-1])
    return page_request.page(found, order.place, ProjectSummary.of)


@table.command(
    "project create KEY", "added project {key}", options="name, description, visibility", more="You become its owner."
)
@table.post("/project", SYSTEM_MANAGERS, "Add a project", audit="project.create")
async def create_project(call: Call, body: NewProject) -> Created[ProjectRecord]:
    """The caller becomes its first owner. The quota is the most bytes that its packages may have, or limits."""
    project = await call.write(
        call.entry(body.key),
        projects.add_project,
        key=body.key,
        name=body.name,
        description=body.description,
        visibility=parse_visibility(body.visibility),
        owner_id=call.identity.user_id,
        now_ms=call.now_ms,
    )
    if body.quota is not None:
        await change_quota(call, QuotaKind.PROJECT, project.id, project.key, body.quota)
    return Created(await project_record(call, project), f"/api/project/{project.key}")


SHOWN: Final = (
    "project: key | id: id | name: name | description: description | visibility: visibility | "
    "created: created_at:time | quota: :quota | members: :members | owns: bindings or 'no names':bindings"
)


@table.command("project owner STORAGE/REPOSITORY PACKAGE", fields=SHOWN)
@table.get("/project/by-key/<repository>/<package>", PROJECT_FINDERS, "Show the project that owns a package name")
async def find_project_by_key(call: Call) -> ProjectRecord:
    """The package need not exist. The answer is 404 if no project that the caller may see owns the name."""
    package = call.package or ""
    repository = call.repository
    project = await call.services.callers.authorizer.owning_project(repository, package)
    if project is None or not await visible_projects(call, [project]):
        raise NotFound("owner of package", package)
    return await project_record(call, project)


@table.command("project show KEY", fields=SHOWN, about="Show a project with its members and names.")
@table.get("/project/<key>", PROJECT_VIEWERS, "Show a project")
async def show_project(call: Call, key: str) -> ProjectRecord:
    """The project is found by key or id."""
    return await project_record(call, await find_project(call, key))


@table.command(
    "project edit KEY",
    "changed project {key}",
    options="name, description, visibility, quota:size",
    said={"--quota": "The most bytes of its packages, such as 5GiB; none removes the limit."},
)
@table.patch("/project/<key>", ACCOUNT_HOLDERS, "Change a project", audit="project.update", conditional=True)
async def change_project(call: Call, body: ProjectChange, key: str) -> ProjectRecord:
    """
    Also needs the role maintainer or owner, unless the caller is a system manager, who alone changes the quota.

    The key cannot be changed.
    """
    project = await find_project(call, key, ProjectRole.MAINTAINER)
    call.check_unchanged(await project_record(call, project))
    changes = body.given("name", "description")
    limits = limits_given(body.quota) if body.quota is not UNSET else {}
    before = await call.catalog.look(quotas.limits_of, QuotaKind.PROJECT, project.id)
    if evolve(before, **limits) != before:
        await check_may_limit_projects(call)
    if body.visibility is not UNSET:
        changes["visibility"] = parse_visibility(body.visibility)
    entry = call.entry(project.key, {**changes, "quota": limits} if limits else changes)
    update = with_limits(projects.update_project, QuotaKind.PROJECT, limits)
    project = await call.write(entry, update, project.id, now_ms=call.now_ms, **changes)
    return await project_record(call, project)


@table.command(
    "project delete KEY", "removed project {key}", ask="Remove project {key}? Its packages stay, without an owner."
)
@table.delete("/project/<key>", ACCOUNT_HOLDERS, "Remove a project", audit="project.delete", conditional=True)
async def delete_project(call: Call, key: str) -> None:
    """Also needs the role owner, unless the caller is a system manager. Its packages stay, without an owner."""
    project = await find_project(call, key, ProjectRole.OWNER)
    call.check_unchanged(await project_record(call, project))
    await call.write(call.entry(project.key), projects.remove_project, project.id)


@table.command("quota show project:KEY", **SHOW)
@table.get("/project/<key>/quota", PROJECT_VIEWERS, "Show the quota of a project")
async def show_quota(call: Call, key: str) -> QuotaRecord:
    """
    With what the packages use that it owns, in all hosted repositories, and what is in the trash of them.

    Also needs membership in the project, unless the caller is a system manager.
    """
    project = await find_project(call, key)
    await check_may_list_members(call, project)
    return await quota_record(call, QuotaKind.PROJECT, project.id, project.key)


@table.command("quota set project:KEY", **SET)
@table.patch("/project/<key>/quota", SYSTEM_MANAGERS, "Change the quota of a project", audit="quota.update")
async def change_project_quota(call: Call, body: QuotaGiven, key: str) -> QuotaRecord:
    """A limit below what is used refuses what adds to it, and removes nothing."""
    project = await find_project(call, key)
    return await change_quota(call, QuotaKind.PROJECT, project.id, project.key, body)


@table.get("/project/<key>/members", PROJECT_VIEWERS, "List a project's members")
async def list_members(call: Call, key: str) -> list[MemberRecord]:
    """Also needs membership in the project, unless the caller is a system manager. Users come before groups."""
    project = await find_project(call, key)
    await check_may_list_members(call, project)
    return await member_records(call, project)


@table.command(
    "project member KEY USER",
    "{user} is {role} in {key}",
    options="role developer",
    said=GROUP_FLAG,
    about="Set the role of a user in a project.",
)
@table.command(
    "project member KEY GROUP --group", "{user} is {role} in {key}", options="role developer", said=GROUP_FLAG
)
@table.post(
    "/project/<key>/members",
    ACCOUNT_HOLDERS,
    "Set the role of a user or group in a project",
    audit="project.member",
    aliases=[("PUT", "/project/<key>/members")],
)
async def set_member(call: Call, body: MemberGiven, key: str) -> ProjectRecord:
    """Also needs the role owner, unless the caller is a system manager. A role held before is replaced."""
    project = await find_project(call, key, ProjectRole.OWNER)
    kind, subject_id, name = await find_subject(call.catalog, body.user, body.group)
    entry = call.entry(project.key, {kind: name, "role": body.role})
    await call.write(entry, projects.set_project_member, project.id, kind, subject_id, body.role)
    return await project_record(call, project)


@table.command("project remove-member KEY USER", "{user} is no member of {key} any more", said=GROUP_FLAG)
@table.command("project remove-member KEY GROUP --group", "{user} is no member of {key} any more", said=GROUP_FLAG)
@table.delete(
    "/project/<key>/members",
    ACCOUNT_HOLDERS,
    "Remove a member from a project",
    query=(USER, GROUP),
    audit="project.member",
)
async def remove_member(call: Call, key: str) -> None:
    """Also needs the role owner, unless the caller is a system manager. Either user or group must be given."""
    project = await find_project(call, key, ProjectRole.OWNER)
    kind, subject_id, name = await find_subject(call.catalog, call.query("user") or None, call.query("group") or None)
    entry = call.entry(project.key, {kind: name, "role": None})
    await call.write(entry, projects.set_project_member, project.id, kind, subject_id, None)


@table.get("/project/<key>/bindings", PROJECT_VIEWERS, "List the package names that a project owns")
async def list_bindings(call: Call, key: str) -> list[BindingRecord]:
    """Only names in repositories that the caller may read."""
    return (await project_record(call, await find_project(call, key))).bindings


@table.command("project bind KEY STORAGE/REPOSITORY PATTERN", "{key} owns {pattern} in {repository}")
@table.post(
    "/project/<key>/bindings",
    SYSTEM_MANAGERS,
    "Assign package names to a project",
    audit="project.binding",
    aliases=[("PUT", "/project/<key>/bindings")],
)
async def bind(call: Call, body: BindingGiven, key: str) -> ProjectRecord:
    """The answer is 409 if another project owns the same pattern, 422 if it could match no package."""
    project = await find_project(call, key)
    repository = await get_repository(call.registry, body.repository, "/repository")
    check_pattern(repository, body.pattern, call.services.formats[repository.format].package_key)
    entry = call.entry(project.key, {"repository": repository.path, "pattern": body.pattern})
    await call.write(entry, projects.bind_names, repository.id, body.pattern, project.id)
    return await project_record(call, project)


@table.command(
    "project unbind KEY STORAGE/REPOSITORY PATTERN",
    "{key} does not own {pattern} in {repository} any more",
    more="PATTERN is written exactly as it was assigned.",
)
@table.delete(
    "/project/<key>/bindings",
    SYSTEM_MANAGERS,
    "Remove package names from a project",
    query=[
        Parameter("repository", "The repository of the names: its id, or storage/name."),
        Parameter("pattern", "The pattern exactly as it was assigned."),
    ],
    audit="project.binding",
)
async def unbind(call: Call, key: str) -> None:
    """The names then have no owning project. The answer is 404 if the project does not have this pattern."""
    project = await find_project(call, key)
    repository = await get_repository(call.registry, call.query("repository"), "repository")
    pattern = call.query("pattern")
    bound = await call.catalog.look(projects.list_bindings, project_id=project.id, repository_id=repository.id)
    if all(each.pattern != pattern for each in bound):
        raise NotFound("binding", pattern)
    entry = call.entry(project.key, {"repository": repository.path, "unbound": pattern})
    await call.write(entry, projects.unbind_names, repository.id, pattern)
