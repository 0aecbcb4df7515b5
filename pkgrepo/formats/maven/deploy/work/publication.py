"""Publishes what waits for the decision of its user: bundles that are VALIDATED, and sessions."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.errors import Conflict
from pkgrepo.formats.maven.deploy.parts import artifact_files
from pkgrepo.formats.maven.deploy.publishing import Publishing, Refused, refusal_of
from pkgrepo.formats.maven.deploy.running import Running
from pkgrepo.formats.maven.paths import ArtifactFile
from pkgrepo.gateway.services import Services
from pkgrepo.model import Repository
from pkgrepo.model.deployments import Deployment, DeploymentState
from pkgrepo.repositories.publish.deployments import renewed_lease
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.storage.catalog.packages.deployments import PENDING, PUBLISHING, VALIDATED

from .pushers import Pusher
from .transitions import Transitions


class Publication:
    """Publishes deployments of one hosted repository when their users ask for it."""

    def __init__(self, services: Services, repository: Repository, indexer: Indexer, running: Running) -> None:
        self._services = services
        self._running = running
        self._publishing = Publishing(services, repository, indexer)
        self._transitions = Transitions(services, repository)

    async def check_rules(self, pusher: Pusher, targets: Sequence[ArtifactFile]) -> None:
        """Check the push rules for files. :raises Refusal: one forbids them"""
        try:
            await self._publishing.check_rules(pusher.identity, targets)
        except Refused as error:
            raise refusal_of(error) from None

    async def publish(self, pusher: Pusher, deployment: Deployment) -> int:
        """
        Publish a deployment that is VALIDATED; if its files may not be published, it fails. Returns the status.

        :raises Refusal: a push rule forbids it; it stays as it was
        :raises Conflict: it is in another state
        """
        staged = await self._services.catalog.scan(deployments.staged_files, deployment.id)
        await self.check_rules(pusher, await self._services.pools.cpu(artifact_files, staged))
        if deployment.state is not VALIDATED:
            raise Conflict(f"the deployment is {deployment.state.value}; only a VALIDATED one can be published")
        await self._transitions.move(deployment, VALIDATED, PUBLISHING, leased=True)
        try:
            await self._running.start(self._publish(pusher, deployment, VALIDATED))
        except Refused as error:
            return await self._transitions.give_up(deployment, error)
        return 200

    async def publish_session(self, pusher: Pusher, deployment: Deployment) -> None:
        """
        Publish the files of a session.

        :raises Refusal: they may not be published; the session stays open
        :raises Conflict: the session has ended
        """
        try:
            await self._publishing.check_signatures(deployment)
        except Refused as error:
            raise refusal_of(error) from None
        await self._transitions.move(deployment, PENDING, PUBLISHING, leased=True)
        try:
            await self._running.start(self._publish(pusher, deployment, PENDING))
        except Refused as error:
            await self._transitions.move_back(deployment, PENDING)
            raise refusal_of(error) from None

    async def _publish(self, pusher: Pusher, deployment: Deployment, before: DeploymentState) -> None:
        """Publish what is PUBLISHING. After an error other than C{Refused} it is as ``before``, or is published."""
        try:
            async with renewed_lease(self._services.catalog, self._services.clock, deployment):
                await self._publishing.publish(pusher.identity, pusher.actor, deployment)
        except Refused:
            raise
        except BaseException:
            await self._transitions.move_back(deployment, before)
            raise
