"""The pages of stages: what waits for an approval, and the forms that open, approve and reject."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.http.responses import Response
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

PER_PAGE: Final = 50
FILTERS: Final = ("repository", "state", "cursor")
STAGES: Final = "/admin/stages"
STAGE: Final = f"{STAGES}/<id>"
OF_REPOSITORY: Final = "/repositories/<storage>/<name>/stages"
MOST_OPEN: Final = 30  # stages of a page that are looked at for what waits
STATES: Final = ("open", "approved", "rejected", "expired")

pages = PageTable()


@pages.get(STAGES)
async def list_stages(visit: Visit) -> Response:
    """The stages of which the visitor may see something, the newest first."""
    listed = await visit.api("GET", "/stages", query=visit.asked(*FILTERS, limit=PER_PAGE))
    return visit.page("stages/stages.html", listed=listed, states=STATES)


@pages.get(STAGE)
async def show_stage(visit: Visit) -> Response:
    """A stage, with what is staged in it."""
    stage = await visit.api("GET", "/stages/<id>")
    own = stage.by == visit.identity.username
    return visit.page("stages/stage.html", status=409 if visit.error else 200, stage=stage, own=own)


def _seen(form: Form) -> dict[str, Any]:
    """What the visitor saw, which alone is published."""
    serial = form.text("serial")
    return {"serial": int(serial)} if serial.isdecimal() and len(serial) < 19 else {}


@pages.get(OF_REPOSITORY)
async def list_of_repository(visit: Visit) -> Response:
    """The stages of a repository."""
    return visit.page(
        "repositories/stages.html",
        repository=await visit.repository(),
        tab="stages",
        listed=await visit.api("GET", "/repository/<repository>/stages", query=visit.asked("cursor", limit=PER_PAGE)),
    )


@pages.get("/waiting")
async def show_waiting(visit: Visit) -> Response:
    """What waits for a decision that the visitor may make: stages, and versions in quarantine."""
    more = {"cursor": visit.query("stages")} if visit.query("stages") else {}
    found = await visit.api("GET", "/stages", query={"state": "open", "limit": MOST_OPEN, **more})
    stages = [await visit.api("GET", "/stages/<id>", {"id": each.id}) for each in found.items if each.items]
    own = [each for each in stages if each.may_approve]
    held = await visit.api("GET", "/policy/quarantine", query=visit.asked("cursor", limit=PER_PAGE))
    return visit.page("home/waiting.html", rows=own, others=len(stages) - len(own), held=held, more=found.next)


pages.operation(
    OF_REPOSITORY,
    "POST",
    "/repository/<repository>/stages",
    ("description",),
    page=list_of_repository,
    then=f"{STAGES}/<made.id>",
)
pages.operation(
    STAGES, "POST", "/repository/<repository>/stages", ("description",), page=list_stages, then=f"{STAGES}/<made.id>"
)
pages.operation(f"{STAGE}/approve", "POST", "/stages/<id>/approve", _seen, page=show_stage)
pages.operation(f"{STAGE}/reject", "POST", "/stages/<id>/reject", ("reason",), page=show_stage)
