"""Jobs as the API shows them."""

from __future__ import annotations

from pkgrepo.errors import AuthenticationRequired, NotFound
from pkgrepo.model import Action

from .call import Call
from .job_records import job_record
from .route import Table
from .schemas.gc import JobRecord
from .services import ManagementServices
from .who import PUBLIC


class BackgroundJobs:
    """What runs in the background, and what ran there in the last days."""

    table = Table("jobs")

    def __init__(self, services: ManagementServices) -> None:
        self._services = services

    @table.route("GET", "/job/<id>", who=PUBLIC, summary="Show a job", answer=JobRecord)
    async def get(self, call: Call, id: str) -> JobRecord:
        """For admins of the repository that the job is about."""
        if call.identity.anonymous:
            raise AuthenticationRequired
        job = self._services.jobs.find(id)
        repository = None if job is None else self._services.registry.find_uid(str(job.data.get("repository", "")))
        if job is None or repository is None or not call.may(Action.ADMIN, repository):
            raise NotFound("job", id)
        return job_record(job)
