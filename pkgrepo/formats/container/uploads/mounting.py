"""A blob of one image taken into another without its bytes being sent again."""

from __future__ import annotations

from collections.abc import Iterator

from pkgrepo.formats.container.admission import Target, client_of
from pkgrepo.formats.container.names import is_image_name, parse_digest
from pkgrepo.gateway.image_addresses import ImageAddresses
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, Repository
from pkgrepo.repositories.images.blobs import mount_blob
from pkgrepo.storage.catalog.images.linked_blobs import images_with


class Mounting:
    """
    Finds the image to take a blob from.

    The caller must be allowed to read that image now, by the very credentials of the request: docker, containerd and
    crane ask for a token that may pull the source. Whatever is wrong with it, the client is told to upload and learns
    nothing.
    """

    def __init__(self, services: Services, addresses: ImageAddresses) -> None:
        self._services = services
        self._addresses = addresses

    async def mount(self, request: Request, target: Target, identity: Identity, text: str, source: str) -> bool:
        """
        Whether the image has the blob now; ``source`` is the name of an image, or empty for any.

        :raises DigestInvalid: the digest is malformed
        """
        digest = str(parse_digest(text))
        for repository, image in self._sources(request, target, digest, source):
            readable = repository.active and self._services.access.may(identity, Action.READ, repository, image)
            if readable and await self._services.catalog.write(
                mount_blob,
                target.repository,
                target.image,
                repository,
                image,
                digest,
                client_of(request),
                self._services.clock.now_ms(),
            ):
                return True
        return False

    def _sources(self, request: Request, target: Target, digest: str, source: str) -> Iterator[tuple[Repository, str]]:
        if source:
            if is_image_name(source):
                found = self._addresses.find(request.authority, source) if target.base == "/v2" else None
                if found is not None:
                    yield found.repository, found.image
                elif target.base != "/v2":
                    yield target.repository, source
            return
        for repository_id, image in self._services.catalog.look_inline(images_with, digest):
            repository = self._services.registry.find_id(repository_id)
            if repository is not None and repository.storage_id == target.repository.storage_id:
                yield repository, image
