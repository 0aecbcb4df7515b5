"""The route that reads the stored bytes of a repository again and compares them with their digests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from pkgrepo.http.answers import Answer
from pkgrepo.management.api.access_rules import ADMINS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.route import Table
from pkgrepo.model import Repository
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.repositories.upkeep.verify import Verifier

from .schema import Verified
from .waiting import STILL_RUNNING, WAIT, run_job

KIND: Final = "verify"  # of the job
MOST_PROBLEMS: Final = 100  # that the row of the job has


class Verification(Handlers):
    """Checks stored blobs while the server runs; ``pkgrepo verify`` also checks the readable layout, and repairs."""

    table = Table("repositories")

    @table.route(
        "POST",
        "/repository/<repository>/verify",
        access=ADMINS,
        summary="Verify the stored bytes of a repository",
        answer=Verified,
        query=(WAIT,),
        audit="repository.verify",
        further=STILL_RUNNING,
    )
    async def verify(self, call: Call) -> Verified | Answer:
        """
        Reads every blob of the repository and compares its digest; missing and damaged ones are not served any more.

        One runs at a time on each repository: while another one does, the answer is 409 with its Location.
        """
        repository = call.repository
        job = await run_job(
            self._services,
            call,
            kind=KIND,
            key=repository.uid,
            data={"on": repository.path},
            work=partial(_verify, self._services.maintenance, repository),
        )
        return job if isinstance(job, Answer) else Verified(job_id=job.uid, **job.result)


async def _verify(context: MaintenanceContext, repository: Repository, progress: Progress) -> Mapping[str, Any]:
    report = await Verifier(context, progress=progress, repair=False).run_blobs(repository)
    more = len(report.problems) - MOST_PROBLEMS
    return {
        "blobs": report.blobs,
        "size_bytes": report.size,
        "missing": report.missing,
        "damaged": report.damaged,
        "errors": [*report.problems[:MOST_PROBLEMS], *([f"{more} further problems were found"] if more > 0 else ())],
    }
