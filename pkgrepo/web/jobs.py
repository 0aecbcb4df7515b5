"""The list of jobs, the page of each, and the forms that start and cancel them."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.http.responses import Refusal, Response
from pkgrepo.web.rendering.languages import JOB_KINDS, marked
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
    listed = await visit.api("GET", "/job", query=visit.asked(*FILTERS, limit=PER_PAGE))
    return visit.page("jobs/jobs.html", listed=listed, order=visit.query("sort") or "-created_at", kinds=JOB_KINDS)


@pages.get("/admin/jobs/<id>")
async def job(visit: Visit) -> Response:
    """One job. The script of the console loads this page again while the job runs."""
    return visit.page("jobs/job.html", job=await visit.api("GET", "/job/<id>"), kinds=JOB_KINDS)


pages.operation("/admin/jobs/<id>/cancel", "POST", "/job/<id>/cancel", page=job)


@pages.post("/repositories/<storage>/<name>/settings/jobs/<kind>")
async def start(visit: Visit, form: Form) -> Response:
    """Start a job on a repository, and show its page; or that of the one that runs already."""
    kind = visit.at["kind"]
    if kind not in STARTS:
        raise Refusal(404, marked("there is no job of this kind"), "not_found")
    return await visit.start_job(f"/repository/<repository>/{STARTS[kind]}", **_options(kind, form))


def _options(kind: str, form: Form) -> dict[str, Any]:
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
            return {}
    return options
