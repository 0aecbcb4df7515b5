"""Publishes what waits for the decision of its user: bundles that are VALIDATED, and sessions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from io import FileIO
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.archives.source import Source
from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import Conflict, PkgrepoError
from pkgrepo.formats.maven.configuration import DeployRequirements
from pkgrepo.formats.maven.deploy.access import Pusher, Wish, begin, find_pusher, most_open
from pkgrepo.formats.maven.deploy.contents import Contents, check_contents, check_digests, survey
from pkgrepo.formats.maven.deploy.problems import WHOLE, Problems
from pkgrepo.formats.maven.deploy.publishing import Publishing, Refused, artifact_files, refusal_of, status_of
from pkgrepo.formats.maven.deploy.running import Running
from pkgrepo.formats.maven.deploy.storing import Event, Steps, Storing, file_events
from pkgrepo.formats.maven.paths import ArtifactFile
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Refusal
from pkgrepo.model import BlobInfo, Repository
from pkgrepo.model.deployments import Deployment, DeploymentState, StagedFile
from pkgrepo.repositories.publish.deployments import KeptArchive, keep_archive, renewed_lease
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.storage.catalog.packages.deployments import (
    ARCHIVE,
    FAILED,
    INTERRUPTED,
    PENDING,
    PUBLISHING,
    VALIDATED,
    VALIDATING,
    list_interrupted,
    release_deployment,
    take_over,
)

BUNDLE = "the bundle"  # in sentences about it


class Validating:
    """Validates deployments of one hosted repository."""

    def __init__(self, services: Services, repository: Repository, publishing: Publishing) -> None:
        self._services = services
        self._repository = repository
        self._publishing = publishing

    async def validate(self, pusher: Pusher, deployment: Deployment, archive: BlobInfo, staged: Staged) -> None:
        """
        Store the files in the archive of a deployment that is VALIDATING, which is VALIDATED then.

        Files that an earlier call has stored are not stored again.

        :raises Refused: its files are not valid, or may not be published
        """
        contents, problems = Contents(), Problems()
        limit = self._services.max_upload
        surveying = await self._steps(staged, archive, lambda source: survey(source, limit, contents, problems))
        async with surveying as batches:
            async for _ in batches:
                pass
        requirements = DeployRequirements.of(self._repository)
        await self._services.pools.cpu(check_contents, contents, requirements, problems)
        if problems:
            raise Refused(problems)
        await self._publishing.check_rules(pusher.identity, contents.files.values())
        await self._services.catalog.write(deployments.set_size, deployment.id, archive.size + contents.size)
        wanted = await self._missing(deployment, contents, problems)
        storing = Storing(self._services, self._repository, deployment, staged, contents=contents, problems=problems)
        events: Steps[Event] = await self._steps(staged, archive, lambda source: file_events(source, limit, wanted))
        await storing.store(events)
        if problems:
            raise Refused(problems)
        await self._publishing.check_signatures(deployment)
        if not deployment.automatic:  # else it is published next, which checks the same
            await self._publishing.check_places(pusher.identity, deployment)
        now_ms = self._services.clock.now_ms()
        if not await self._services.catalog.write(
            deployments.finish_validation, deployment.id, contents.size, leased=deployment.automatic, now_ms=now_ms
        ):
            raise Conflict("the deployment is not VALIDATING any more")

    async def _missing(self, deployment: Deployment, contents: Contents, problems: Problems) -> dict[str, ArtifactFile]:
        """The files that are not stored yet; those that are stored are compared with their checksums."""
        stored: list[StagedFile] = await self._services.catalog.scan(deployments.staged_files, deployment.id)
        whole = {each.path: each.blob for each in stored if each.blob.locator}
        for path, blob in whole.items():
            check_digests(path, contents.checksums.get(path, {}), blob.digests, problems)
        return {path: file for path, file in contents.files.items() if path not in whole}

    async def _steps(self, staged: Staged, archive: BlobInfo, read: Callable[[Source], Any]) -> Steps[Any]:
        """Steps over an archive, which is closed at their end."""
        return Steps(self._services.pools.cpu, _steps_of(open(await staged.as_file(archive), "rb", buffering=0), read))


def _steps_of(file: FileIO, read: Callable[[Source], Any]) -> Generator[Any, None, None]:
    with file:  # or when the object is freed: a generator that never starts does not come here
        yield from read(Source(file.fileno(), BUNDLE))


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
            await shield(self._services.catalog.write(release_deployment, deployment.id, now_ms))
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
            begin,
            self._repository,
            pusher,
            wish,
            pusher.kept(),
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


EVERY_S: Final = 1.0  # one look-up in an index that is nearly always empty
AT_A_TIME: Final = 100  # rows that are looked at


class ResumeDeployments(PeriodicTask):
    """Looks for such deployments at start and then every ``EVERY_S`` seconds; ``format_name`` is that of Maven."""

    def __init__(
        self, services: Services, format_name: str, indexer: Indexer, running: Running, reactor: IReactorTime
    ) -> None:
        super().__init__(self.run_once, reactor, every_s=EVERY_S, what="going on with deployments")
        self._services = services
        self._format_name = format_name
        self._indexer = indexer
        self._works = running

    async def run_once(self) -> None:
        """Take over deployments until one of them waits for its turn; other processes take over the others."""
        services = self._services
        found: list[Deployment] = await services.catalog.look(list_interrupted, services.clock.now_ms(), AT_A_TIME)
        if found:
            await services.registry.refresh()
        for each in found:
            if self._works.turns.waiting:
                return
            repository = services.registry.find_id(each.repository_id)
            if repository is None or repository.format != self._format_name:
                continue
            taken = await services.catalog.write(take_over, each.id, services.clock.now_ms())
            if taken is not None:
                Bundles(services, repository, self._indexer, self._works).resume(taken)
