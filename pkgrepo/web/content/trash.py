"""The page of the trash, with the forms that restore what was deleted and delete it for good."""

from __future__ import annotations

from typing import Final

from pkgrepo.http.responses import Response
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

PER_PAGE: Final = 50
FILTERS: Final = ("repository", "cursor")

pages = PageTable()


@pages.get("/admin/trash")
async def show_trash(visit: Visit) -> Response:
    """What the visitor may restore, the newest first."""
    listed = await visit.api("GET", "/trash", query=visit.asked(*FILTERS, limit=PER_PAGE))
    return visit.page("trash/trash.html", listed=listed)


@pages.get("/repositories/<storage>/<name>/trash")
async def show_trash_of_repository(visit: Visit) -> Response:
    """What the visitor may restore of a repository."""
    query = visit.asked("cursor", limit=PER_PAGE, repository=visit.at["repository"])
    return visit.page(
        "repositories/trash.html",
        repository=await visit.repository(),
        tab="trash",
        listed=await visit.api("GET", "/trash", query=query),
    )


@pages.post("/admin/trash/<id>/restore", page=show_trash)
async def restore(visit: Visit, _form: Form) -> Response:
    """Restore an entry, and show its package or repository."""
    restored = await visit.api("POST", "/trash/<id>/restore")
    storage, _, name = restored.repository.partition("/")
    package = "/packages/<package>" if restored.package else ""
    path = f"/repositories/<storage>/<name>{package}"
    return visit.redirect(path, storage=storage, name=name, package=restored.package)


pages.operation("/admin/trash/<id>/purge", "DELETE", "/trash/<id>", page=show_trash)
