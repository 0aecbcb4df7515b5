"""The list of projects, and the page of each with its members and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.http.responses import Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

PER_PAGE: Final = 50
MOST_LISTED: Final = 1000  # repositories that a form suggests
SHOWN: Final = (*REFUSED, NotFound)
ROLES: Final = {
    "guest": "reads packages of the project in repositories that are not private",
    "reporter": "reads the packages of the project",
    "developer": "also publishes them",
    "maintainer": "also replaces, deletes and yanks them, and changes the project",
    "owner": "also decides who its members are, and deletes the project",
}


pages = PageTable()


@pages.get("/projects")
async def show_projects(visit: Visit) -> Response:
    """The projects that the caller may see; with ``repository`` and ``package`` the one that owns this name."""
    repository, package = visit.query("repository"), visit.query("package")
    if not repository or not package:
        return await _list(visit)
    try:
        owner = await visit.api(
            "GET", "/project/by-key/<repository>/<package>", {"repository": repository, "package": package}
        )
    except SHOWN as error:
        return await _list(visit, found=str(error))
    return await _list(visit, owner=owner)


@pages.post("/projects")
async def add_project(visit: Visit, form: Form) -> Response:
    """Add a project, and show it."""
    fields = {name: form.text(name) for name in ("key", "name", "description", "visibility")}
    try:
        made = await visit.api("POST", "/project", fields=fields)
    except REFUSED as error:
        return await _list(visit, error=str(error))
    return visit.redirect_to("projects", made.key)


@pages.get("/projects/<key>")
async def show_project(visit: Visit, key: str) -> Response:
    """One project."""
    return await _project(visit, key)


@pages.post("/projects/<key>")
async def change_project(visit: Visit, form: Form, key: str) -> Response:
    """Change name, description and visibility."""
    fields = {name: form.text(name) for name in ("name", "description", "visibility")}
    return await _do(visit, key, "PATCH", "/project/<key>", fields=fields)


@pages.post("/projects/<key>/members")
async def set_member(visit: Visit, form: Form, key: str) -> Response:
    """Give a user or a group a role."""
    fields = {form.text("kind") or "user": form.text("name"), "role": form.text("role")}
    return await _do(visit, key, "POST", "/project/<key>/members", fields=fields)


@pages.post("/projects/<key>/members/remove")
async def remove_member(visit: Visit, form: Form, key: str) -> Response:
    """Take a user or a group out."""
    query = {form.text("kind"): form.text("id")}
    return await _do(visit, key, "DELETE", "/project/<key>/members", query=query)


@pages.post("/projects/<key>/names")
async def bind(visit: Visit, form: Form, key: str) -> Response:
    """Assign names in a repository to the project."""
    fields = {name: form.text(name) for name in ("repository", "pattern")}
    return await _do(visit, key, "POST", "/project/<key>/bindings", fields=fields)


@pages.post("/projects/<key>/names/remove")
async def unbind(visit: Visit, form: Form, key: str) -> Response:
    """Take names from the project."""
    query = {"repository": form.text("repository"), "pattern": form.secret("pattern")}
    return await _do(visit, key, "DELETE", "/project/<key>/bindings", query=query)


@pages.post("/projects/<key>/delete")
async def delete_project(visit: Visit, form: Form, key: str) -> Response:
    """Delete the project, whose key is typed as confirmation."""
    try:
        if form.text("confirm") != key:
            raise Invalid(f"type {key} to confirm")
        await visit.api("DELETE", "/project/<key>", {"key": key})
    except REFUSED as error:
        return await _project(visit, key, error=str(error))
    return visit.redirect("/projects")


async def _do(
    visit: Visit,
    key: str,
    method: str,
    operation: str,
    *,
    fields: dict[str, Any] | None = None,
    query: Mapping[str, str] | None = None,
) -> Response:
    try:
        await visit.api(method, operation, {"key": key}, query=query, fields=fields)
    except SHOWN as error:
        return await _project(visit, key, error=str(error))
    return visit.redirect_to("projects", key)


async def _list(visit: Visit, *, error: str = "", owner: Any = None, found: str = "") -> Response:
    query: dict[str, Any] = {"limit": PER_PAGE}
    query |= {each: visit.query(each) for each in ("sort", "cursor") if visit.query(each)}
    return visit.page(
        "projects/projects.html",
        listed=await visit.api("GET", "/project", query=query),
        order=visit.query("sort") or "key",
        repositories=await _repositories(visit),
        error=error,
        owner=owner,
        found=found,
    )


async def _project(visit: Visit, key: str, error: str = "") -> Response:
    return visit.page(
        "projects/project.html",
        project=await visit.api("GET", "/project/<key>", {"key": key}),
        repositories=await _repositories(visit),
        roles=ROLES,
        error=error,
    )


async def _repositories(visit: Visit) -> Any:
    return (await visit.api("GET", "/repository", query={"limit": MOST_LISTED, "type": "Hosted"})).items
