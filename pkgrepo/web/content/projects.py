"""The list of projects, and the page of each with its members and names."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Response
from pkgrepo.web.rendering.languages import marked, said
from pkgrepo.web.tables import REFUSED, PageTable
from pkgrepo.web.visits import Form, Visit

PER_PAGE: Final = 50
MOST_LISTED: Final = 1000  # repositories that a form suggests
PROJECT: Final = "/projects/<key>"
FIELDS: Final = ("name", "description", "visibility")
ROLES: Final = {
    "guest": marked("reads packages of the project in repositories that are not private"),
    "reporter": marked("reads the packages of the project"),
    "developer": marked("also publishes them"),
    "maintainer": marked("also replaces, deletes and yanks them, and changes the project"),
    "owner": marked("also decides who its members are, and deletes the project"),
}


pages = PageTable()


@pages.get("/projects")
async def show_projects(visit: Visit) -> Response:
    """The projects that the caller may see; with ``repository`` and ``package`` the one that owns this name."""
    asked = visit.asked("repository", "package")
    owner, found = None, ""
    if len(asked) == 2 and not visit.error:
        try:
            owner = await visit.api("GET", "/project/by-key/<repository>/<package>", asked)
        except REFUSED as error:
            found = str(error)
    return visit.page(
        "projects/projects.html",
        listed=await visit.api("GET", "/project", query=visit.asked("sort", "cursor", limit=PER_PAGE)),
        order=visit.query("sort") or "key",
        repositories=await _repositories(visit),
        owner=owner,
        found=found,
    )


@pages.get(PROJECT)
async def show_project(visit: Visit) -> Response:
    """One project."""
    return visit.page(
        "projects/project.html",
        project=await visit.api("GET", "/project/<key>"),
        repositories=await _repositories(visit),
        roles=ROLES,
    )


async def _repositories(visit: Visit) -> Any:
    return (await visit.api("GET", "/repository", query={"limit": MOST_LISTED, "type": "Hosted"})).items


def _member(form: Form) -> dict[str, Any]:
    """A user or a group with a role."""
    return {form.text("kind") or "user": form.text("name"), **form.texts("role")}


def _left(form: Form) -> dict[str, Any]:
    """A user or a group that is taken out."""
    return {form.text("kind"): form.text("id")}


def _unbound(form: Form) -> dict[str, Any]:
    """Names that are taken from the project."""
    return {**form.texts("repository"), "pattern": form.secret("pattern")}


@pages.post(f"{PROJECT}/delete", page=show_project, then="/projects")
async def delete_project(visit: Visit, form: Form) -> None:
    """Delete the project, whose key is typed as confirmation."""
    if form.text("confirm") != visit.at["key"]:
        raise Invalid(said("type %(name)s to confirm", name=visit.at["key"]))
    await visit.api("DELETE", "/project/<key>")


pages.operation("/projects", "POST", "/project", ("key", *FIELDS), page=show_projects, then="/projects/<made.key>")
pages.operation(PROJECT, "PATCH", "/project/<key>", FIELDS, page=show_project)
pages.operation(f"{PROJECT}/members", "POST", "/project/<key>/members", _member, page=show_project)
pages.operation(f"{PROJECT}/members/remove", "DELETE", "/project/<key>/members", query=_left, page=show_project)
pages.operation(f"{PROJECT}/names", "POST", "/project/<key>/bindings", ("repository", "pattern"), page=show_project)
pages.operation(f"{PROJECT}/names/remove", "DELETE", "/project/<key>/bindings", query=_unbound, page=show_project)
