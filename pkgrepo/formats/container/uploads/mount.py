"""Mounts of blobs: a stored blob is added to another image, so the client need not upload it again."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pkgrepo.formats.container.names import is_image_name, parse_digest
from pkgrepo.formats.container.promises import client_of
from pkgrepo.formats.container.proxied.member_content import MemberContent
from pkgrepo.formats.container.target import Target
from pkgrepo.gateway.image_addresses import ImageAddresses
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.model import ANONYMOUS, Action, Identity, Repository
from pkgrepo.storage.catalog.images.linked_blobs import images_with


class BlobMounts:
    """
    Mounts blobs from images that the caller may read.

    The credentials of the request must allow reading the source: docker, containerd and crane get a token that may pull
    from it. A token for the target alone is enough if everybody may read the source. If a mount fails for any reason,
    the answer asks the client to upload the blob, and tells nothing about the source.
    """

    def __init__(self, services: Services, addresses: ImageAddresses, members: MemberContent) -> None:
        self._services = services
        self._addresses = addresses
        self._members = members

    async def mount(self, request: Request, target: Target, identity: Identity, text: str, source: str) -> bool:
        """
        Mount a blob from the image ``source``, or from any image if it is empty. False if that fails.

        :raises DigestInvalid: the digest is malformed
        """
        digest = str(parse_digest(text))
        async for repository, image in self._sources(request, target, digest, source):
            may = self._services.access.may
            if not repository.active or not (
                await may(ANONYMOUS, Action.READ, repository, image)
                or await may(identity, Action.READ, repository, image)
            ):
                continue
            where = Target(repository, image, image, "", "")
            if await self._members.mount(where, target, digest, client_of(request)):
                return True
        return False

    async def _sources(
        self, request: Request, target: Target, digest: str, source: str
    ) -> AsyncIterator[tuple[Repository, str]]:
        if source:
            if is_image_name(source):
                found = self._addresses.find(request.authority, source) if target.base == "/v2" else None
                if found is not None:
                    yield found.repository, found.image
                elif target.base != "/v2":
                    yield target.virtual or target.repository, source
            return
        for repository_id, image in await self._services.catalog.look(images_with, digest):
            repository = self._services.registry.find_id(repository_id)
            if repository is not None and repository.storage_id == target.repository.storage_id:
                yield repository, image
