"""The form that takes packages of another registry into a repository, and shows the page of the job."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.http.responses import Response
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

PLACE: Final = "/repositories/<storage>/<name>/settings/import"
TEXTS: Final = ("kind", "source", "username", "repositories", "only", "names")

pages = PageTable()


@pages.get(PLACE)
async def show_import(visit: Visit) -> Response:
    """The form, and the last imports into the repository."""
    repository = await visit.repository()
    kinds = await visit.api("GET", "/import")
    fitting = [each for each in kinds if repository.format in (*each.addresses, *each.folders)]
    return visit.page(
        "administration/import.html",
        repository=repository,
        tab="settings",
        kinds=fitting,
        typed=visit.sent.texts(*TEXTS),
        dry_run=visit.sent.flag("dry_run") or "source" not in visit.sent,
    )


@pages.post(PLACE, page=show_import)
async def start_import(visit: Visit, form: Form) -> Response:
    """Start an import, and show the page of its job; or that of the one that runs already."""
    fields: dict[str, Any] = {
        **form.texts("kind", "source"),
        "into": visit.at["repository"],
        "repositories": form.text("repositories").split(),
        "only": form.text("only").split(),
        "names": form.lines("names"),
        "dry_run": form.flag("dry_run"),
        "again": form.flag("again"),
    }
    if secret := form.secret("secret"):
        username = form.text("username")
        fields["credentials"] = {"username": username, "password" if username else "token": secret}
    return await visit.start_job("/import", **fields)
