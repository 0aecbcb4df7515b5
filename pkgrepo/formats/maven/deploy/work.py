"""
The work on one bundle, from its first byte to its end. It goes on when the client leaves after the last byte.

==========  ==================================================================================  ========================
step        what happens                                                                        left by a crash
==========  ==================================================================================  ========================
begin       a row, if the user has room for another deployment                                  the row; it fails when
                                                                                                its lease has expired
receive     the body streams into a staged blob, which is never committed                       nothing more
survey      paths, POMs, signatures, and push rules of every version                            nothing more
store       files stream into blobs, which rows of the deployment name; checksums are compared  files that gc removes
                                                                                                once the row has failed
publish     one transaction: all releases, and the end of the deployment                        everything or nothing
==========  ==================================================================================  ========================

For the states see ``pkgrepo.storage.catalog.packages.deployments``.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any
from uuid import uuid4

from attrs import frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from pkgrepo.archives.source import Source
from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import Conflict, Invalid, PkgrepoError
from pkgrepo.formats.maven.configuration import DeployRequirements
from pkgrepo.formats.maven.deploy.contents.storing import Event, Storing, file_events
from pkgrepo.formats.maven.deploy.contents.survey import Contents, survey
from pkgrepo.formats.maven.deploy.contents.validation import check_contents
from pkgrepo.formats.maven.paths import ArtifactFile
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Refusal
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, BlobInfo, Identity, Repository
from pkgrepo.model.deployments import Deployment, DeploymentState
from pkgrepo.repositories.publish.deployments import renewed_lease
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.storage.catalog.packages.deployments import FAILED, INTERRUPTED, PENDING, PUBLISHING, VALIDATED, VALIDATING

from .limits import MOST_OPEN, OPEN_UPLOADS
from .parts import artifact_files
from .problems import WHOLE, Problems
from .publishing import Publishing, Refused, refusal_of, status_of
from .running import Running
from .sessions import Session
from .stepping import Steps

log = Logger()

BUNDLE = "the bundle"  # in sentences about it

Receive = Callable[[Staged], Awaitable[BlobInfo]]


@frozen
class Wish:
    """What the client asks for: a name for people, and whether the deployment is published as soon as it is valid."""

    name: str
    automatic: bool
    size: int


@frozen
class Pusher:
    """Who deploys."""

    identity: Identity
    actor: Actor


class Started:
    """
    A bundle that is received and worked on.

    ``arrived`` fires when all of its bytes are here. ``ended`` fires with the status for a client that has waited.
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
            most=self.most_open,
            now_ms=self._services.clock.now_ms(),
        )
        started = Started(deployment)
        started.ended = self._running.start(self._work(started, pusher, receive))
        return started

    @property
    def most_open(self) -> int:
        """The most bytes that the open deployments of a user may take together."""
        return OPEN_UPLOADS * self._services.max_upload

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
        await self._move(deployment, VALIDATED, PUBLISHING, leased=True)
        try:
            await self._running.start(self._publish(pusher, deployment, VALIDATED))
        except Refused as error:
            return await self._fail(deployment, error)
        return 200

    async def begin_session(self, pusher: Pusher, session: Session) -> Deployment:
        """Insert the row of a session. :raises Conflict: one for the artifact is open; see ``add_session``"""
        return await self._services.catalog.write(
            add_session,
            self._repository,
            pusher,
            session,
            most=self.most_open,
            now_ms=self._services.clock.now_ms(),
        )

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
        await self._move(deployment, PENDING, PUBLISHING, leased=True)
        try:
            await self._running.start(self._publish(pusher, deployment, PENDING))
        except Refused as error:
            await self._move_back(deployment, PENDING)
            raise refusal_of(error) from None

    async def _work(self, started: Started, pusher: Pusher, receive: Receive) -> int:
        deployment = started.deployment
        services = self._services
        try:
            async with (
                renewed_lease(services.catalog, services.clock, deployment),
                services.publisher.stage(self._repository) as staged,
            ):
                bundle = await self._receive(started, staged, receive)
                if bundle is None:
                    return 0
                async with self._running.turns.hold((self._repository.id, pusher.identity.user_id)):
                    await self._validate(pusher, deployment, staged, bundle)
                if not deployment.automatic:
                    return 201
                await self._move(deployment, VALIDATED, PUBLISHING, leased=True)
                await self._publishing.publish(pusher.identity, pusher.actor, deployment)
                return 201
        except BaseException as error:  # noqa: BLE001 - a deployment ends whatever happens
            return await self._fail(deployment, error)

    async def _receive(self, started: Started, staged: Staged, receive: Receive) -> BlobInfo | None:
        """The bundle; None if it did not arrive, which is for the client alone: the deployment is gone."""
        try:
            bundle = await receive(staged)
        except BaseException as error:  # noqa: BLE001 - passed on to the client
            await self._services.catalog.write(deployments.forget_deployment, started.deployment.id)
            if not started.arrived.called:
                started.arrived.errback(error)
            return None
        await self._services.catalog.write(deployments.set_size, started.deployment.id, bundle.size)
        if not started.arrived.called:
            started.arrived.callback(None)
        return bundle

    async def _validate(self, pusher: Pusher, deployment: Deployment, staged: Staged, bundle: BlobInfo) -> None:
        """Bring the deployment from PENDING to VALIDATED. :raises Refused: its bundle is not valid"""
        await self._move(deployment, PENDING, VALIDATING, leased=True)
        contents, problems = Contents(), Problems()
        limit = self._services.max_upload
        opened = staged.open(bundle)
        surveying = self._steps(opened, lambda source: survey(source, limit, contents, problems))
        async with surveying as batches:
            async for _ in batches:
                pass
        requirements = DeployRequirements.of(self._repository)
        await self._services.pools.cpu(check_contents, contents, requirements, problems)
        if problems:
            raise Refused(problems)
        await self._publishing.check_rules(pusher.identity, contents.files.values())
        await self._services.catalog.write(deployments.set_size, deployment.id, bundle.size + contents.size)
        storing = Storing(self._services, self._repository, deployment, staged, contents=contents, problems=problems)
        events: Steps[Event] = self._steps(opened, lambda source: file_events(source, limit, contents.files))
        await storing.store(events)
        if problems:
            raise Refused(problems)
        await self._publishing.check_signatures(deployment)
        if not deployment.automatic:  # else it is published next, which checks the same
            await self._publishing.check_places(pusher.identity, deployment)
        await self._services.catalog.write(deployments.set_size, deployment.id, contents.size)
        await self._move(deployment, VALIDATING, VALIDATED, leased=deployment.automatic)

    def _steps(self, opened: Any, read: Callable[[Source], Any]) -> Steps[Any]:
        """Steps over a bundle, which is opened with the first one and closed at their end."""
        return Steps(self._services.pools.cpu, _closing(opened, read))

    async def _publish(self, pusher: Pusher, deployment: Deployment, before: DeploymentState) -> None:
        """Publish what is PUBLISHING. After an error other than C{Refused} it is as ``before``, or is published."""
        try:
            async with renewed_lease(self._services.catalog, self._services.clock, deployment):
                await self._publishing.publish(pusher.identity, pusher.actor, deployment)
        except Refused:
            raise
        except BaseException:
            await self._move_back(deployment, before)
            raise

    async def _move(
        self, deployment: Deployment, before: DeploymentState, after: DeploymentState, *, leased: bool
    ) -> None:
        now_ms = self._services.clock.now_ms()
        if not await self._services.catalog.write(
            deployments.set_state, deployment.id, before, after, leased=leased, now_ms=now_ms
        ):
            raise Conflict(f"the deployment is not {before.value} any more")

    async def _move_back(self, deployment: Deployment, before: DeploymentState) -> None:
        now_ms = self._services.clock.now_ms()
        await shield(
            self._services.catalog.write(
                deployments.set_state, deployment.id, PUBLISHING, before, leased=False, now_ms=now_ms
            )
        )

    async def _fail(self, deployment: Deployment, error: BaseException) -> int:
        """End a deployment as FAILED, unless it is published already. Returns the status for the client."""
        problems = problems_of(error)
        await shield(self._end(deployment, problems))
        return problems.status

    async def drop(self, deployment: Deployment) -> bool:
        """Remove a deployment and its files; False if it is published, or is worked on."""
        kept = await self._services.catalog.scan(deployments.staged_digests, deployment.id)
        removed = await self._services.catalog.write(deployments.remove_deployment, deployment.id)
        if removed:
            await self._discard(deployment, kept)
        return removed

    async def _end(self, deployment: Deployment, problems: Problems) -> None:
        catalog = self._services.catalog
        kept = await catalog.scan(deployments.staged_digests, deployment.id)
        meta = {"status": problems.status}
        now_ms = self._services.clock.now_ms()
        await catalog.write(deployments.end_deployment, deployment.id, FAILED, problems.texts(), now_ms, meta)
        await self._discard(deployment, kept)

    async def _discard(self, deployment: Deployment, sha256s: Sequence[str]) -> None:
        """Delete the bytes of files that nobody saw; what fails is left to gc."""
        try:
            await self._services.publisher.discard(self._repository, sha256s, deployment.created_ms)
        except PkgrepoError as error:
            log.warn("the files of deployment {uid} are left to gc: {error}", uid=deployment.uid, error=str(error))


