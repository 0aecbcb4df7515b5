"""The changes of a deployment's state, and what is removed with its end."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import CancelledError
from twisted.logger import Logger

from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import Conflict, PkgrepoError
from pkgrepo.formats.maven.deploy.problems import WHOLE, Problems
from pkgrepo.formats.maven.deploy.publishing import Refused, status_of
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Refusal
from pkgrepo.model import Repository
from pkgrepo.model.deployments import Deployment, DeploymentState
from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.storage.catalog.packages.deployments import FAILED, PUBLISHING
from pkgrepo.storage.catalog.packages.interrupted_deployments import release

log = Logger()

STOPPED = 503  # the status for a client that waits for a deployment while the server stops


class Transitions:
    """Changes the states of deployments of one repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository

    async def move(
        self, deployment: Deployment, before: DeploymentState, after: DeploymentState, *, leased: bool
    ) -> None:
        """Change the state; ``leased`` if this process goes on with it. :raises Conflict: it is not ``before``"""
        now_ms = self._services.clock.now_ms()
        if not await self._services.catalog.write(
            deployments.set_state, deployment.id, before, after, leased=leased, now_ms=now_ms
        ):
            raise Conflict(f"the deployment is not {before.value} any more")

    async def move_back(self, deployment: Deployment, before: DeploymentState) -> None:
        """Make a deployment that was PUBLISHING wait again, unless it is published."""
        now_ms = self._services.clock.now_ms()
        await shield(
            self._services.catalog.write(
                deployments.set_state, deployment.id, PUBLISHING, before, leased=False, now_ms=now_ms
            )
        )

    async def give_up(self, deployment: Deployment, error: BaseException) -> int:
        """
        Stop the work of this process on a deployment. Returns the status for a client that waits.

        If the process stops, another one goes on. Otherwise the deployment fails, unless it is published already.
        """
        if isinstance(error, CancelledError):
            now_ms = self._services.clock.now_ms()
            await shield(self._services.catalog.write(release, deployment.id, now_ms))
            return STOPPED
        problems = problems_of(error)
        await shield(self._fail(deployment, problems))
        return problems.status

    async def drop(self, deployment: Deployment) -> bool:
        """Remove a deployment and its files; False if it is published, or is worked on."""
        kept = await self._services.catalog.scan(deployments.staged_digests, deployment.id)
        removed = await self._services.catalog.write(deployments.remove_deployment, deployment.id)
        if removed:
            await self.discard(deployment, kept)
        return removed

    async def discard(self, deployment: Deployment, sha256s: Sequence[str]) -> None:
        """Delete bytes that nobody saw and no row names any more; what fails is left to gc."""
        try:
            await self._services.publisher.discard(self._repository, sha256s, deployment.created_ms)
        except PkgrepoError as error:
            log.warn("the files of deployment {uid} are left to gc: {error}", uid=deployment.uid, error=str(error))

    async def _fail(self, deployment: Deployment, problems: Problems) -> None:
        catalog = self._services.catalog
        kept = await catalog.scan(deployments.staged_digests, deployment.id)
        meta = {"status": problems.status}
        now_ms = self._services.clock.now_ms()
        await catalog.write(deployments.end_deployment, deployment.id, FAILED, problems.texts(), now_ms, meta)
        await self.discard(deployment, kept)


def problems_of(error: BaseException) -> Problems:
    """Why a deployment failed, as problems; an error that is no refusal is logged."""
    if isinstance(error, Refused):
        return error.problems
    problems = Problems()
    if isinstance(error, (PkgrepoError, Refusal)):
        problems.add(WHOLE, str(error), status_of(error))
    else:
        log.failure("a deployment failed")
        problems.add(WHOLE, "internal error; see the log of the server", 500)
    return problems
