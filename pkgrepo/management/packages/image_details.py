"""The route that shows what an image is made of: its platforms with layers and commands, and what refers to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from attrs import frozen

from pkgrepo.errors import BlobMissing, Invalid, NotFound
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.handlers import Handlers
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.storage.catalog.images.contents import StoredManifest, find_manifests
from pkgrepo.storage.catalog.images.referrers import Referrer, list_referrers, signers_of

from .image_documents import (
    LARGEST_DOCUMENT,
    MOST_PLATFORMS,
    Descriptor,
    ImageDocument,
    describe_platform,
    is_attestation,
    read_document,
)
from .images import Images
from .routes import find_package
from .schema import ImageRecord, PlatformRecord, ReferrerRecord

MOST_REFERRERS: Final = 50


@frozen
class _Part:
    """A manifest of an image, and the bytes of it and its configuration that the server has."""

    digest: str
    manifest: bytes | None
    configuration: bytes | None
    listed: dict[str, Any] | None


class ImageDetails(Handlers):
    """Shows what images are made of."""

    table = Table("packages")

    def __init__(self, services: ManagementServices) -> None:
        super().__init__(services)
        self._images = Images(services)

    @table.route(
        "GET",
        "/package/<repository>/<package>/versions/<version>/image",
        access=CONTENT_READERS,
        summary="Show what an image is made of",
        answer=ImageRecord,
    )
    async def image(self, call: Call, version: str) -> ImageRecord:
        """
        Only for images. Commands, labels and sizes are those in the image's documents, which nobody has verified.

        platforms has at most 24; platform_count is their number in the index. referrers are manifests about this one,
        such as signatures and SBOMs; signed_by are the ids of the keys that the repository trusts, and whose signatures
        the server has verified.
        """
        if not self._images.are_in(call.repository):
            raise NotFound("image", call.package or "")
        package = await find_package(self._catalog, call)
        found = await self._images.find(call, package, version)
        top = await self._stored(call, package.id, [found.digest])
        data = await self._bytes(call, top[0]) if top else None
        if data is None:
            raise NotFound("manifest", found.digest)
        document = await self._services.shared.pools.cpu(read_document, data)
        listed = [each for each in document.manifests if not is_attestation(each)]
        if document.manifests:
            parts = await self._listed_parts(call, package.id, listed[:MOST_PLATFORMS])
        else:
            configuration = await self._configuration(call, top[0], document)
            parts = [_Part(found.digest, data, configuration, None)]
        referrers = await self._catalog.scan(list_referrers, package.id, found.digest, MOST_REFERRERS)
        return ImageRecord(
            digest=found.digest,
            media_type=found.media_type,
            platforms=await self._services.shared.pools.cpu(_describe, parts),
            platform_count=len(listed) if document.manifests else 1,
            referrers=[_referrer(each) for each in referrers],
            signed_by=await self._signers(call, package.id, found.digest),
        )

    async def _signers(self, call: Call, package_id: int, digest: str) -> list[str]:
        trusted = self._images.signature_keys(call.repository) or ()
        signers = await self._catalog.look(signers_of, package_id, digest)
        return [each for each in signers if each in trusted]

    async def _listed_parts(self, call: Call, package_id: int, listed: Sequence[Descriptor]) -> list[_Part]:
        stored = {each.digest: each for each in await self._stored(call, package_id, [each.digest for each in listed])}
        parts: list[_Part] = []
        for each in listed:
            held = stored.get(each.digest)
            data = None if held is None else await self._bytes(call, held)
            configuration = None
            if held is not None and data is not None:
                try:
                    document = await self._services.shared.pools.cpu(read_document, data)
                except Invalid:
                    data = None
                else:
                    configuration = await self._configuration(call, held, document)
            parts.append(_Part(each.digest, data, configuration, each.platform))
        return parts

    async def _stored(self, call: Call, package_id: int, digests: Sequence[str]) -> list[StoredManifest]:
        return await self._catalog.scan(_find, call.repository.storage_id, package_id, digests)

    async def _bytes(self, call: Call, manifest: StoredManifest) -> bytes | None:
        return await self._read(call, manifest.locator, manifest.size)

    async def _configuration(self, call: Call, manifest: StoredManifest, document: ImageDocument) -> bytes | None:
        wanted = "" if document.config is None else document.config.digest
        for blob in manifest.blobs:
            if blob.digest == wanted:
                return await self._read(call, blob.locator, blob.size)
        return None

    async def _read(self, call: Call, locator: str, size: int) -> bytes | None:
        """Stored bytes; None if they are lost, or more than a document has."""
        if size > LARGEST_DOCUMENT or not locator:
            return None
        try:
            return await self._services.shared.files.read(call.repository.storage_id, locator, size)
        except BlobMissing:
            return None


def _find(r: Reader, storage_id: int, package_id: int, digests: Sequence[str]) -> list[StoredManifest]:
    return find_manifests(r, storage_id, package_id, digests)


def _describe(parts: Sequence[_Part]) -> list[PlatformRecord]:
    return [
        describe_platform(
            each.digest,
            None if each.manifest is None else read_document(each.manifest),
            each.configuration,
            each.listed,
        )
        for each in parts
    ]


def _referrer(found: Referrer) -> ReferrerRecord:
    return ReferrerRecord.from_attributes(found, annotations=dict(found.annotations))
