"""
Publishes the files of a deployment: staged files -> push rules -> releases -> one transaction.

The files of one version to which the same push rules apply are one release. The transaction checks again that files can
be at their paths, which other clients may have taken.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from attrs import evolve

from pkgrepo.auth.permissions.admission import Road, admit_server, join
from pkgrepo.errors import Conflict, Forbidden, Outdated, PkgrepoError, UpstreamFailed
from pkgrepo.formats.maven.caches import MavenContext
from pkgrepo.formats.maven.configuration import DeployRequirements
from pkgrepo.formats.maven.deploy.access import Pusher
from pkgrepo.formats.maven.deploy.contents import SIGNED_BY_ASC
from pkgrepo.formats.maven.deploy.parts import Part, one_of_each, plugins_of, releases_of, split_parts, summary_of
from pkgrepo.formats.maven.deploy.problems import Problems, first_sentence
from pkgrepo.formats.maven.deploy.storing import Turns
from pkgrepo.formats.maven.metadata.joining import index_artifact
from pkgrepo.formats.maven.metadata.plugins import (
    ATTEMPTS,
    BUSY,
    PluginChange,
    artifacts_of_changes,
    group_metadata,
    new_list,
    prepare_plugins,
    put_plugins,
)
from pkgrepo.formats.maven.metadata.reading import Plugin
from pkgrepo.formats.maven.openpgp import LARGEST_SIGNATURE, is_signed_by, read_certificates
from pkgrepo.formats.maven.paths import ArtifactFile, Metadata
from pkgrepo.formats.maven.push_rules import PushPermit, check_plugins, check_push
from pkgrepo.gateway.publishing.stages import as_staged, make_opening
from pkgrepo.gateway.refusals import STATUSES
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor, Identity, Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.model.deployments import Deployment, StagedFile
from pkgrepo.repositories.publish.content import log_published
from pkgrepo.repositories.publish.deployments import publish_deployment, validate_with_stage
from pkgrepo.repositories.publish.releases import Published, Release
from pkgrepo.storage.catalog.packages import checksum_claims, deployments
from pkgrepo.storage.catalog.packages.release_batches import find_files, paths_with_files
from pkgrepo.storage.catalog.packages.tree import file_or_folder, folders_with_files, list_folders


class Refused(PkgrepoError):  # noqa: N818 - named for what happened
    """The deployment cannot be published; the problems say why."""

    def __init__(self, problems: Problems) -> None:
        super().__init__("the deployment is refused")
        self.problems = problems


async def check_rules(context: MavenContext, identity: Identity, targets: Iterable[ArtifactFile]) -> None:
    """Check the push rules for every version among the files. :raises Refused: one forbids a version"""
    await _permits(context, identity, await context.services.pools.cpu(one_of_each, targets), Actor.of(identity))


async def require_rules(context: MavenContext, identity: Identity, targets: Iterable[ArtifactFile]) -> None:
    """Check the push rules for a request that does not end a deployment. :raises Refusal: one forbids a version"""
    try:
        await check_rules(context, identity, targets)
    except Refused as error:
        raise refusal_of(error) from None


def as_stage(context: MavenContext) -> MavenContext:
    """The context in which the push rules for what is staged are checked."""
    return evolve(context, repository=as_staged(context.repository))


async def stage_bundle(context: MavenContext, pusher: Pusher, deployment: Deployment, size: int) -> None:
    """
    Make a bundle VALIDATED whose user decides when it is published, and publish it to a stage with its id.

    :raises Refused: other files or folders are at its paths; :raises Conflict: it is not VALIDATING any more
    """
    services, repository = context.services, context.repository
    parts = await _parts(context, deployment)
    permits = await _permits(as_stage(context), pusher.identity, [each.first for each in parts], pusher.actor)
    await _check_places(context, parts, permits)
    releases = await services.pools.cpu(releases_of, parts, permits)
    opening = make_opening(services.formats, repository, repository, deployment.name or "a bundle", deployment.uid)
    async with services.content.stage(repository) as staged:
        plugins = [await new_list(staged, group, found) for group, found in plugins_of(parts).items()]
        await services.content.change_with_blobs(
            validate_with_stage,
            repository,
            staged,
            [blob for each in plugins for blob in each.blobs],
            deployment,
            size,
            releases,
            summary_of(parts),
            join([each.admitted for each in permits]),
            index_artifact,
            opening.open,
            partial(_put_all, changes=plugins, actor=admit_server(Road.LISTS, as_staged(repository), pusher.actor)),
        )


async def check_signatures(context: MavenContext, deployment: Deployment) -> None:
    """
    Check the PGP signatures among the staged files, if the repository has keys that it trusts.

    :raises Refused: one is not valid for its file, or not by a trusted key
    """
    texts = DeployRequirements.of(context.repository).trusted_keys
    if not texts:
        return
    services, problems = context.services, Problems()
    certificates = await services.pools.cpu(read_certificates, texts)
    staged: list[StagedFile] = await services.catalog.scan(deployments.staged_files, deployment.id)
    blobs = {each.path: each.blob for each in staged}
    for path, blob in blobs.items():
        signed = blobs.get(path.removesuffix(SIGNED_BY_ASC)) if path.endswith(SIGNED_BY_ASC) else None
        if signed is None:
            continue
        storage_id = context.repository.storage_id
        signature = await services.files.read(storage_id, blob.locator, min(blob.size, LARGEST_SIGNATURE))
        look = partial(is_signed_by, signature=signature, certificates=certificates)
        if not await services.files.inspect(services.pools.cpu, storage_id, signed, look):
            problems.add(path, "this is no valid signature of the file by a key that the repository trusts")
    if problems:
        raise Refused(problems)


async def publish(context: MavenContext, identity: Identity, actor: Actor, deployment: Deployment) -> None:
    """
    Publish all files of a deployment that is in the state PUBLISHING, which then is PUBLISHED.

    :raises Refused: they may not be published
    :raises StorageFull, StorageFailed: it may be published nevertheless; its state tells
    """
    repository = context.repository
    parts = await _parts(context, deployment)
    permits = await _permits(context, identity, [each.first for each in parts], actor)
    lists = await _permits(context, identity, [group_metadata(each) for each in plugins_of(parts)], actor)
    admitted = join([each.admitted for each in (*permits, *lists)])
    await _check_places(context, parts, permits)
    releases = await context.services.pools.cpu(releases_of, parts, permits)
    try:
        await context.services.content.check(repository, [each.package_key for each in releases])
    except (Forbidden, UpstreamFailed) as error:
        problems = Problems()
        problems.add(parts[0].first.path, str(error), 403 if isinstance(error, Forbidden) else 503)
        raise Refused(problems) from None
    guard = partial(_guard, repository=repository, parts=parts, permits=permits)
    check = partial(_check_plugins, context, identity, {each.group for each in lists})
    published = await _publish(
        context, deployment, releases, summary_of(parts), admitted, plugins_of(parts), guard, check
    )
    turns = Turns()
    for release, result in zip(releases, published, strict=True):
        await turns.rest()
        if result.changed:
            log_published(repository, release.package_key, release.version_text, actor)


async def _publish(
    context: MavenContext,
    deployment: Deployment,
    releases: Sequence[Release],
    meta: Mapping[str, Any],
    actor: Admitted,
    plugins: Mapping[str, Sequence[Plugin]],
    guard: Callable[[Transaction, int], None],
    check: Callable[[Sequence[PluginChange]], Awaitable[None]],
) -> Sequence[Published]:
    """
    Publish releases, and add plugins to the metadata of their groups, in one transaction.

    The changes of these are checked each time: the groups may list others meanwhile.

    :raises Refused: see ``check``
    :raises Conflict: other clients changed these metadata too often meanwhile
    """
    services, repository = context.services, context.repository
    for _ in range(ATTEMPTS):
        async with services.content.stage(repository) as staged:
            changes = [
                await prepare_plugins(services, repository, staged, group, found) for group, found in plugins.items()
            ]
            await check(changes)
            blobs = [blob for each in changes for blob in each.blobs]
            try:
                published = await services.content.change_with_blobs(
                    publish_deployment,
                    repository,
                    staged,
                    blobs,
                    deployment.id,
                    releases,
                    meta,
                    actor,
                    index_artifact,
                    guard,
                    partial(_put_all, changes=changes, actor=actor),
                    {each.target.path for each in changes},
                )
            except Outdated:
                continue
            return published.releases
    raise Conflict(BUSY)


async def _parts(context: MavenContext, deployment: Deployment) -> list[Part]:
    staged: list[StagedFile] = await context.services.catalog.scan(deployments.staged_files, deployment.id)
    problems = Problems()
    for each in staged:
        if not each.blob.locator:
            problems.add(each.path, "the storage has lost this file; deploy it again", 507)
    if problems:
        raise Refused(problems)
    return await context.services.pools.cpu(split_parts, staged)


async def _permits(
    context: MavenContext, identity: Identity, targets: Sequence[ArtifactFile | Metadata], actor: Actor
) -> list[PushPermit]:
    permits: list[PushPermit] = []
    problems, turns = Problems(), Turns()
    for each in targets:
        await turns.rest()
        try:
            permits.append(await check_push(context.services, identity, context.repository, each, actor, deploy=True))
        except (Refusal, PkgrepoError) as error:
            problems.add(each.path.rpartition("/")[0], str(error), status_of(error))
    if problems:
        raise Refused(problems)
    return permits


async def _check_plugins(
    context: MavenContext, identity: Identity, limited: Collection[str | None], changes: Sequence[PluginChange]
) -> None:
    """
    Check that plugins may be listed in the metadata of their groups.

    In those of ``limited`` groups the caller may only list what they may publish.

    :raises Refused: one may not
    """
    problems = Problems()
    for each in changes:
        group = each.target.directory.replace("/", ".")
        if group not in limited:
            continue
        try:
            artifacts = artifacts_of_changes(each.plugins, each.listed)
            await check_plugins(context.services, identity, context.repository, group, artifacts)
        except Forbidden as error:
            problems.add(each.target.directory, str(error), 403)
    if problems:
        raise Refused(problems)


async def _check_places(context: MavenContext, parts: Sequence[Part], permits: Sequence[PushPermit]) -> None:
    problems = await context.services.catalog.scan(find_problems, context.repository.id, parts, permits)
    if problems:
        raise Refused(problems)


def _guard(
    tx: Transaction, _now_ms: int, repository: Repository, parts: Sequence[Part], permits: Sequence[PushPermit]
) -> None:
    """Check again, in the transaction, that the files can be at their paths."""
    problems = find_problems(tx, repository.id, parts, permits)
    if problems:
        raise Refused(problems)
    paths = [file.path for part in parts for file, _ in part.files]
    checksum_claims.remove_claims(tx, repository.id, paths)


def _put_all(
    tx: Transaction, repository: Repository, now_ms: int, changes: Sequence[PluginChange], actor: Admitted
) -> list[str]:
    return [locator for each in changes for locator in put_plugins(tx, repository, each, actor, now_ms)]


def refusal_of(error: Refused) -> Refusal:
    """What a client gets that asked for something that is refused, without an end of the deployment."""
    texts = error.problems.texts()
    errors = tuple({"path": path, "message": text} for path, sentences in texts.items() for text in sentences)
    return Refusal(error.problems.status, first_sentence(texts), "deployment_refused", errors=errors)


def status_of(error: Exception) -> int:
    """The HTTP status of a refusal or of a domain error."""
    if isinstance(error, Refusal):
        return error.status
    return next((STATUSES[each][0] for each in type(error).__mro__ if each in STATUSES), 500)


FEW_FOLDERS: Final = 100


def find_problems(r: Reader, repository_id: int, parts: Sequence[Part], permits: Sequence[PushPermit]) -> Problems:
    """The problems by path: other files that may not be replaced, files where folders are needed, and the reverse."""
    problems = Problems()
    own = {file.path for part in parts for file, _ in part.files}
    needed = {folder for part in parts for folder in _folders_of(part)}
    there = find_files(r, repository_id, own)
    used = folders_with_files(r, repository_id, dict.fromkeys(part.coordinates.directory for part in parts))
    in_the_way = paths_with_files(r, repository_id, needed) | (needed & own)
    for part, permit in zip(parts, permits, strict=True):
        directory = part.coordinates.directory
        for folder in _folders_of(part):
            if folder in in_the_way:
                problems.add(directory, f"{folder} is a file, so that nothing can be below it", 409)
        folders = _folders_in(r, repository_id, part) if directory in used else ()
        for file, staged in part.files:
            found = there.get(file.path)
            if found is not None and found.sha256 != staged.blob.sha256 and not permit.overwrite:
                problems.add(file.path, permit.why_not.sentence, permit.why_not.status)
            if file.filename in folders or file.path in needed:
                problems.add(file.path, "there is a folder at this path", 409)
    return problems


def _folders_of(part: Part) -> Iterator[str]:
    """The folders that the files of a part are in."""
    folder = part.coordinates.directory
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def _folders_in(r: Reader, repository_id: int, part: Part) -> set[str]:
    """The names of folders in the directory of a part, among them each that a file of the part has."""
    found = list_folders(r, repository_id, part.coordinates.directory, "", FEW_FOLDERS)
    if len(found) < FEW_FOLDERS:  # nearly always none: one look-up instead of one for each file
        return set(found)
    return {each.filename for each, _ in part.files if file_or_folder(r, repository_id, each.path) is True}
