"""Bundles, from their first byte to their end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pkgrepo.errors import Conflict
from pkgrepo.formats.maven.deploy.publishing import Publishing
from pkgrepo.formats.maven.deploy.running import Running
from pkgrepo.gateway.services import Services
from pkgrepo.model import BlobInfo, Repository
from pkgrepo.model.deployments import Deployment
from pkgrepo.repositories.publish.deployments import KeptArchive, keep_archive, renewed_lease
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.storage.catalog.packages.deployments import ARCHIVE, PUBLISHING, VALIDATED, VALIDATING
from pkgrepo.storage.catalog.packages.interrupted_deployments import INTERRUPTED

from .admission import add_deployment, most_open
from .pushers import Pusher, Wish, find_pusher
from .transitions import Transitions
from .validating import Validating

log = Logger()

Receive = Callable[[Staged], Awaitable[BlobInfo]]


class Started:
    """
    A bundle that is received and worked on.

    ``arrived`` fires when all of its bytes are durable. ``ended`` fires with the status for a client that has waited.
    """

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.arrived: Deferred[None] = Deferred()
        self.ended: Deferred[int]


class Bundles:
    """Works on the bundles for one hosted repository."""

    def __init__(self, services: Services, repository: Repository, indexer: Indexer, running: Running) -> None:
        self._services = services
        self._repository = repository
        self._running = running
        self._publishing = Publishing(services, repository, indexer)
        self._validating = Validating(services, repository, self._publishing)
        self._transitions = Transitions(services, repository)

    async def start(self, pusher: Pusher, wish: Wish, receive: Receive) -> Started:
        """
        Begin a deployment, and start the work on its bundle, whose bytes ``receive`` brings.

        :raises Refusal: the user has too many open deployments
        """
        deployment = await self._services.catalog.write(
            add_deployment,
            self._repository,
            pusher,
            wish,
            most=most_open(self._services),
            now_ms=self._services.clock.now_ms(),
        )
        started = Started(deployment)
        started.ended = self._running.start(self._work(started, pusher, receive))
        return started

    def resume(self, deployment: Deployment) -> None:
        """Start the rest of the work on a deployment that this process has taken over."""
        log.info("going on with deployment {uid} in {repository}", uid=deployment.uid, repository=self._repository.path)
        ignore_result(self._running.start(self._go_on(deployment)))

    async def _work(self, started: Started, pusher: Pusher, receive: Receive) -> int:
        deployment = started.deployment
        services = self._services
        try:
            async with (
                renewed_lease(services.catalog, services.clock, deployment),
                services.publisher.stage(self._repository) as staged,
            ):
                archive = await self._receive(started, staged, receive)
                if archive is None:
                    return 0
                await self._finish(pusher, deployment, archive, staged)
                return 201
        except BaseException as error:  # noqa: BLE001 - a deployment ends whatever happens
            return await self._transitions.give_up(deployment, error)

    async def _go_on(self, deployment: Deployment) -> int:
        services = self._services
        try:
            async with (
                renewed_lease(services.catalog, services.clock, deployment),
                services.publisher.stage(self._repository) as staged,
            ):
                found = await services.catalog.look(deployments.find_staged_file, deployment.id, ARCHIVE)
                if found is None and deployment.state is VALIDATING:
                    raise Conflict(INTERRUPTED)
                archive = None if found is None else found.blob
                await self._finish(await find_pusher(services, deployment), deployment, archive, staged)
                return 201
        except BaseException as error:  # noqa: BLE001 - as above
            return await self._transitions.give_up(deployment, error)

    async def _receive(self, started: Started, staged: Staged, receive: Receive) -> BlobInfo | None:
        """The durable archive; None if it did not arrive, which is for the client alone: the deployment is gone."""
        deployment = started.deployment
        try:
            received = await receive(staged)
            kept: KeptArchive = await self._services.publisher.change_with_blobs(
                keep_archive, self._repository, staged, [received], deployment.id, received
            )
        except BaseException as error:  # noqa: BLE001 - passed on to the client
            await self._services.catalog.write(deployments.forget_deployment, deployment.id)
            if not started.arrived.called:
                started.arrived.errback(error)
            return None
        if not started.arrived.called:
            started.arrived.callback(None)
        return kept.blob

    async def _finish(self, pusher: Pusher, deployment: Deployment, archive: BlobInfo | None, staged: Staged) -> None:
        """Bring a deployment from its archive, or from VALIDATED without one, to its end."""
        if archive is not None:
            async with self._running.turns.hold((self._repository.id, pusher.identity.user_id)):
                await self._validating.validate(pusher, deployment, archive, staged)
        if deployment.automatic:
            await self._transitions.move(deployment, VALIDATED, PUBLISHING, leased=True)
            await self._publishing.publish(pusher.identity, pusher.actor, deployment)
        if archive is not None:
            await self._transitions.discard(deployment, [archive.sha256])


def ignore_result(ended: Deferred[int]) -> None:
    """Let the work on a deployment end without a client that waits; the state tells the result."""
    ended.addErrback(lambda failure: log.failure("the end of a deployment was not recorded", failure=failure))
