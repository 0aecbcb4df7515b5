"""The routes of garbage collection."""

from __future__ import annotations

from pkgrepo.errors import existing
from pkgrepo.http.answers import Answer
from pkgrepo.management.api.access_rules import ADMINS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.route import DRY_RUN, Parameter, Table
from pkgrepo.repositories.upkeep.gc import KIND, GcOptions

from .records import collection_record, job_record
from .schema import Collection, CollectionWish, JobRecord
from .waiting import STILL_RUNNING, WAIT, run_job

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
        further=STILL_RUNNING,
    )
    async def collect(self, call: Call, body: CollectionWish) -> Collection | Answer:
        """
        Removes stored bytes that nothing refers to, and with delete_untagged also manifests without a tag.

        One collection runs at a time on each storage: while another one runs, the answer is 409 with its Location. The
        field kept lists what was not removed, with the reason.
        """
        repository = call.repository
        storage = self._registry.storage(repository.storage_id)
        options = GcOptions(
            grace_s=body.grace_seconds,
            untagged=body.delete_untagged or call.flag("untagged"),
            dry_run=body.dry_run or call.flag("dry_run"),
            actor=call.actor,
        )
        job = await run_job(
            self._services,
            call,
            kind=KIND,
            key=storage.uid,
            data={**options.to_json(), "on": f"storage {storage.name!r}"},
            work=lambda progress: self._services.collector.collect(storage, [repository], options, progress),
        )
        return job if isinstance(job, Answer) else collection_record(job)

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
        return job_record(job, call.repository)
