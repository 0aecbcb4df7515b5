"""Groups: their members, grants, roles and service accounts."""

from __future__ import annotations

from typing import Final

from pkgrepo.http.responses import Response
from pkgrepo.web.administration.users import grants_of, matching
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

MOST_LISTED: Final = 300  # repositories that a field suggests; all are taken
PER_PAGE: Final = 100
GROUPS: Final = "/admin/groups"
GROUP: Final = "/admin/groups/<name>"
FIELDS: Final = ("name", "description")

pages = PageTable()


@pages.get(GROUPS)
async def show_groups(visit: Visit) -> Response:
    """The groups, with a filter, and the form for a new one."""
    return visit.page(
        "administration/groups.html",
        listed=await visit.api("GET", "/groups", query=visit.asked("q", "sort", "cursor", limit=PER_PAGE)),
        order=visit.query("sort") or "name",
    )


@pages.get(GROUP)
async def show_group(visit: Visit) -> Response:
    """One group, by its id or name."""
    group = await visit.api("GET", "/groups/<name>")
    return visit.page(
        "administration/group.html",
        group=group,
        matching=await matching(visit, group.repositories),
        members=await visit.api("GET", "/groups/<name>/members", query=visit.asked("q", "cursor", limit=PER_PAGE)),
        scopes=await visit.api("GET", "/info/scopes"),
        repositories=(await visit.api("GET", "/repository", query={"limit": MOST_LISTED})).items,
    )


@pages.post(f"{GROUP}/members", page=show_group)
async def change_members(visit: Visit, form: Form) -> None:
    """Add a user, or remove a member."""
    method = "DELETE" if form.flag("remove") else "POST"
    await visit.api(method, "/groups/<name>/members", fields=form.texts("user"))


pages.operation(GROUPS, "POST", "/groups", FIELDS, page=show_groups, then="/admin/groups/<made.id>")
pages.operation(GROUP, "PATCH", "/groups/<name>", FIELDS, page=show_group)
pages.operation(f"{GROUP}/grants", "PUT", "/groups/<name>/permissions", grants_of, page=show_group)
pages.operation(f"{GROUP}/delete", "DELETE", "/groups/<name>", page=show_group, then=GROUPS)
