"""The form that takes packages of another registry into a repository, and shows the page of the job."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.http.responses import Refusal, Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit, find_repository

PLACE: Final = "/repositories/<storage>/<name>/settings/import"
TEXTS: Final = ("kind", "source", "username", "repositories", "only", "names")

pages = PageTable()


@pages.get(PLACE)
async def show_import(visit: Visit, storage: str, name: str) -> Response:
    """The form, and the last imports into the repository."""
    return await _page(visit, storage, name)


@pages.post(PLACE)
async def start_import(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Start an import, and show the page of its job; or that of the one that runs already."""
    fields: dict[str, Any] = {
        "kind": form.text("kind"),
        "source": form.text("source"),
        "into": f"{storage}/{name}",
        "repositories": form.text("repositories").split(),
        "only": form.text("only").split(),
        "names": form.lines("names"),
        "dry_run": form.flag("dry_run"),
        "again": form.flag("again"),
    }
    if secret := form.secret("secret"):
        username = form.text("username")
        fields["credentials"] = {"username": username, "password" if username else "token": secret}
    try:
        answer: Response = await visit.api("POST", "/import", query={"wait": 0}, fields=fields)
        location = dict(answer.headers)[b"Location"]
    except REFUSED as error:
        running = dict(error.headers).get(b"Location") if isinstance(error, Refusal) else None
        if running is None:
            return await _page(visit, storage, name, form, str(error))
        location = running
    return visit.redirect_to("admin", "jobs", location.decode("ascii").rpartition("/")[2])


async def _page(visit: Visit, storage: str, name: str, form: Form | None = None, error: str = "") -> Response:
    repository = await find_repository(visit, storage, name)
    kinds = await visit.api("GET", "/import")
    fitting = [each for each in kinds if repository.format in (*each.addresses, *each.folders)]
    return visit.page(
        "administration/import.html",
        repository=repository,
        tab="settings",
        kinds=fitting,
        typed={each: form.text(each) if form else "" for each in TEXTS},
        dry_run=form is None or form.flag("dry_run"),
        error=error,
    )
