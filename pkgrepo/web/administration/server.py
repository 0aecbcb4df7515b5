"""The overview, the storages and the audit log."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from urllib.parse import urlencode

from pkgrepo.errors import AuthenticationRequired, Forbidden, Invalid
from pkgrepo.http.answers import Answer
from pkgrepo.web.forms import Form
from pkgrepo.web.refused import REFUSED
from pkgrepo.web.tables import Pages, PageTable
from pkgrepo.web.visits import Visit

PER_PAGE: Final = 100
FILTERS: Final = ("actor", "object", "action", "outcome", "from", "to", "sort", "cursor")


class ServerPages(Pages):
    """The pages about the server as a whole."""

    pages: ClassVar = PageTable()

    @pages.get("/admin")
    async def overview(self, visit: Visit) -> Answer:
        """What the caller may manage."""
        identity = visit.identity
        if identity.anonymous:
            raise AuthenticationRequired
        if not (identity.admin or identity.system_manager or identity.user_manager):
            raise Forbidden("this is for admins, system managers and user managers")
        info = await visit.api("GET", "/info")
        storages = await visit.api("GET", "/storage") if identity.admin or identity.system_manager else None
        return visit.page("administration/overview.html", info=info, storages=storages)

    @pages.post("/admin/storages")
    async def add_storage(self, visit: Visit, form: Form) -> Answer:
        """Add a storage in the data folder, or at a path."""
        fields: dict[str, Any] = {"name": form.text("name"), "type": "Local"}
        if form.text("path"):
            fields["settings"] = {"path": form.text("path")}
        try:
            await visit.api("POST", "/storage", fields=fields)
        except REFUSED as error:
            info, storages = await visit.api("GET", "/info"), await visit.api("GET", "/storage")
            return visit.page(
                "administration/overview.html", status=422, info=info, storages=storages, error=str(error)
            )
        return visit.redirect("/admin")

    @pages.get("/admin/audit")
    async def audit(self, visit: Visit) -> Answer:
        """The audit log, the newest rows first, with filters."""
        query = {name: visit.query(name) for name in FILTERS if visit.query(name)}
        query |= {name: f"{query[name][:10]}T00:00:00Z" for name in ("from", "to") if name in query}
        try:
            listed, error = await visit.api("GET", "/audit", query={**query, "limit": PER_PAGE}), ""
        except Invalid as wrong:
            listed, error = await visit.api("GET", "/audit", query={"limit": PER_PAGE}), str(wrong)
        return visit.page(
            "administration/audit.html",
            status=422 if error else 200,
            listed=listed,
            order="-time" if error else visit.query("sort") or "-time",
            error=error,
            api_query=f"?{urlencode(query)}",
        )
