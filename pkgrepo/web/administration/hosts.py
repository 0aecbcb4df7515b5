"""Host names and path prefixes that stand for repositories."""

from __future__ import annotations

from typing import Any

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Response
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

pages = PageTable()


@pages.get("/admin/hosts")
async def show_hosts(visit: Visit) -> Response:
    """The names with their repositories, and the form that adds one."""
    found = await visit.api("GET", "/system/hosts")
    rows = [
        (name, path, fixed)
        for fixed, tables in ((False, found), (True, found.configured))
        for name, path in (*tables.hosts.items(), *tables.aliases.items())
    ]
    return visit.page("administration/hosts.html", rows=sorted(rows), missing=found.missing)


def _changed(form: Form) -> dict[str, Any]:
    """The name that is added, or removed."""
    name = form.text("name")
    path = None if form.flag("remove") else form.text("repository")
    return {"aliases" if name.startswith("/") else "hosts": {name: path}}


@pages.post("/admin/hosts", page=show_hosts)
async def change_hosts(visit: Visit, form: Form) -> None:
    """Add a name, or remove one."""
    if not form.flag("remove"):
        await visit.api("GET", "/repository/<repository>", {"repository": form.text("repository").partition("@")[0]})
    try:
        await visit.api("PATCH", "/system/hosts", fields=_changed(form))
    except Invalid as error:
        raise Invalid(error.message, "/name") from None
