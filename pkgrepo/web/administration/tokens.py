"""The tokens of everyone, those first that nobody has used for the longest time."""

from __future__ import annotations

from typing import Final

from pkgrepo.http.responses import Response
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Visit

PER_PAGE: Final = 100
FILTERS: Final = ("user", "unused_days", "without_second_factor", "sort", "cursor")

pages = PageTable()


@pages.get("/admin/tokens")
async def show_tokens(visit: Visit) -> Response:
    """The tokens that work, with filters."""
    return visit.page(
        "administration/tokens.html",
        listed=await visit.listed("/token", visit.asked(*FILTERS), PER_PAGE),
        rings=await visit.api("GET", "/user/canary"),
        order=visit.query("sort") or "last_used_at",
    )


pages.operation("/admin/tokens", "DELETE", "/token/<id>", page=show_tokens)
