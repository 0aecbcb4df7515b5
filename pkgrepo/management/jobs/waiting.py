"""Requests that start a job and wait for its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pkgrepo.errors import Invalid
from pkgrepo.http.answers import NO_STORE, Answer, Refusal, json_answer
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.problems import FaultRecord
from pkgrepo.management.api.route import Parameter
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.repositories.upkeep.jobs import Work
from pkgrepo.storage.catalog.server.jobs import Job, JobRunning

from .records import job_record

WAIT_S = 25  # seconds; proxies give up after 30 or 60
MOST_WAIT_S = 300
WAIT = Parameter(
    "wait",
    "Seconds to wait for the result (0 to 300, 25 by default; true is 300, false is 0). A job that still runs: 202.",
)
STILL_RUNNING = ((202, "The job still runs; Location is its address."),)  # of a route that uses ``run_job``


async def run_job(
    services: ManagementServices, call: Call, *, kind: str, key: str, data: Mapping[str, Any], work: Work
) -> Job | Answer:
    """
    Start a job for the repository of the call, and wait as long as the query says.

    Returns the job when it is done, or the answer 202 with its address while it runs; to a request that does not wait
    always that. ``data`` has the place ``on`` which it works.

    :raises Refusal: 409 if a job of this kind and key runs already, 503 if the job failed
    """
    seconds = _wait_s(call)
    details = {**data, "repository": call.repository.uid, "by": call.actor.name}
    try:
        uid = await services.jobs.begin(kind, key, details, work)
    except JobRunning as error:
        raise Refusal(
            409,
            str(error),
            "conflict",
            headers=((b"Location", _address(error.job)),),
            errors=(FaultRecord(pointer="job", code="running", message=error.job.uid),),
        ) from None
    job = await services.jobs.wait(uid, seconds)
    if job.state == "done" and seconds:
        return job
    if job.ended and seconds:
        raise Refusal(503, "; ".join(job.result.get("errors", ())) or "the job failed", "unavailable")
    return json_answer(job_record(job, call.repository), 202, headers=((b"Location", _address(job)), *NO_STORE))


def _address(job: Job) -> bytes:
    return b"/api/job/%s" % job.uid.encode("ascii")


def _wait_s(call: Call) -> int:
    text = call.query("wait").lower()
    if text in ("true", "yes"):
        return MOST_WAIT_S
    if text in ("false", "no"):
        return 0
    try:
        return call.integer("wait", WAIT_S, 0, MOST_WAIT_S)
    except Invalid:
        raise Invalid(f"wait is true, false or a number of seconds from 0 to {MOST_WAIT_S}", "wait") from None
