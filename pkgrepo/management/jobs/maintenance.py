"""The routes that start garbage collections, rebuilds and verifications as jobs, and wait for their results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from pkgrepo.errors import Conflict, Invalid, existing
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response
from pkgrepo.management.api.access_rules import ADMINS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.problems import FaultRecord
from pkgrepo.management.api.route import DRY_RUN, Parameter, Table
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.management.jobs.schema import (
    Collection,
    CollectionWish,
    JobRecord,
    Rebuilt,
    Verified,
    collection_record,
    job_record,
)
from pkgrepo.model import Repository
from pkgrepo.repositories.upkeep.gc import KIND as GC_KIND
from pkgrepo.repositories.upkeep.gc import GcOptions
from pkgrepo.repositories.upkeep.jobs import Progress, Work
from pkgrepo.repositories.upkeep.rebuild import KIND as REBUILD
from pkgrepo.repositories.upkeep.rebuild import rebuild_documents
from pkgrepo.repositories.upkeep.verify import Verifier
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server.jobs import Job, JobRunning

WAIT_S = 25  # seconds; proxies give up after 30 or 60
MOST_WAIT_S = 300
WAIT = Parameter(
    "wait",
    "Seconds to wait for the result (0 to 300, 25 by default; true is 300, false is 0). A job that still runs: 202.",
)
STILL_RUNNING = ((202, "The job still runs; Location is its address."),)  # of a route that uses ``run_job``
UNTAGGED = Parameter("untagged", "The same as delete_untagged in the body.", "boolean")
VERIFY: Final = "verify"  # of the job
MOST_PROBLEMS: Final = 100  # that the row of the job has

table = Table("repositories")


async def run_job(call: Call, *, kind: str, key: str, data: Mapping[str, Any], work: Work) -> Job | Response:
    """
    Start a job for the repository of the call, and wait as long as the query says.

    Returns the job when it is done, or the answer 202 with its address while it runs; to a request that does not wait
    always that. ``data`` has the place ``on`` which it works.

    :raises Refusal: see ``answer_job``
    """
    details = {**data, "repository": call.repository.uid, "by": call.actor.name}
    return await answer_job(call, partial(call.services.jobs.begin, kind, key, details, work), call.repository)


async def answer_job(
    call: Call, begin: Callable[[], Awaitable[str]], repository: Repository | None = None
) -> Job | Response:
    """
    What ``run_job`` returns, for a job that ``begin`` starts, also one about no repository.

    :raises Refusal: 409 if a job of this kind and key runs already, 503 if the job failed
    """
    seconds = _wait_s(call)
    try:
        uid = await begin()
    except JobRunning as error:
        raise Refusal(
            409,
            str(error),
            "conflict",
            headers=((b"Location", _address(error.job)),),
            errors=(FaultRecord(pointer="job", code="running", message=error.job.uid),),
        ) from None
    job = await call.services.jobs.wait(uid, seconds)
    if job.state == "done" and seconds:
        return job
    if job.ended and seconds:
        raise Refusal(503, "; ".join(job.result.get("errors", ())) or "the job failed", "unavailable")
    return json_response(job_record(job, repository), 202, headers=((b"Location", _address(job)), *NO_STORE))


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


@table.post(
    "/repository/<repository>/rebuild",
    ADMINS,
    "Rebuild the metadata of a repository from its files",
    query=(WAIT, Parameter("package", "Only this package, for example com.example:app.")),
    audit="repository.rebuild",
    further=STILL_RUNNING,
)
async def rebuild(call: Call) -> Rebuilt | Response:
    """
    Only for Maven repositories (409): maven-metadata.xml is made anew of the stored files and of what was uploaded.

    One rebuild runs at a time on each repository: while another one runs, the answer is 409 with its Location.
    """
    repository, shared = call.repository, call.services.shared
    format_ = call.services.formats[repository.format]
    if format_.tree is None:
        raise Conflict(f"the documents of {repository.format} repositories are not rebuilt")
    name = call.query("package")
    key = format_.package_key(name) if name else None
    if key is not None:
        existing(await call.catalog.look(packages.package_serial, repository.id, key), "package", key)
    work = partial(
        rebuild_documents,
        shared.catalog,
        shared.content,
        repository,
        format_.tree,
        format_.index,
        key,
        call.actor,
    )
    job = await run_job(call, kind=REBUILD, key=repository.uid, data={"on": repository.path}, work=work)
    if isinstance(job, Response):
        return job
    return Rebuilt(job_id=job.uid, packages=job.result["packages"], changed=job.result["changed"])


@table.post(
    "/repository/<repository>/gc",
    ADMINS,
    "Collect garbage in a repository",
    query=(WAIT, DRY_RUN, UNTAGGED),
    audit="repository.gc",
    further=STILL_RUNNING,
)
async def collect_garbage(call: Call, body: CollectionWish) -> Collection | Response:
    """
    Removes stored bytes that nothing refers to, and with delete_untagged also manifests without a tag.

    One collection runs at a time on each storage: while another one runs, the answer is 409 with its Location. The
    field kept lists what was not removed, with the reason.
    """
    repository = call.repository
    storage = call.registry.storage(repository.storage_id)
    options = GcOptions(
        grace_s=body.grace_seconds,
        uploads_idle_s=body.upload_idle_seconds,
        untagged=body.delete_untagged or call.flag("untagged"),
        dry_run=body.dry_run or call.flag("dry_run"),
        actor=call.actor,
    )
    job = await run_job(
        call,
        kind=GC_KIND,
        key=storage.uid,
        data={**options.to_json(), "on": f"storage {storage.name!r}"},
        work=lambda progress: call.services.collector.collect(storage, [repository], options, progress),
    )
    return job if isinstance(job, Response) else collection_record(job)


@table.get("/repository/<repository>/gc", ADMINS, "Show the last garbage collection")
async def last_collection(call: Call) -> JobRecord:
    """The last collection on the storage of the repository, running or ended; 404 if there is none."""
    storage = call.registry.storage(call.repository.storage_id)
    job = existing(await call.services.jobs.last(GC_KIND, storage.uid), "garbage collection", call.repository.path)
    return job_record(job, call.repository)


@table.post(
    "/repository/<repository>/verify",
    ADMINS,
    "Verify the stored bytes of a repository",
    query=(WAIT,),
    audit="repository.verify",
    further=STILL_RUNNING,
)
async def verify(call: Call) -> Verified | Response:
    """
    Reads every blob of the repository and compares its digest; missing and damaged ones are not served any more.

    One runs at a time on each repository: while another one does, the answer is 409 with its Location.
    """
    repository = call.repository
    job = await run_job(
        call,
        kind=VERIFY,
        key=repository.uid,
        data={"on": repository.path},
        work=partial(_verify, call.services, repository),
    )
    return job if isinstance(job, Response) else Verified(job_id=job.uid, **job.result)


async def _verify(services: ManagementServices, repository: Repository, progress: Progress) -> Mapping[str, Any]:
    verifier = Verifier(services.maintenance, progress=progress, repair=False, mender=services.mender)
    report = await verifier.run_blobs(repository)
    more = len(report.problems) - MOST_PROBLEMS
    return {
        "blobs": report.blobs,
        "size_bytes": report.size,
        "missing": report.missing,
        "damaged": report.damaged,
        "errors": [*report.problems[:MOST_PROBLEMS], *([f"{more} further problems were found"] if more > 0 else ())],
    }
