"""The route that shows what an image is made of: its platforms with layers and commands, and what refers to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pkgrepo.errors import BlobMissing, Invalid, NotFound
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table
from pkgrepo.management.packages import images
from pkgrepo.management.packages.handlers import find_package
from pkgrepo.management.packages.schema import ImageRecord, PlatformRecord, ReferrerRecord
from pkgrepo.storage.catalog.images.contents import StoredManifest, find_manifests
from pkgrepo.storage.catalog.images.referrers import Referrer, list_referrers, signers_of

from .image_documents import (
    MOST_PLATFORMS,
    Descriptor,
    ImageDocument,
    describe_platform,
    is_attestation,
    read_document,
)

MOST_REFERRERS: Final = 50
MOST_BYTES: Final = 8 * 1024 * 1024  # of manifests and configurations that a request reads; usual ones have 10 KiB


class _Budget:
    """How many bytes of documents a request may still read."""

    def __init__(self) -> None:
        self._rest = MOST_BYTES

    def take(self, size: int) -> bool:
        """Whether so many bytes may be read; they are then taken."""
        if not 0 <= size <= self._rest:
            return False
        self._rest -= size
        return True


table = Table("packages")


@table.route(
    "GET",
    "/package/<repository>/<package>/versions/<version>/image",
    access=CONTENT_READERS,
    summary="Show what an image is made of",
    answer=ImageRecord,
)
async def show_image(call: Call, version: str) -> ImageRecord:
    """
    Only for images. Commands, labels and sizes are those in the image's documents, which nobody has verified.

    platforms has at most 24; platform_count is their number in the index. referrers are manifests about this one,
    such as signatures and SBOMs; signed_by are the ids of the keys that the repository trusts, and whose signatures
    the server has verified.
    """
    if not images.are_in(call):
        raise NotFound("image", call.package or "")
    package = await find_package(call)
    found = await images.find(call, package, version)
    top, budget = await _stored(call, package.id, [found.digest]), _Budget()
    document = await _document(call, top[0], budget) if top else None
    if document is None:
        raise NotFound("manifest", found.digest)
    listed = [each for each in document.manifests if not is_attestation(each)]
    if document.manifests:
        platforms = await _listed(call, package.id, listed[:MOST_PLATFORMS], budget)
    else:
        platforms = [await _platform(call, found.digest, top[0], document, None, budget)]
    referrers = await call.catalog.scan(list_referrers, package.id, found.digest, MOST_REFERRERS)
    return ImageRecord(
        digest=found.digest,
        media_type=found.media_type,
        platforms=platforms,
        platform_count=len(listed) if document.manifests else 1,
        referrers=[_referrer(each) for each in referrers],
        signed_by=await _signers(call, package.id, found.digest),
    )


async def _signers(call: Call, package_id: int, digest: str) -> list[str]:
    trusted = images.signature_keys(call) or ()
    signers = await call.catalog.look(signers_of, package_id, digest)
    return [each for each in signers if each in trusted]


async def _listed(call: Call, package_id: int, listed: Sequence[Descriptor], budget: _Budget) -> list[PlatformRecord]:
    """The platforms of an index, of which one at a time is in memory."""
    stored = {each.digest: each for each in await _stored(call, package_id, [each.digest for each in listed])}
    found: list[PlatformRecord] = []
    for each in listed:
        held = stored.get(each.digest)
        document = None if held is None else await _document(call, held, budget)
        found.append(await _platform(call, each.digest, held, document, each.platform, budget))
    return found


async def _platform(
    call: Call,
    digest: str,
    held: StoredManifest | None,
    document: ImageDocument | None,
    listed: Mapping[str, Any] | None,
    budget: _Budget,
) -> PlatformRecord:
    configuration = None
    if held is not None and document is not None and document.config is not None:
        for blob in held.blobs:
            if blob.digest == document.config.digest:
                configuration = await _read(call, blob.locator, blob.size, budget)
    return await call.services.shared.pools.cpu(describe_platform, digest, document, configuration, listed)


async def _document(call: Call, manifest: StoredManifest, budget: _Budget) -> ImageDocument | None:
    """A manifest or an index; None if it cannot be read."""
    data = await _read(call, manifest.locator, manifest.size, budget)
    if data is None:
        return None
    try:
        return await call.services.shared.pools.cpu(read_document, data)
    except Invalid:
        return None


async def _stored(call: Call, package_id: int, digests: Sequence[str]) -> list[StoredManifest]:
    return await call.catalog.scan(_find, call.repository.storage_id, package_id, digests)


async def _read(call: Call, locator: str, size: int, budget: _Budget) -> bytes | None:
    """Stored bytes; None if they are lost, or more than may be read."""
    if not locator or not budget.take(size):
        return None
    try:
        return await call.services.shared.files.read(call.repository.storage_id, locator, size)
    except BlobMissing:
        return None


def _find(r: Reader, storage_id: int, package_id: int, digests: Sequence[str]) -> list[StoredManifest]:
    return find_manifests(r, storage_id, package_id, digests)


def _referrer(found: Referrer) -> ReferrerRecord:
    return ReferrerRecord.from_attributes(found, annotations=dict(found.annotations))
