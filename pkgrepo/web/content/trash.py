"""The page of the trash, with the forms that restore what was deleted and delete it for good."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.http.responses import Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

PER_PAGE: Final = 50
FILTERS: Final = ("repository", "cursor")

pages = PageTable()


@pages.get("/admin/trash")
async def show_trash(visit: Visit) -> Response:
    """What the visitor may restore, the newest first."""
    return await _page(visit)


@pages.post("/admin/trash/<id>/restore")
async def restore(visit: Visit, _form: Form, id: str) -> Response:
    """Restore an entry, and show its package or repository."""
    try:
        restored = await visit.api("POST", "/trash/<id>/restore", {"id": id})
    except REFUSED as error:
        return await _page(visit, error=str(error))
    storage, _, name = restored.repository.partition("/")
    return visit.redirect_to(
        "repositories", storage, name, *(("packages", restored.package) if restored.package else ())
    )


@pages.post("/admin/trash/<id>/purge")
async def purge(visit: Visit, _form: Form, id: str) -> Response:
    """Delete an entry for good."""
    try:
        await visit.api("DELETE", "/trash/<id>", {"id": id})
    except REFUSED as error:
        return await _page(visit, error=str(error))
    return visit.redirect_to("admin", "trash")


async def _page(visit: Visit, error: str = "") -> Response:
    query: dict[str, Any] = {"limit": PER_PAGE}
    query |= {name: visit.query(name) for name in FILTERS if visit.query(name)}
    listed = await visit.api("GET", "/trash", query=query)
    return visit.page("trash/trash.html", listed=listed, error=error)
