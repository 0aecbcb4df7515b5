"""The tokens of everyone, those first that nobody has used for the longest time."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.http.responses import Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

PER_PAGE: Final = 100
FILTERS: Final = ("user", "unused_days", "without_second_factor", "sort", "cursor")

pages = PageTable()


@pages.get("/admin/tokens")
async def show_tokens(visit: Visit) -> Response:
    """The tokens that work, with filters."""
    return await _page(visit)


@pages.post("/admin/tokens")
async def revoke_token(visit: Visit, form: Form) -> Response:
    """Revoke one."""
    try:
        await visit.api("DELETE", "/token/<id>", {"id": form.text("id")})
    except (*REFUSED, NotFound) as error:
        return await _page(visit, error=str(error))
    return visit.redirect("/admin/tokens")


async def _page(visit: Visit, error: str = "") -> Response:
    query: dict[str, Any] = {name: visit.query(name) for name in FILTERS if visit.query(name)}
    try:
        listed = await visit.api("GET", "/token", query={**query, "limit": PER_PAGE})
    except (Invalid, NotFound) as wrong:
        listed, error = await visit.api("GET", "/token", query={"limit": PER_PAGE}), str(wrong)
    return visit.page(
        "administration/tokens.html",
        listed=listed,
        order=visit.query("sort") or "last_used_at",
        error=error,
    )