def add_deployment(
    tx: Transaction, repository: Repository, pusher: Pusher, wish: Wish, *, most: int, now_ms: int
) -> Deployment:
    """Insert the row of a bundle, if its user has room for it. :raises Refusal: there is none; see ``check_room``"""
    check_room(tx, repository, pusher, wish.size, most=most)
    return deployments.add_deployment(
        tx,
        uid=str(uuid4()),
        repository_id=repository.id,
        package_key="",
        name=wish.name,
        automatic=wish.automatic,
        user_id=pusher.identity.user_id,
        actor=pusher.actor.name,
        size=wish.size,
        meta={},
        leased=True,
        now_ms=now_ms,
    )


def add_session(
    tx: Transaction, repository: Repository, pusher: Pusher, session: Session, *, most: int, now_ms: int
) -> Deployment:
    """
    Insert the row of a session.

    :raises Conflict: a session for the artifact is open; :raises Refusal: its user has no room, see ``check_room``
    """
    key = session.coordinates.package_key
    if deployments.has_open_session(tx, repository.id, key, now_ms):
        raise Conflict(f"a deploy session for {key} is open already")
    check_room(tx, repository, pusher, 0, most=most)
    return deployments.add_deployment(
        tx,
        uid=str(uuid4()),
        repository_id=repository.id,
        package_key=key,
        name=session.name,
        automatic=False,
        user_id=pusher.identity.user_id,
        actor=pusher.actor.name,
        size=0,
        meta=session.meta,
        leased=False,
        now_ms=now_ms,
    )


