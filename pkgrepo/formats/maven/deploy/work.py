"""
The work on deployments, which moves them from state to state, and goes on when clients leave.

==========  ============================================  ==============================================================
state       work                                          next
==========  ============================================  ==============================================================
PENDING     ``_receive``: the archive becomes a durable   VALIDATING; without an archive nothing is left
            blob, which the deployment names
            of a session: files come one by one           PUBLISHING by ``publish_session``; gone by ``drop``
VALIDATING  ``_validate``: paths, POMs, signatures and    VALIDATED; FAILED if a file is refused
            push rules are checked, files are stored,
            and checksums compared (or it gets a stage)
VALIDATED   none, unless it is automatic                  PUBLISHING, at once or by ``publish_bundle``; gone by ``drop``
PUBLISHING  ``publish``: one transaction with all         PUBLISHED; FAILED if a file is refused, a session is PENDING
            releases and the end of the deployment        again; after another error the state before
==========  ============================================  ==============================================================

A process that is stopped releases its deployments, and the leases of one that is killed expire; ``resume_interrupted``
takes them over. Files that are stored are not stored again. A deployment whose archive had not arrived fails. For the
meaning of the states see ``pkgrepo.storage.catalog.packages.deployments``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from io import FileIO
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from pkgrepo.archives.source import Source
from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import Conflict, PkgrepoError
from pkgrepo.formats.maven.caches import MavenCaches, MavenContext
from pkgrepo.formats.maven.configuration import DeployRequirements
from pkgrepo.formats.maven.deploy.access import Pusher, Wish, begin, find_pusher, most_open
from pkgrepo.formats.maven.deploy.contents import Contents, check_contents, check_digests, survey
from pkgrepo.formats.maven.deploy.parts import artifact_files
from pkgrepo.formats.maven.deploy.problems import WHOLE, Problems
from pkgrepo.formats.maven.deploy.publishing import (
    Refused,
    as_stage,
    check_rules,
    check_signatures,
    publish,
    refusal_of,
    require_rules,
    stage_bundle,
    status_of,
)
from pkgrepo.formats.maven.deploy.storing import Event, Steps, Storing, file_events
from pkgrepo.formats.maven.paths import ArtifactFile
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.responses import Refusal
from pkgrepo.model import SYSTEM, BlobInfo
from pkgrepo.model.deployments import Deployment, DeploymentState, StagedFile
from pkgrepo.repositories.publish import deployments as kept_deployments
from pkgrepo.repositories.publish.deployments import KeptArchive, keep_archive, renewed_lease
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.storage.catalog.packages.deployments import (
    ARCHIVE,
    INTERRUPTED,
    PENDING,
    PUBLISHING,
    VALIDATED,
    VALIDATING,
)

EVERY_S: Final = 1.0  # one look-up in an index that is nearly always empty
AT_A_TIME: Final = 100  # interrupted deployments that are looked at
BUNDLE: Final = "the bundle"  # in sentences about it
STOPPED: Final = 503  # the status for a client that waits for a deployment while the server stops

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


async def start_bundle(context: MavenContext, pusher: Pusher, wish: Wish, receive: Receive) -> Started:
    """
    Begin a deployment, and start the work on its bundle, whose bytes ``receive`` brings.

    :raises Refusal: the user has too many open deployments
    """
    services = context.services
    most, now_ms = most_open(services), services.clock.now_ms()
    started = Started(
        await services.catalog.write(begin, context.repository, pusher, wish, pusher.kept(), most=most, now_ms=now_ms)
    )
    started.ended = context.caches.running.start(_work(context, started.deployment, pusher, started, receive))
    return started


def resume(context: MavenContext, deployment: Deployment) -> None:
    """Start the rest of the work on a deployment that this process has taken over."""
    log.info("going on with deployment {uid} in {repository}", uid=deployment.uid, repository=context.repository.path)
    ignore_result(context.caches.running.start(_work(context, deployment)))


def ignore_result(ended: Deferred[int]) -> None:
    """Let the work on a deployment end without a client that waits; the state tells the result."""
    ended.addErrback(lambda failure: log.failure("the end of a deployment was not recorded", failure=failure))


async def publish_bundle(context: MavenContext, pusher: Pusher, deployment: Deployment) -> int:
    """
    Publish a deployment that is VALIDATED; if its files may not be published, it fails. Returns the status.

    :raises Refusal: a push rule forbids it; it stays as it was
    :raises Conflict: it is in another state
    """
    services = context.services
    staged = await services.catalog.scan(deployments.staged_files, deployment.id)
    await require_rules(context, pusher.identity, await services.pools.cpu(artifact_files, staged))
    if deployment.state is not VALIDATED:
        raise Conflict(f"the deployment is {deployment.state.value}; only a VALIDATED one can be published")
    try:
        await _publish_from(context, pusher, deployment, VALIDATED)
    except Refused as error:
        return await _give_up(context, deployment, error)
    return 200


async def publish_session(context: MavenContext, pusher: Pusher, deployment: Deployment) -> None:
    """
    Publish the files of a session.

    :raises Refusal: they may not be published; the session stays open
    :raises Conflict: the session has ended
    """
    try:
        await check_signatures(context, deployment)
        await _publish_from(context, pusher, deployment, PENDING)
    except Refused as error:
        raise refusal_of(error) from None


async def drop(context: MavenContext, pusher: Pusher, deployment: Deployment) -> bool:
    """Remove a deployment and its files; False if it is published, or is worked on."""
    catalog = context.services.catalog
    kept = await catalog.scan(deployments.staged_digests, deployment.id)
    removed = await catalog.write(
        kept_deployments.drop_deployment, deployment, pusher.actor, context.services.clock.now_ms()
    )
    if removed:
        await _discard(context, deployment, kept)
    return removed


async def resume_interrupted(services: Services, format_name: str, caches: MavenCaches) -> None:
    """
    Take over deployments whose process stopped, until one of them waits for its turn.

    Other processes take over the others. ``format_name`` is that of Maven.
    """
    now_ms = services.clock.now_ms()
    found: list[Deployment] = await services.catalog.look(deployments.list_interrupted, now_ms, AT_A_TIME)
    if found:
        await services.registry.refresh()
    for each in found:
        if caches.running.turns.waiting:
            return
        repository = services.registry.find_id(each.repository_id)
        if repository is None or repository.format != format_name:
            continue
        taken = await services.catalog.write(deployments.take_over, each.id, services.clock.now_ms())
        if taken is not None:
            resume(Context(services, repository, caches), taken)


async def _work(
    context: MavenContext,
    deployment: Deployment,
    pusher: Pusher | None = None,
    started: Started | None = None,
    receive: Receive | None = None,
) -> int:
    """
    Bring a deployment to its end. Returns the status for a client that waits.

    One that was taken over has no ``pusher``, and its archive was received before.
    """
    services = context.services
    try:
        async with (
            renewed_lease(services.catalog, services.clock, deployment),
            services.content.stage(context.repository) as staged,
        ):
            if started is not None and receive is not None:
                archive = await _receive(context, started, staged, receive)
                if archive is None:
                    return 0
            else:
                found = await services.catalog.look(deployments.find_staged_file, deployment.id, ARCHIVE)
                if found is None and deployment.state is VALIDATING:
                    raise Conflict(INTERRUPTED)
                archive = None if found is None else found.blob
            await _finish(context, pusher or await find_pusher(services, deployment), deployment, archive, staged)
            return 201
    except BaseException as error:  # noqa: BLE001 - a deployment ends whatever happens
        return await _give_up(context, deployment, error)


async def _receive(context: MavenContext, started: Started, staged: Staged, receive: Receive) -> BlobInfo | None:
    """The durable archive; None if it did not arrive, which is for the client alone: the deployment is gone."""
    deployment = started.deployment
    try:
        received = await receive(staged)
        kept: KeptArchive = await context.services.content.change_with_blobs(
            keep_archive, context.repository, staged, [received], deployment.id, received
        )
    except BaseException as error:  # noqa: BLE001 - passed on to the client
        await context.services.catalog.write(deployments.forget_deployment, deployment.id, PENDING)
        if not started.arrived.called:
            started.arrived.errback(error)
        return None
    if not started.arrived.called:
        started.arrived.callback(None)
    return kept.blob


async def _finish(
    context: MavenContext, pusher: Pusher, deployment: Deployment, archive: BlobInfo | None, staged: Staged
) -> None:
    """Bring a deployment from its archive, or from VALIDATED without one, to its end."""
    if archive is not None:
        async with context.caches.running.turns.hold((context.repository.id, pusher.identity.user_id)):
            await _validate(context, pusher, deployment, archive, staged)
    if deployment.automatic:
        await _move(context, deployment, VALIDATED, PUBLISHING)
        await publish(context, pusher.identity, pusher.actor, deployment)
    if archive is not None:
        await _discard(context, deployment, [archive.sha256])


async def _validate(
    context: MavenContext, pusher: Pusher, deployment: Deployment, archive: BlobInfo, staged: Staged
) -> None:
    """
    Store the files in the archive of a deployment that is VALIDATING, which is VALIDATED then.

    Files that an earlier call has stored are not stored again.

    :raises Refused: its files are not valid, or may not be published
    """
    services, repository = context.services, context.repository
    contents, problems = Contents(), Problems()
    limit = services.max_upload
    steps = await _steps(services, staged, archive, lambda source: survey(source, limit, contents, problems))
    async with steps as batches:
        async for _ in batches:
            pass
    await services.pools.cpu(check_contents, contents, DeployRequirements.of(repository), problems)
    if problems:
        raise Refused(problems)
    await check_rules(context if deployment.automatic else as_stage(context), pusher.identity, contents.files.values())
    await services.catalog.write(deployments.set_size, deployment.id, archive.size + contents.size)
    wanted = await _missing(services, deployment, contents, problems)
    storing = Storing(services, repository, deployment, staged, contents=contents, problems=problems)
    events: Steps[Event] = await _steps(services, staged, archive, lambda source: file_events(source, limit, wanted))
    await storing.store(events)
    if problems:
        raise Refused(problems)
    await check_signatures(context, deployment)
    end, now_ms = deployments.finish_validation, services.clock.now_ms()
    if not deployment.automatic:  # else it is published next, which checks the same
        await stage_bundle(context, pusher, deployment, contents.size)
    elif not await services.catalog.write(end, deployment.id, contents.size, leased=True, now_ms=now_ms):
        raise Conflict("the deployment is not VALIDATING any more")


async def _missing(
    services: Services, deployment: Deployment, contents: Contents, problems: Problems
) -> dict[str, ArtifactFile]:
    """The files that are not stored yet; those that are stored are compared with their checksums."""
    stored: list[StagedFile] = await services.catalog.scan(deployments.staged_files, deployment.id)
    whole = {each.path: each.blob for each in stored if each.blob.locator}
    for path, blob in whole.items():
        check_digests(path, contents.checksums.get(path, {}), blob.digests, problems)
    return {path: file for path, file in contents.files.items() if path not in whole}


async def _steps(services: Services, staged: Staged, archive: BlobInfo, read: Callable[[Source], Any]) -> Steps[Any]:
    """Steps over an archive, which is closed at their end."""
    return Steps(services.pools.cpu, _steps_of(open(await staged.as_file(archive), "rb", buffering=0), read))


def _steps_of(file: FileIO, read: Callable[[Source], Any]) -> Generator[Any, None, None]:
    with file:  # or when the object is freed: a generator that never starts does not come here
        yield from read(Source(file.fileno(), BUNDLE))


async def _publish_from(context: MavenContext, pusher: Pusher, deployment: Deployment, before: DeploymentState) -> None:
    """
    Publish a deployment that its user decided about; the work goes on if the client leaves.

    :raises Refused: it may not be published; a session is PENDING again
    """
    await _move(context, deployment, before, PUBLISHING)
    try:
        await context.caches.running.start(_publish(context, pusher, deployment, before))
    except Refused:
        if before is PENDING:
            await _move_back(context, deployment, before)
        raise


async def _publish(context: MavenContext, pusher: Pusher, deployment: Deployment, before: DeploymentState) -> None:
    """Publish what is PUBLISHING. After an error other than ``Refused`` it is as ``before``, or is published."""
    try:
        async with renewed_lease(context.services.catalog, context.services.clock, deployment):
            await publish(context, pusher.identity, pusher.actor, deployment)
    except Refused:
        raise
    except BaseException:
        await _move_back(context, deployment, before)
        raise


async def _move(context: MavenContext, deployment: Deployment, before: DeploymentState, after: DeploymentState) -> None:
    """Change the state of a deployment that this process goes on with. :raises Conflict: it is not ``before``"""
    write, now_ms = context.services.catalog.write, context.services.clock.now_ms()
    if not await write(deployments.set_state, deployment.id, before, after, leased=True, now_ms=now_ms):
        raise Conflict(f"the deployment is not {before.value} any more")


async def _move_back(context: MavenContext, deployment: Deployment, before: DeploymentState) -> None:
    """Make a deployment that was PUBLISHING wait again, unless it is published."""
    write, now_ms = context.services.catalog.write, context.services.clock.now_ms()
    await shield(write(deployments.set_state, deployment.id, PUBLISHING, before, leased=False, now_ms=now_ms))


async def _give_up(context: MavenContext, deployment: Deployment, error: BaseException) -> int:
    """
    Stop the work of this process on a deployment. Returns the status for a client that waits.

    If the process stops, another one goes on. Otherwise the deployment fails, unless it is published already.
    """
    if isinstance(error, CancelledError):
        now_ms = context.services.clock.now_ms()
        await shield(context.services.catalog.write(deployments.release_deployment, deployment.id, now_ms))
        return STOPPED
    problems = problems_of(error)
    await shield(_fail(context, deployment, problems))
    return problems.status


async def _fail(context: MavenContext, deployment: Deployment, problems: Problems) -> None:
    catalog, now_ms = context.services.catalog, context.services.clock.now_ms()
    kept = await catalog.scan(deployments.staged_digests, deployment.id)
    meta = {"status": problems.status}
    await catalog.write(kept_deployments.fail_deployment, deployment.id, problems.texts(), SYSTEM, now_ms, meta)
    await _discard(context, deployment, kept)


async def _discard(context: MavenContext, deployment: Deployment, sha256s: Sequence[str]) -> None:
    """Delete bytes that no reader saw and no row names any more; what fails is left to gc."""
    try:
        await context.services.content.discard(context.repository, sha256s, deployment.created_ms)
    except PkgrepoError as error:
        log.warn("the files of deployment {uid} are left to gc: {error}", uid=deployment.uid, error=str(error))


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
