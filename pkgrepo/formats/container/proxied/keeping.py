"""Fetches an image with all that it consists of, as a client that pulls it for some platforms would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from attrs import define

from pkgrepo.errors import NotFound
from pkgrepo.formats.container.documents import INDEXES, MANIFESTS, parse_in_thread
from pkgrepo.formats.container.names import find_digest, is_digest_like, parse_digest
from pkgrepo.formats.container.proxied.holders import Holder
from pkgrepo.formats.container.proxied.lists import UpstreamImages
from pkgrepo.formats.container.target import Target
from pkgrepo.gateway.format import KeptImage
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository
from pkgrepo.proxy.caching.revalidation import Outcome
from pkgrepo.proxy.trace import Trace
from pkgrepo.storage.catalog.images.manifests import Manifest, find_manifest, find_tagged

DEEPEST = 4  # indexes in indexes
OF_DIGEST = "vnd.docker.reference.digest"  # annotation of an attestation of BuildKit: the manifest that it is about


class _Index(msgspec.Struct):
    manifests: list[dict[str, Any]] = []


@define
class _Keeping:
    target: Target
    platforms: Sequence[str]
    kept: KeptImage


class ImageKeeper:
    """Fetches images through proxies; of a hosted image it only looks whether it is there."""

    def __init__(self, services: Services, images: UpstreamImages) -> None:
        self._services = services
        self._images = images

    async def keep(
        self, repository: Repository, image: str, reference: str, platforms: Sequence[str] = ()
    ) -> KeptImage:
        """
        Fetch what is missing of a tag or digest; of an index only some ``platforms``, without any all.

        :raises NotFound: there is no such image, or a part of it is nowhere; :raises UpstreamFailed: one failed
        :raises RuleRefused: a rule refuses it
        """
        target = Target(repository, image, image, base="", scope="")

        async def read(holder: Holder) -> KeptImage:
            keeping = _Keeping(holder.target, platforms, KeptImage())
            if holder.is_hosted:
                await self._images.rules.choose(holder.target, reference, Trace())
                keeping.kept.digest = (await self._find(holder.target, reference)).digest
                keeping.kept.present += 1
            else:
                await self._keep_manifest(keeping, reference, DEEPEST)
            return keeping.kept

        return await self._images.holders.first(target, read, Trace(), by_digest=is_digest_like(reference))

    async def _keep_manifest(self, keeping: _Keeping, reference: str, deepest: int) -> None:
        """Fetch a manifest with what it refers to."""
        target, kept = keeping.target, keeping.kept
        found = await self._images.manifests.ensure(target, reference, Trace())
        chosen = await self._images.rules.choose(target, reference, Trace())
        manifest = await self._find(target, chosen.digest or reference)
        kept.digest = kept.digest or manifest.digest
        kept.count(manifest.size, fetched=found.outcome is Outcome.MISS)
        repository = target.repository
        data = await self._services.files.read(repository.storage_id, manifest.locator, manifest.size)
        document = await parse_in_thread(self._services.pools, data, manifest.media_type, other_types=True)
        wanted = None
        if keeping.platforms and manifest.media_type in INDEXES:
            wanted = await self._services.pools.cpu(_of_platforms, data, keeping.platforms)
        for each in document.required:
            if each.kind in MANIFESTS:
                if each.kind != "subject" and deepest and (wanted is None or each.digest in wanted):
                    await self._keep_manifest(keeping, each.digest, deepest - 1)
                continue
            await self._images.rules.check_blob(target, each.digest)
            digest = parse_digest(each.digest)
            missing = await self._images.blobs.find(repository, target.image, digest) is None
            await self._images.blobs.keep(repository, target.image, digest)
            kept.count(each.size, fetched=missing)

    async def _find(self, target: Target, reference: str) -> Manifest:
        found: Manifest | None = await self._services.catalog.look(_read, target, reference)
        if found is None:
            raise NotFound("manifest", f"{target.image}{'@' if is_digest_like(reference) else ':'}{reference}")
        return found


def _read(r: Reader, target: Target, reference: str) -> Manifest | None:
    where = (target.repository.storage_id, target.repository.id, target.image)
    if not is_digest_like(reference):
        return find_tagged(r, *where, reference, None)
    return find_manifest(r, *where, str(find_digest(reference)), None)


def _of_platforms(data: bytes, platforms: Iterable[str]) -> set[str]:
    """The digests of the images of an index that are of these platforms, and those of their attestations."""
    listed = msgspec.json.decode(data, type=_Index).manifests
    wanted = {str(each.get("digest")) for each in listed if _is_of(each.get("platform"), platforms)}
    if not wanted:
        raise NotFound("image of the platforms", ", ".join(platforms))
    for each in listed:
        notes = each.get("annotations")
        if isinstance(notes, dict) and notes.get(OF_DIGEST) in wanted:
            wanted.add(str(each.get("digest")))
    return wanted


def _is_of(platform: Any, platforms: Iterable[str]) -> bool:
    """Whether a platform is one of those; without a variant each variant is."""
    if not isinstance(platform, dict):
        return False
    parts = [str(platform.get(key) or "") for key in ("os", "architecture", "variant")]
    return "/".join(filter(None, parts)) in platforms or "/".join(parts[:2]) in platforms
