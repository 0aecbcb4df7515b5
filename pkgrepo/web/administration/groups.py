"""Groups: their members, grants, roles and service accounts."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.http.responses import Response
from pkgrepo.web.administration.users import grants_of
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

MOST_LISTED: Final = 300  # repositories that a field suggests; all are taken
PER_PAGE: Final = 100

pages = PageTable()


@pages.get("/admin/groups")
async def show_groups(visit: Visit) -> Response:
    """The groups, with a filter, and the form for a new one."""
    return await _list(visit)


@pages.post("/admin/groups")
async def add_group(visit: Visit, form: Form) -> Response:
    """Add a group without members."""
    fields = {name: form.text(name) for name in ("name", "description")}
    try:
        made = await visit.api("POST", "/groups", fields=fields)
    except REFUSED as error:
        return await _list(visit, error=str(error))
    return visit.redirect_to("admin", "groups", made.id)


@pages.get("/admin/groups/<name>")
async def show_group(visit: Visit, name: str) -> Response:
    """One group, by its id or name."""
    return await _group(visit, name)


@pages.post("/admin/groups/<name>")
async def change_group(visit: Visit, form: Form, name: str) -> Response:
    """Change the name and the description."""
    fields = {each: form.text(each) for each in ("name", "description")}
    return await _do(visit, name, "PATCH", "/groups/<name>", fields)


@pages.post("/admin/groups/<name>/members")
async def change_members(visit: Visit, form: Form, name: str) -> Response:
    """Add a user, or remove a member."""
    method = "DELETE" if form.flag("remove") else "POST"
    return await _do(visit, name, method, "/groups/<name>/members", {"user": form.text("user")})


@pages.post("/admin/groups/<name>/grants")
async def set_grants(visit: Visit, form: Form, name: str) -> Response:
    """Set the grants: for each repository that is named, the actions that are checked."""
    return await _do(visit, name, "PUT", "/groups/<name>/permissions", {"repositories": grants_of(form)})


@pages.post("/admin/groups/<name>/delete")
async def delete_group(visit: Visit, _form: Form, name: str) -> Response:
    """Delete the group."""
    try:
        await visit.api("DELETE", "/groups/<name>", {"name": name})
    except REFUSED as error:
        return await _group(visit, name, error=str(error))
    return visit.redirect("/admin/groups")


async def _do(visit: Visit, name: str, method: str, operation: str, fields: dict[str, Any]) -> Response:
    try:
        await visit.api(method, operation, {"name": name}, fields=fields)
    except REFUSED as error:
        return await _group(visit, name, error=str(error))
    return visit.redirect_to("admin", "groups", name)


async def _list(visit: Visit, error: str = "") -> Response:
    query: dict[str, Any] = {"limit": PER_PAGE}
    query |= {each: visit.query(each) for each in ("q", "sort", "cursor") if visit.query(each)}
    return visit.page(
        "administration/groups.html",
        listed=await visit.api("GET", "/groups", query=query),
        order=visit.query("sort") or "name",
        error=error,
    )


async def _group(visit: Visit, name: str, error: str = "") -> Response:
    query: dict[str, Any] = {"limit": PER_PAGE}
    query |= {each: visit.query(each) for each in ("q", "cursor") if visit.query(each)}
    return visit.page(
        "administration/group.html",
        group=await visit.api("GET", "/groups/<name>", {"name": name}),
        members=await visit.api("GET", "/groups/<name>/members", {"name": name}, query=query),
        scopes=await visit.api("GET", "/info/scopes"),
        repositories=(await visit.api("GET", "/repository", query={"limit": MOST_LISTED})).items,
        error=error,
    )
