"""Jobs as the API shows them."""

from __future__ import annotations

from pkgrepo.errors import AuthenticationRequired, Forbidden, NotFound
from pkgrepo.gateway.images import FORMAT
from pkgrepo.model import Action

from .call import Call
from .job_records import job_record
from .route import Table
from .schemas.gc import JobRecord
from .services import ManagementServices
from .who import SCOPED, Who

JOB_READERS = Who("admins of the repository that it is about", registry=True)


class BackgroundJobs:
    """What runs in the background, and what ran there in the last days."""

    table = Table("jobs")

    def __init__(self, services: ManagementServices) -> None:
        self._services = services

    @table.route("GET", "/job/<id>", who=JOB_READERS, summary="Show a job", answer=JobRecord)
    async def get(self, call: Call, id: str) -> JobRecord:
        """For admins of the repository that the job is about."""
        if call.identity.anonymous:
            raise AuthenticationRequired
        job = self._services.jobs.find(id)
        repository = None if job is None else self._services.registry.find_uid(str(job.data.get("repository", "")))
        if job is None or repository is None or not call.may(Action.ADMIN, repository):
            raise NotFound("job", id)
        if call.identity.scoped and repository.format != FORMAT:
            raise Forbidden(SCOPED)
        return job_record(job)
