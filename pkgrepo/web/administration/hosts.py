"""Host names and path prefixes that stand for repositories."""

from __future__ import annotations

from pkgrepo.http.responses import Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

pages = PageTable()


@pages.get("/admin/hosts")
async def show_hosts(visit: Visit) -> Response:
    """The names with their repositories, and the form that adds one."""
    return await _page(visit)


@pages.post("/admin/hosts")
async def change_hosts(visit: Visit, form: Form) -> Response:
    """Add a name, or remove one."""
    name = form.text("name")
    kind = "aliases" if name.startswith("/") else "hosts"
    path = None if form.flag("remove") else form.text("repository")
    try:
        await visit.api("PATCH", "/system/hosts", fields={kind: {name: path}})
    except REFUSED as error:
        return await _page(visit, error=str(error))
    return visit.redirect("/admin/hosts")


async def _page(visit: Visit, error: str = "") -> Response:
    found = await visit.api("GET", "/system/hosts")
    rows = [
        (name, path, fixed)
        for fixed, tables in ((False, found), (True, found.configured))
        for name, path in (*tables.hosts.items(), *tables.aliases.items())
    ]
    return visit.page(
        "administration/hosts.html",
        rows=sorted(rows),
        missing=found.missing,
        error=error,
    )
