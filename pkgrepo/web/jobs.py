"""The list of jobs, the page of each, and the forms that start and cancel them."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.http.responses import Refusal, Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.rendering.filters import JOB_KINDS
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

PER_PAGE: Final = 50
FILTERS: Final = ("kind", "state", "sort", "cursor")

STARTS: Final = {  # the last part of the operation's path by the kind of the job
    "gc": "gc",
    "rebuild": "rebuild",
    "cache_purge": "cache/purge",
    "verify": "verify",
}


pages = PageTable()


@pages.get("/admin/jobs")
async def jobs(visit: Visit) -> Response:
    """The jobs, the newest first, with filters."""
    query: dict[str, Any] = {"limit": PER_PAGE}
    query |= {name: visit.query(name) for name in FILTERS if visit.query(name)}
    listed = await visit.api("GET", "/job", query=query)
    return visit.page("jobs/jobs.html", listed=listed, order=visit.query("sort") or "-created_at", kinds=JOB_KINDS)


@pages.get("/admin/jobs/<id>")
async def job(visit: Visit, id: str) -> Response:
    """One job. The script of the console loads this page again while the job runs."""
    return await _page(visit, id)


@pages.post("/admin/jobs/<id>/cancel")
async def cancel(visit: Visit, _form: Form, id: str) -> Response:
    """Cancel the job."""
    try:
        await visit.api("POST", "/job/<id>/cancel", {"id": id})
    except REFUSED as error:
        return await _page(visit, id, error=str(error))
    return visit.redirect_to("admin", "jobs", id)


@pages.post("/repositories/<storage>/<name>/settings/jobs/<kind>")
async def start(visit: Visit, form: Form, storage: str, name: str, kind: str) -> Response:
    """Start a job on a repository, and show its page; or that of the one that runs already."""
    if kind not in STARTS:
        raise Refusal(404, "there is no job of this kind", "not_found")
    operation = f"/repository/<repository>/{STARTS[kind]}"
    place, query = {"repository": f"{storage}/{name}"}, {"wait": 0}
    try:
        answer: Response = await visit.api("POST", operation, place, query=query, fields=_options(kind, form))
    except Refusal as refused:
        location = dict(refused.headers).get(b"Location")
        if location is None:
            raise
        return _shown(visit, location)
    return _shown(visit, dict(answer.headers)[b"Location"])


async def _page(visit: Visit, id: str, error: str = "") -> Response:
    job = await visit.api("GET", "/job/<id>", {"id": id})
    return visit.page("jobs/job.html", job=job, kinds=JOB_KINDS, error=error)


def _shown(visit: Visit, location: bytes) -> Response:
    """Send the browser to the page of the job at this address of the API."""
    return visit.redirect_to("admin", "jobs", location.decode("ascii").rpartition("/")[2])


def _options(kind: str, form: Form) -> dict[str, Any] | None:
    """The body of the request that starts the job."""
    options: dict[str, Any] = {"dry_run": form.flag("dry_run")}
    match kind:
        case "gc":
            options["delete_untagged"] = form.flag("delete_untagged")
            if form.flag("at_once"):
                options["grace_seconds"] = 0
            if form.flag("idle_uploads"):
                options["upload_idle_seconds"] = 3600
        case "cache_purge":
            options |= {name: form.text(name) for name in ("pattern", "older_than") if form.text(name)}
            options["documents_only"] = form.flag("documents_only")
        case _:
            return None
    return options
