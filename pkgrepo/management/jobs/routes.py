"""The routes that list, show and cancel jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import msgspec
from attrs import frozen

from pkgrepo.auth.permissions.format_rights import has_images
from pkgrepo.errors import AuthenticationFailed, AuthenticationRequired, Forbidden, NotFound
from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import SCOPED, AccessRule
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Parameter, Table, sorting
from pkgrepo.management.api.streams import event_stream, rounds, wants_stream
from pkgrepo.management.jobs.schema import job_record
from pkgrepo.model import Action, Repository
from pkgrepo.proxy.purge import PURGE
from pkgrepo.repositories.upkeep.mirrors import KIND as MIRROR
from pkgrepo.storage.catalog.server.jobs import JOB_ORDERS, Job

from .schema import JobRecord

RUNNING: Final = "running"
JOB_READERS = AccessRule("the action that starting the job needs", container_scoped=True)
JOB_VIEWERS = AccessRule("a login; the answer contains only jobs that the caller could start")


@frozen
class _Seen:
    """A job that the caller may see, with its repository, if it is about one."""

    job: Job
    repository: Repository | None


table = Table("jobs")


@table.command(
    "jobs list",
    options="kind, state, limit 50",
    columns="JOB: id | KIND: kind | STATE: state | ON: on | BY: started_by | BEGAN: created_at:ago | "
    "ERRORS: errors:joined",
    nothing="there are no such jobs that you may see",
    more="Those of the last seven days, the newest first.",
)
@table.get(
    "/job",
    JOB_VIEWERS,
    "List jobs",
    query=[
        Parameter("kind", "Only jobs of this kind, such as gc."),
        Parameter("state", "Only jobs in this state: running, done, failed or cancelled."),
        sorting(JOB_ORDERS, "-created_at"),
    ],
)
async def list_jobs(call: Call) -> Page[JobRecord]:
    """The time that a job took is that from its start to its end; a running one took longest."""
    if call.identity.anonymous:
        raise AuthenticationRequired
    page_request = call.page_request
    found: list[_Seen] = []
    order = call.order(JOB_ORDERS, "-created_at")
    after, step = page_request.after_position(order), page_request.limit + 1
    while len(found) <= page_request.limit:
        some = await call.services.jobs.list_page(
            after=after, limit=step, kind=call.query("kind"), state=call.query("state"), order=order.name
        )
        found += [seen for job in some if (seen := await _see(call, job)) is not None]
        if len(some) < step:
            break
        after = order.position(some[-1])
    return page_request.page(found, lambda seen: order.place(seen.job), _record)


@table.get("/job/<id>", JOB_READERS, "Show a job")
async def show_job(call: Call, id: str) -> JobRecord | Response:
    """
    A job that ended is shown for seven days. Callers without the permission are answered with 404.

    With "Accept: text/event-stream" the answer is a stream of server-sent events: the job whenever it has changed. It
    ends with the job, with the permission, and after some minutes. A caller may have 10 streams.
    """
    found = await _find(call, id)
    return event_stream(call, lambda: _changes(call, id)) if wants_stream(call) else _record(found)


async def _changes(call: Call, id: str) -> AsyncIterator[bytes]:
    """The job as events, until it has ended or the caller may not see it any more."""
    last = b""
    with suppress(AuthenticationFailed, AuthenticationRequired, Forbidden, NotFound):
        async for silent in rounds(call):
            record = _record(await _find(call, id))
            text = msgspec.json.encode(record)
            if text != last:
                last = text
                yield b"event: job\ndata: %b\n\n" % text
            elif silent:
                yield b": it still runs\n\n"
            if record.state != RUNNING:
                return


@table.command("jobs cancel ID", "job {id} is to end ({state})", more="What it has done so far stays.")
@table.post("/job/<id>/cancel", JOB_READERS, "Cancel a job", audit="job.cancel")
async def cancel_job(call: Call, id: str) -> JobRecord:
    """
    What the job has done so far stays. The answer is 409 if it has ended.

    A job of another process of the server ends some seconds after the answer, which has cancel_asked until then.
    """
    seen = await _find(call, id)
    call.object = seen.job.data.get("on", id)
    return _record(_Seen(await call.services.jobs.cancel(id), seen.repository))


async def _find(call: Call, id: str) -> _Seen:
    if call.identity.anonymous:
        raise AuthenticationRequired
    job = await call.services.jobs.find(id)
    seen = None if job is None else await _see(call, job)
    if seen is None:
        raise NotFound("job", id)
    if call.identity.scoped and (seen.repository is None or not has_images(seen.repository)):
        raise Forbidden(SCOPED)
    return seen


async def _see(call: Call, job: Job) -> _Seen | None:
    """The job with its repository; None if the caller may not see it."""
    repository = call.registry.find_uid(str(job.data.get("repository", "")))
    if repository is None:
        return _Seen(job, None) if await call.services.callers.authorizer.may_use(call.identity, "system") else None
    return _Seen(job, repository) if await call.may(_needed(job), repository) else None


def _record(seen: _Seen) -> JobRecord:
    return job_record(seen.job, seen.repository)


def _needed(job: Job) -> Action:
    """The action that starting a job of this kind needs."""
    return Action.EDIT if job.kind in (PURGE, MIRROR) else Action.ADMIN
