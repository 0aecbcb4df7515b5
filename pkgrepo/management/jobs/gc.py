"""The routes of garbage collection."""

from __future__ import annotations

from pkgrepo.errors import Invalid, existing
from pkgrepo.http.answers import NO_STORE, Answer, Refusal, json_answer
from pkgrepo.management.api.access_rules import ADMINS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.problems import FaultRecord
from pkgrepo.management.api.route import DRY_RUN, Parameter, Table
from pkgrepo.model import Repository, Storage
from pkgrepo.repositories.upkeep.gc import KIND, GcOptions
from pkgrepo.storage.catalog.server.jobs import Job, JobRunning

from .records import collection_record, job_record
from .schema import Collection, CollectionWish, JobRecord

WAIT_S = 25  # seconds; proxies give up after 30 or 60
MOST_WAIT_S = 300
WAIT = Parameter(
    "wait",
    "Seconds to wait for the result (0 to 300, 25 by default; true is 300, false is 0). A job that still runs: 202.",
)
UNTAGGED = Parameter("untagged", "The same as delete_untagged in the body.", "boolean")


class GarbageCollection(Handlers):
    """
    Removes unreferenced manifests and blobs of a repository, and unused blobs of its storage.

    One collection runs at a time on each storage: a second request is answered with 409 and the address of the running
    job.
    """

    table = Table("repositories")

    @table.route(
        "POST",
        "/repository/<repository>/gc",
        access=ADMINS,
        summary="Collect garbage in a repository",
        body=CollectionWish,
        answer=Collection,
        query=(WAIT, DRY_RUN, UNTAGGED),
        audit="repository.gc",
        further=((202, "The job still runs; Location is its address."),),
    )
    async def collect(self, call: Call, body: CollectionWish) -> Collection | Answer:
        """
        Removes stored bytes that nothing refers to, and with delete_untagged also manifests without a tag.

        One collection runs at a time on each storage: while another one runs, the answer is 409 with its Location. The
        field kept lists what was not removed, with the reason.
        """
        seconds = _wait_s(call)
        repository = call.repository
        storage = self._registry.storage(repository.storage_id)
        options = GcOptions(
            grace_s=body.grace_seconds,
            untagged=body.delete_untagged or call.flag("untagged"),
            dry_run=body.dry_run or call.flag("dry_run"),
            actor=call.actor,
        )
        uid = await self._begin(repository, storage, options)
        job = await self._services.jobs.wait(uid, seconds)
        if job.state == "done":
            return collection_record(job)
        if job.ended:
            raise Refusal(503, "; ".join(job.result.get("errors", ())) or "the job failed", "unavailable")
        return json_answer(job_record(job), 202, headers=((b"Location", _address(job)), *NO_STORE))

    @table.route(
        "GET",
        "/repository/<repository>/gc",
        access=ADMINS,
        summary="Show the last garbage collection",
        answer=JobRecord,
    )
    async def last(self, call: Call) -> JobRecord:
        """The last collection on the storage of the repository, running or ended; 404 if there is none."""
        storage = self._registry.storage(call.repository.storage_id)
        job = existing(await self._services.jobs.last(KIND, storage.uid), "garbage collection", call.repository.path)
        return job_record(job)

    async def _begin(self, repository: Repository, storage: Storage, options: GcOptions) -> str:
        data = {**options.to_json(), "repository": repository.uid, "on": f"storage {storage.name!r}"}
        try:
            return await self._services.jobs.begin(
                KIND, storage.uid, data, lambda: self._services.collector.collect(storage, [repository], options)
            )
        except JobRunning as error:
            raise Refusal(
                409,
                str(error),
                "conflict",
                headers=((b"Location", _address(error.job)),),
                errors=(FaultRecord(pointer="job", code="running", message=error.job.uid),),
            ) from None


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