def check_room(
    tx: Transaction, repository: Repository, pusher: Pusher, size: int, *, most: int, another: bool = True
) -> None:
    """
    Check that the open deployments of a user may take ``size`` bytes more, of at most ``most``.

    With ``another`` also that they may have another one.

    :raises Refusal: there are too many, or too large ones
    """
    count, sizes = deployments.open_deployments(tx, repository.id, pusher.identity.user_id)
    if another and count >= MOST_OPEN:
        raise Refusal(409, f"you have {count} open deployments here; publish or drop some", "too_many_deployments")
    if sizes + size > most:
        sentence = f"your open deployments here would take more than {most} bytes; publish or drop some"
        raise Refusal(409, sentence, "too_many_deployments")


def problems_of(error: BaseException) -> Problems:
    """Why a deployment failed, as problems; an error that is no refusal is logged."""
    if isinstance(error, Refused):
        return error.problems
    problems = Problems()
    if isinstance(error, CancelledError):
        problems.add(WHOLE, INTERRUPTED, 409)
    elif isinstance(error, (PkgrepoError, Refusal)):
        problems.add(WHOLE, str(error), status_of(error))
    else:
        log.failure("a deployment failed")
        problems.add(WHOLE, "internal error; see the log of the server", 500)
    return problems


def ignore_result(ended: Deferred[int]) -> None:
    """Let the work on a deployment end without a client that waits; the state tells the result."""
    ended.addErrback(lambda failure: log.failure("the end of a deployment was not recorded", failure=failure))


def _closing(opened: Any, read: Callable[[Source], Any]) -> Generator[Any, None, None]:
    # Opened here: a generator that never starts does not reach its ``finally``, either.
    content = opened.data if getattr(opened, "data", None) is not None else opened.descriptor()
    if content is None:
        raise Invalid("this storage cannot look into bundles")
    try:
        yield from read(Source(content, BUNDLE))
    finally:
        if isinstance(content, int):
            os.close(content)
