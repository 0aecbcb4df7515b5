"""The pages of stages: what waits for an approval, and the forms that open, approve and reject."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.http.responses import Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

PER_PAGE: Final = 50
FILTERS: Final = ("repository", "state", "cursor")
STATES: Final = ("open", "approved", "rejected", "expired")

pages = PageTable()


@pages.get("/admin/stages")
async def list_stages(visit: Visit) -> Response:
    """The stages of which the visitor may see something, the newest first."""
    return await _list(visit)


@pages.post("/admin/stages")
async def open_stage(visit: Visit, form: Form) -> Response:
    """Open a stage, and show it."""
    place = {"repository": form.text("repository")}
    try:
        made = await visit.api(
            "POST", "/repository/<repository>/stages", place, fields={"description": form.text("description")}
        )
    except REFUSED as error:
        return await _list(visit, error=str(error))
    return visit.redirect_to("admin", "stages", made.id)


@pages.get("/admin/stages/<id>")
async def show_stage(visit: Visit, id: str) -> Response:
    """A stage, with what is staged in it."""
    return await _show(visit, id)


@pages.post("/admin/stages/<id>/approve")
async def approve(visit: Visit, form: Form, id: str) -> Response:
    """Publish what the visitor saw."""
    serial = form.text("serial")
    fields = {"serial": int(serial)} if serial.isdecimal() and len(serial) < 19 else {}
    try:
        await visit.api("POST", "/stages/<id>/approve", {"id": id}, fields=fields)
    except REFUSED as error:
        return await _show(visit, id, error=str(error))
    return visit.redirect_to("admin", "stages", id)


@pages.post("/admin/stages/<id>/reject")
async def reject(visit: Visit, form: Form, id: str) -> Response:
    """Give up what is staged."""
    try:
        await visit.api("POST", "/stages/<id>/reject", {"id": id}, fields={"reason": form.text("reason")})
    except REFUSED as error:
        return await _show(visit, id, error=str(error))
    return visit.redirect_to("admin", "stages", id)


async def _list(visit: Visit, error: str = "") -> Response:
    query: dict[str, Any] = {"limit": PER_PAGE}
    query |= {name: visit.query(name) for name in FILTERS if visit.query(name)}
    listed = await visit.api("GET", "/stages", query=query)
    return visit.page("stages/stages.html", listed=listed, states=STATES, error=error)


async def _show(visit: Visit, id: str, error: str = "") -> Response:
    stage = await visit.api("GET", "/stages/<id>", {"id": id})
    own = stage.by == visit.identity.username
    return visit.page("stages/stage.html", status=409 if error else 200, stage=stage, own=own, error=error)
