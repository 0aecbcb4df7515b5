"""The route to a job."""

from __future__ import annotations

from pkgrepo.errors import AuthenticationRequired, Forbidden, NotFound
from pkgrepo.gateway.image_addresses import FORMAT
from pkgrepo.management.api.access_rules import SCOPED, AccessRule
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.route import Table
from pkgrepo.model import Action
from pkgrepo.proxy.upkeep.purge import PURGE
from pkgrepo.storage.catalog.server.jobs import Job

from .records import job_record
from .schema import JobRecord

JOB_READERS = AccessRule("the action that starting the job needs", container_scoped=True)


class BackgroundJobs(Handlers):
    """Shows background jobs that are running or ended within the last seven days."""

    table = Table("jobs")

    @table.route("GET", "/job/<id>", access=JOB_READERS, summary="Show a job", answer=JobRecord)
    async def get(self, call: Call, id: str) -> JobRecord:
        """A job that ended is shown for seven days. Callers without the permission are answered with 404."""
        if call.identity.anonymous:
            raise AuthenticationRequired
        job = await self._services.jobs.find(id)
        repository = None if job is None else self._registry.find_uid(str(job.data.get("repository", "")))
        if job is None or repository is None or not await call.may(_needed(job), repository):
            raise NotFound("job", id)
        if call.identity.scoped and repository.format != FORMAT:
            raise Forbidden(SCOPED)
        return job_record(job)


def _needed(job: Job) -> Action:
    """The action that starting a job of this kind needs."""
    return Action.EDIT if job.kind == PURGE else Action.ADMIN
