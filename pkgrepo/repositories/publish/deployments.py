"""
Write commands of deployments: files that are received together, and published together or not at all.

Run them by ``ContentWriter.change_with_blobs``. For the states of a deployment see
``pkgrepo.storage.catalog.packages.deployments``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from attrs import evolve, frozen
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall

from pkgrepo.errors import Conflict, existing
from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import Actor, BlobInfo, Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.model.deployments import Deployment, DeploymentState, StagedFile
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.packages import deployments
from pkgrepo.storage.catalog.server import stages
from pkgrepo.storage.catalog.server.repositories import get_repository
from pkgrepo.storage.catalog.server.stages import Stage

from .bursts import check_burst
from .index import Indexer
from .releases import Published, Release, publish_releases

RENEW_S = 10  # seconds; of a lease of 30, so that two renewals may come late

# A further part of the transaction, in a repository; it returns locators of copies that it did not need.
Also = Callable[[Transaction, Repository, int], Sequence[str]]


@frozen
class KeptArchive:
    """The archive of a deployment, and locators of copies that were not needed."""

    blob: BlobInfo
    surplus: tuple[str, ...]


@frozen
class StagedFiles:
    """The result of staging: the paths that had a file already, and locators of copies that were not needed."""

    refused: tuple[str, ...]
    surplus: tuple[str, ...]


@frozen
class PublishedDeployment:
    """The results of the releases of a deployment, and locators of copies that were not needed."""

    releases: tuple[Published, ...]
    surplus: tuple[str, ...]


def keep_archive(
    tx: Transaction, repository: Repository, deployment_id: int, archive: BlobInfo, now_ms: int
) -> KeptArchive:
    """
    Add the archive in which the files of a deployment have arrived; it is VALIDATING from now on.

    :raises Conflict: the archive did not arrive in time
    """
    _check_open(tx, repository, deployment_id, (DeploymentState.PENDING,))
    blob = blobs.claim_blob(tx, repository.storage_id, archive, now_ms)
    deployments.add_staged_file(tx, deployment_id, repository.storage_id, StagedFile(deployments.ARCHIVE, blob))
    deployments.set_size(tx, deployment_id, archive.size)
    deployments.set_state(
        tx, deployment_id, DeploymentState.PENDING, DeploymentState.VALIDATING, leased=True, now_ms=now_ms
    )
    return KeptArchive(blob, () if blob.locator == archive.locator else (archive.locator,))


def stage_files(
    tx: Transaction, repository: Repository, deployment_id: int, staged: Sequence[StagedFile], now_ms: int
) -> StagedFiles:
    """
    Add received files to a deployment, which keeps their bytes until it ends.

    :raises Conflict: it has ended
    """
    _check_open(tx, repository, deployment_id, (DeploymentState.PENDING, DeploymentState.VALIDATING))
    refused: list[str] = []
    surplus: list[str] = []
    claimed = blobs.claim_blobs(tx, repository.storage_id, [each.blob for each in staged], now_ms)
    for each, blob in zip(staged, claimed, strict=True):
        if blob.locator != each.blob.locator:
            surplus.append(each.blob.locator)
        if not deployments.add_staged_file(tx, deployment_id, repository.storage_id, evolve(each, blob=blob)):
            refused.append(each.path)
    return StagedFiles(tuple(refused), tuple(surplus))


def publish_deployment(
    tx: Transaction,
    repository: Repository,
    deployment_id: int,
    releases: Sequence[Release],
    meta: Mapping[str, Any],
    actor: Admitted,
    indexer: Indexer,
    guard: Callable[[Transaction, int], None],
    also: Also,
    plain: Collection[str],
    now_ms: int,
) -> PublishedDeployment:
    """
    Publish the files of a deployment as these releases, and end it, in one transaction.

    ``meta`` is what is kept of it. The bytes are durable since they were staged, so nothing else can be left undone.
    ``guard`` is called with the time before that, and may raise an error. ``also`` is called after it, and puts the
    ``plain`` files at these paths.

    :raises Conflict: it is not being published (any more)
    :raises FileExists: or any error of L{publish_releases}; then nothing is published, and the state is unchanged
    :raises Held: it needs an approval
    """
    _check_open(tx, repository, deployment_id, (DeploymentState.PUBLISHING,))
    guard(tx, now_ms)
    check_burst(tx, repository, dict.fromkeys(each.package_key for each in releases), actor, now_ms)
    published = publish_releases(tx, repository, releases, actor, indexer, now_ms)
    uid = deployments.end_deployment(tx, deployment_id, DeploymentState.PUBLISHED, {}, now_ms, meta)
    _end_stage(tx, uid, stages.APPROVED, actor, now_ms, {each.package_key for each in releases}, plain)
    return PublishedDeployment(published.releases, (*published.surplus, *also(tx, repository, now_ms)))


def fail_deployment(
    tx: Transaction,
    deployment_id: int,
    errors: Mapping[str, Sequence[str]],
    actor: Actor,
    now_ms: int,
    meta: Mapping[str, Any],
) -> None:
    """End a deployment as FAILED, and its stage, if it has one."""
    uid = deployments.end_deployment(tx, deployment_id, DeploymentState.FAILED, errors, now_ms, meta)
    _end_stage(tx, uid, stages.REJECTED, actor, now_ms)


def drop_deployment(tx: Transaction, deployment: Deployment, actor: Actor, now_ms: int) -> bool:
    """Remove a deployment with its files and its stage, unless it is published or is worked on; whether it was."""
    removed = deployments.remove_deployment(tx, deployment.id)
    if removed:
        _end_stage(tx, deployment.uid, stages.REJECTED, actor, now_ms)
    return removed


def validate_with_stage(
    tx: Transaction,
    repository: Repository,
    deployment: Deployment,
    size: int,
    releases: Sequence[Release],
    meta: Mapping[str, Any],
    actor: Admitted,
    indexer: Indexer,
    open_stage: Callable[[Transaction, Actor, int], Stage],
    also: Also,
    now_ms: int,
) -> PublishedDeployment:
    """
    Make a deployment VALIDATED whose user decides when it is published, and publish it to a stage, in one transaction.

    ``size`` is that of its files in bytes, ``meta`` what is kept of it. ``also`` adds to the stage. Who approves
    that publishes it.

    :raises Conflict: it is not VALIDATING any more, or too many stages are open
    """
    _check_open(tx, repository, deployment.id, (DeploymentState.VALIDATING,))
    deployments.finish_validation(tx, deployment.id, size, leased=False, now_ms=now_ms)
    deployments.set_meta(tx, deployment.id, meta)
    stage = open_stage(tx, actor, now_ms)
    hosted = get_repository(tx, stages.staged_id(tx, stage.uid))
    published = publish_releases(tx, hosted, releases, actor, indexer, now_ms)
    return PublishedDeployment(published.releases, (*published.surplus, *also(tx, hosted, now_ms)))


def end_deployment_of(
    tx: Transaction, stage: Stage, state: DeploymentState, errors: Mapping[str, Sequence[str]], now_ms: int
) -> None:
    """
    End the deployment that a stage was opened for, if it was, with the stage.

    :raises Conflict: it is being published
    """
    found = deployments.find_deployment(tx, stage.repository_id, stage.uid)
    if found is None or found.state.ended:
        return
    if found.state is not DeploymentState.VALIDATED:
        raise Conflict(f"the deployment {stage.uid} is {found.state.value}")
    deployments.end_deployment(tx, found.id, state, errors, now_ms)


def _end_stage(
    tx: Transaction,
    uid: str,
    state: str,
    actor: Actor,
    now_ms: int,
    packages: Collection[str] | None = None,
    plain: Collection[str] = (),
) -> None:
    """
    End the open stage of a deployment; of one that is published, with its ``packages`` and paths of ``plain`` files.

    :raises Conflict: more was published to the stage
    """
    stage = stages.find_stage(tx, uid) if uid else None
    if stage is None or stage.state != stages.OPEN:
        return
    content = stages.content_of(tx, stages.staged_id(tx, uid))
    if packages is not None and not all(
        each.name in plain if each.kind == "file" else each.key in packages for each in content
    ):
        raise Conflict(f"more than this deployment was published to its stage {uid}: approve that one instead")
    stages.end_stage(tx, stage, state, content, actor, now_ms)


@asynccontextmanager
async def renewed_lease(catalog: ICatalog, clock: Clock, deployment: Deployment) -> AsyncIterator[None]:
    """Renew the lease of a deployment within the block, so that other processes know that it is worked on."""

    async def renew() -> None:
        await catalog.write(deployments.renew_leases, (deployment.id,), clock.now_ms())

    renewal = LoopingCall(lambda: Deferred.fromCoroutine(renew()))
    renewal.start(RENEW_S, now=False).addErrback(lambda _: None)  # a lease that is lost fails the next change
    try:
        yield
    finally:
        renewal.stop()


def _check_open(tx: Transaction, repository: Repository, deployment_id: int, states: Sequence[DeploymentState]) -> None:
    state = existing(deployments.find_state(tx, repository.id, deployment_id), "deployment", str(deployment_id))
    if state not in states:
        raise Conflict(f"the deployment is {state.value} already")
