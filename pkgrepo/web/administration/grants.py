"""Who may do what where: users as rows, repositories as columns."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from urllib.parse import urlencode

from pkgrepo.http.answers import Answer
from pkgrepo.web.forms import Form
from pkgrepo.web.refused import REFUSED
from pkgrepo.web.tables import Pages, PageTable
from pkgrepo.web.visits import Visit

ROWS: Final = 30  # users on a page
COLUMNS: Final = 6  # repositories on a page
KEPT: Final = ("q", "repositories", "cursor", "columns")  # the query that a change of a cell leaves alone


class GrantPages(Pages):
    """The matrix of grants. A link in each cell shows the form that changes it."""

    pages: ClassVar = PageTable()

    @pages.get("/admin/grants")
    async def grants(self, visit: Visit) -> Answer:
        """A part of the matrix, and with ``user`` and ``repository`` the form of this cell."""
        return await self._page(visit, visit.query("user"), visit.query("repository"))

    @pages.post("/admin/grants")
    async def change(self, visit: Visit, form: Form) -> Answer:
        """Set or remove the grant of one cell, and show the matrix as it was."""
        user, repository = form.text("user"), form.text("repository")
        operation, cell = "/users/<id>/permissions/<place>", {"id": user, "place": repository}
        try:
            if form.flag("remove"):
                await visit.api("DELETE", operation, cell)
            else:
                await visit.api("PUT", operation, cell, fields={"actions": form.all("actions")})
        except REFUSED as error:
            return await self._page(visit, user, repository, error=str(error))
        return visit.redirect("/admin/grants?" + urlencode({name: form.text(name) for name in KEPT if form.text(name)}))

    async def _page(self, visit: Visit, user: str, repository: str, error: str = "") -> Answer:
        rows: dict[str, Any] = {"limit": ROWS}
        rows |= {name: visit.query(name) for name in ("q", "cursor") if visit.query(name)}
        shown = (("q", "repositories"), ("cursor", "columns"))
        columns: dict[str, Any] = {"limit": COLUMNS}
        columns |= {name: visit.query(field) for name, field in shown if visit.query(field)}
        chosen = None
        if user and repository:
            found = await visit.api("GET", "/users/<id>", {"id": user})
            permissions = await visit.api("GET", "/users/<id>/permissions", {"id": user})
            own = [each for each in permissions.repositories if (each.repository, each.via) == (repository, "user")]
            chosen = {"user": found, "repository": repository, "grant": own[0] if own else None}
        return visit.page(
            "administration/grants.html",
            status=422 if error else 200,
            listed=await visit.api("GET", "/permissions", query=rows),
            repositories=await visit.api("GET", "/repository", query=columns),
            scopes=await visit.api("GET", "/info/scopes"),
            chosen=chosen,
            kept=KEPT,
            error=error,
        )
