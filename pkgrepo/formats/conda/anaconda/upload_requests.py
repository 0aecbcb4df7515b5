"""Answers the two requests of an upload that have credentials; see ``uploads`` for its states, and ``posts``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pkgrepo.errors import AuthenticationRequired, Conflict, Invalid, NotFound, PkgrepoError, StorageFailed, StorageFull
from pkgrepo.formats.conda import configuration
from pkgrepo.formats.conda.description import Description
from pkgrepo.formats.conda.upload.publishing import Upload, make_release
from pkgrepo.formats.conda.upload.requests import check_sha256
from pkgrepo.gateway.bodies import read_object
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import NO_STORE, Answer, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, BlobInfo, Repository
from pkgrepo.model.deployments import Deployment, DeploymentState, StagedFile
from pkgrepo.repositories.publish.publisher import log_published
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.storage.catalog.packages import deployments

from . import uploads
from .posts import PREFIX, TICKET, path_of
from .targets import FileTarget

STAGE_SIZE: Final = 1024 * 1024  # bytes of the document that begins an upload, with all fields of index.json

_CONDA: Final = "conda"  # the type of a file, beside those of other package managers


class UploadRequests:
    """Uploads of anaconda-client to one hosted repository."""

    def __init__(self, services: Services, repository: Repository) -> None:
        self._services = services
        self._repository = repository
        self._policy = configuration.policy(repository)

    async def stage(self, request: Request, target: FileTarget) -> Answer:
        """
        Begin an upload: the address that takes the file, and a ticket for it.

        :raises Invalid: the body is malformed, or names a file of another package manager
        :raises FileExists, FileBurned, Forbidden: see L{uploads.stage_upload}
        """
        services = self._services
        identity = await services.access.identify(request)
        await services.access.require(identity, Action.WRITE, self._repository, target.file.name)
        if identity.anonymous:
            raise AuthenticationRequired
        document = await read_object(request, STAGE_SIZE)
        kind = document.get("distribution_type", _CONDA)
        if kind != _CONDA:
            raise Invalid("this is a conda channel, which takes conda packages only", "distribution_type")
        sha256 = document.get("sha256")
        if sha256 is not None and not isinstance(sha256, str):
            raise Invalid("sha256 must be a text", "sha256")
        deployment, ticket = await services.catalog.write(
            uploads.stage_upload,
            self._repository,
            uploads.Wish(target, check_sha256(sha256)),
            identity,
            reuse=self._policy.reuse_deleted_names,
            now_ms=services.clock.now_ms(),
        )
        url = f"{services.base_url(request)}{PREFIX}{deployment.uid}"
        answer = {"post_url": url, "form_data": {TICKET: ticket}, "dist_id": deployment.uid}
        return json_answer(answer, headers=NO_STORE)

    async def commit(self, request: Request, target: FileTarget) -> Answer:
        """
        Publish the file of an upload.

        :raises NotFound: the caller has no such upload; :raises Conflict: its file has not arrived
        :raises FileExists, FileBurned: it may not be published; then the upload is over
        """
        services = self._services
        identity = await services.access.identify(request)
        await services.access.require(identity, Action.WRITE, self._repository, target.file.name)
        uid = (await read_object(request)).get("dist_id")
        deployment: Deployment | None = await services.catalog.look(
            deployments.find_deployment, self._repository.id, uid if isinstance(uid, str) else ""
        )
        if deployment is None or deployment.user_id != identity.user_id or path_of(deployment) != target.path:
            raise NotFound("upload", str(target.file))
        if deployment.state is not DeploymentState.VALIDATED:
            raise Conflict("the file of this upload has not arrived")
        release = await self._release(target, deployment)
        actor = actor_of(request, identity)
        try:
            async with services.publisher.stage(self._repository) as staged:
                await services.publisher.change_with_blobs(
                    uploads.publish_upload, self._repository, staged, [], deployment, release, actor
                )
        except (StorageFull, StorageFailed):
            raise  # it can be committed again
        except PkgrepoError:
            await self._drop(deployment, release.files[0].blob)
            raise
        log_published(self._repository, release.package_key, release.version_text, actor)
        url = services.repository_url(request, self._repository)
        return json_answer({"basename": target.path, "url": f"{url}/{target.path}"})

    async def _release(self, target: FileTarget, deployment: Deployment) -> Release:
        """The release of an upload whose file is here. :raises Conflict: the storage has lost it"""
        file: StagedFile | None = await self._services.catalog.look(
            deployments.find_staged_file, deployment.id, target.path
        )
        if file is None or not file.blob.locator:
            raise Conflict("the storage has lost the file of this upload; start it again")
        attrs: Mapping[str, Any] = file.attrs
        return make_release(Upload(target.file, target.subdir, file.blob), Description(**attrs), self._policy)

    async def _drop(self, deployment: Deployment, blob: BlobInfo) -> None:
        services = self._services
        if await services.catalog.write(deployments.remove_deployment, deployment.id):
            await services.publisher.discard(self._repository, [blob.sha256], deployment.created_ms)
