"""Publishes the files of a deployment: staged files -> push rules -> releases -> one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from pkgrepo.errors import Conflict, Forbidden, PkgrepoError, UpstreamFailed
from pkgrepo.formats.maven.configuration import DeployRequirements
from pkgrepo.formats.maven.deploy.contents.validation import SIGNED_BY_ASC, component_list
from pkgrepo.formats.maven.metadata.plugins import (
    ATTEMPTS,
    BUSY,
    PluginChange,
    group_metadata,
    prepare_plugins,
    put_plugins,
)
from pkgrepo.formats.maven.metadata.uploads import Outdated
from pkgrepo.formats.maven.metadata.values import Plugin
from pkgrepo.formats.maven.openpgp import LARGEST_SIGNATURE, is_signed_by, read_certificates
from pkgrepo.formats.maven.paths import ArtifactFile, Metadata
from pkgrepo.formats.maven.push_rules import PushPermit, check_push
from pkgrepo.formats.maven.upload.release import make_release, new_file
from pkgrepo.gateway.answers.statuses import STATUSES
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Refusal
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, Identity, Repository
from pkgrepo.model.deployments import Deployment, StagedFile
from pkgrepo.repositories.publish.deployments import publish_deployment
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.repositories.publish.publisher import log_published
from pkgrepo.repositories.publish.releases import Published, Release
from pkgrepo.storage.catalog.packages import checksum_claims, deployments

from .limits import SHOWN_COMPONENTS
from .parts import Part, one_of_each, split_parts
from .places import find_problems
from .problems import Problems, first_sentence
from .stepping import Turns


class Refused(PkgrepoError):  # noqa: N818 - named for what happened
    """The deployment cannot be published; the problems say why."""

    def __init__(self, problems: Problems) -> None:
        super().__init__("the deployment is refused")
        self.problems = problems


class Publishing:
    """Publishes deployments of one hosted repository."""

    def __init__(self, services: Services, repository: Repository, indexer: Indexer) -> None:
        self._services = services
        self._repository = repository
        self._indexer = indexer

    async def check_rules(self, identity: Identity, targets: Iterable[ArtifactFile]) -> None:
        """Check the push rules for every version among the files. :raises Refused: one forbids a version"""
        await self._permits(identity, await self._services.pools.cpu(one_of_each, targets))

    async def check_places(self, identity: Identity, deployment: Deployment) -> None:
        """Check that the staged files can be at their paths. :raises Refused: other files or folders are there"""
        parts = await self._parts(deployment)
        permits = await self._permits(identity, [each.first for each in parts])
        await self._check_places(parts, permits)

    async def check_signatures(self, deployment: Deployment) -> None:
        """
        Check the PGP signatures among the staged files, if the repository has keys that it trusts.

        :raises Refused: one is not valid for its file, or not by a trusted key
        """
        texts = DeployRequirements.of(self._repository).trusted_keys
        if not texts:
            return
        services, problems = self._services, Problems()
        certificates = await services.pools.cpu(read_certificates, texts)
        staged: list[StagedFile] = await services.catalog.scan(deployments.staged_files, deployment.id)
        blobs = {each.path: each.blob for each in staged}
        for path, blob in blobs.items():
            signed = blobs.get(path.removesuffix(SIGNED_BY_ASC)) if path.endswith(SIGNED_BY_ASC) else None
            if signed is None:
                continue
            storage_id = self._repository.storage_id
            signature = await services.files.read(storage_id, blob.locator, min(blob.size, LARGEST_SIGNATURE))
            look = partial(is_signed_by, signature=signature, certificates=certificates)
            if not await services.files.inspect(services.pools.cpu, storage_id, signed, look):
                problems.add(path, "this is no valid signature of the file by a key that the repository trusts")
        if problems:
            raise Refused(problems)

    async def publish(self, identity: Identity, actor: Actor, deployment: Deployment) -> None:
        """
        Publish all files of a deployment that is in the state PUBLISHING, which then is PUBLISHED.

        :raises Refused: they may not be published
        :raises StorageFull, StorageFailed: it may be published nevertheless; its state tells
        """
        parts = await self._parts(deployment)
        permits = await self._permits(identity, [each.first for each in parts])
        await self._permits(identity, [group_metadata(each) for each in _plugins(parts)])
        await self._check_places(parts, permits)
        releases = await self._services.pools.cpu(_releases, parts, permits)
        try:
            await self._services.publisher.check(self._repository, [each.package_key for each in releases])
        except (Forbidden, UpstreamFailed) as error:
            problems = Problems()
            problems.add(parts[0].first.path, str(error), 403 if isinstance(error, Forbidden) else 503)
            raise Refused(problems) from None
        coordinates = dict.fromkeys(each.coordinates for each in parts)
        meta = {
            "components": component_list(coordinates, SHOWN_COMPONENTS),
            "component_count": len(coordinates),
            "file_count": sum(len(each.files) for each in parts),
        }
        guard = partial(_guard, repository=self._repository, parts=parts, permits=permits)
        published = await self._publish(deployment, releases, meta, actor, _plugins(parts), guard)
        turns = Turns()
        for release, result in zip(releases, published, strict=True):
            await turns.rest()
            if result.changed:
                log_published(self._repository, release.package_key, release.version_text, actor)

    async def _publish(
        self,
        deployment: Deployment,
        releases: Sequence[Release],
        meta: Mapping[str, Any],
        actor: Actor,
        plugins: Mapping[str, Sequence[Plugin]],
        guard: Callable[[Transaction, int], None],
    ) -> Sequence[Published]:
        """
        Publish releases, and add plugins to the metadata of their groups, in one transaction.

        :raises Conflict: other clients changed these metadata too often meanwhile
        """
        services, repository = self._services, self._repository
        for _ in range(ATTEMPTS):
            async with services.publisher.stage(repository) as staged:
                changes = [
                    await prepare_plugins(services, repository, staged, group, found)
                    for group, found in plugins.items()
                ]
                blobs = [blob for each in changes for blob in each.blobs]
                try:
                    published = await services.publisher.change_with_blobs(
                        publish_deployment,
                        repository,
                        staged,
                        blobs,
                        deployment.id,
                        releases,
                        meta,
                        actor,
                        self._indexer,
                        guard,
                        partial(_put_all, repository=repository, changes=changes, actor=actor),
                    )
                except Outdated:
                    continue
                return published.releases
        raise Conflict(BUSY)

    async def _parts(self, deployment: Deployment) -> list[Part]:
        staged: list[StagedFile] = await self._services.catalog.scan(deployments.staged_files, deployment.id)
        problems = Problems()
        for each in staged:
            if not each.blob.locator:
                problems.add(each.path, "the storage has lost this file; deploy it again", 507)
        if problems:
            raise Refused(problems)
        return await self._services.pools.cpu(split_parts, staged)

    async def _permits(self, identity: Identity, targets: Sequence[ArtifactFile | Metadata]) -> list[PushPermit]:
        permits: list[PushPermit] = []
        problems, turns = Problems(), Turns()
        for each in targets:
            await turns.rest()
            try:
                permits.append(await check_push(self._services, identity, self._repository, each, deploy=True))
            except (Refusal, PkgrepoError) as error:
                problems.add(each.path.rpartition("/")[0], str(error), status_of(error))
        if problems:
            raise Refused(problems)
        return permits

    async def _check_places(self, parts: Sequence[Part], permits: Sequence[PushPermit]) -> None:
        problems = await self._services.catalog.scan(find_problems, self._repository.id, parts, permits)
        if problems:
            raise Refused(problems)


def _releases(parts: Sequence[Part], permits: Sequence[PushPermit]) -> list[Release]:
    return [
        make_release(
            part.coordinates,
            [new_file(file, staged.blob) for file, staged in part.files],
            part.meta,
            overwrite=permit.overwrite,
            reuse=permit.reuse,
        )
        for part, permit in zip(parts, permits, strict=True)
    ]


def _guard(
    tx: Transaction,
    _now_ms: int,
    repository: Repository,
    parts: Sequence[Part],
    permits: Sequence[PushPermit],
) -> None:
    """Check again, in the transaction, that the files can be at their paths."""
    problems = find_problems(tx, repository.id, parts, permits)
    if problems:
        raise Refused(problems)
    paths = [file.path for part in parts for file, _ in part.files]
    checksum_claims.remove_claims(tx, repository.id, paths)


def _plugins(parts: Iterable[Part]) -> dict[str, list[Plugin]]:
    """The plugins among the parts, by group."""
    found: dict[str, list[Plugin]] = {}
    for part in parts:
        if part.plugin is not None:
            at = part.coordinates
            found.setdefault(at.group, []).append(Plugin(part.plugin["prefix"], at.artifact, part.plugin["name"]))
    return found


def _put_all(
    tx: Transaction, now_ms: int, repository: Repository, changes: Sequence[PluginChange], actor: Actor
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
