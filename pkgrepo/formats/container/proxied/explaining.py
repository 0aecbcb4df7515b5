"""Explains what readers get of an image: it is read as for a client, and the steps are returned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec
from attrs import evolve, frozen

from pkgrepo.errors import Invalid, NotFound, UpstreamDenied, UpstreamFailed
from pkgrepo.formats.container.documents import INDEXES
from pkgrepo.formats.container.names import find_digest, is_digest_like, is_tag
from pkgrepo.formats.container.proxied.holders import tag_key
from pkgrepo.formats.container.proxied.lists import UpstreamImages
from pkgrepo.formats.container.target import Target
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository
from pkgrepo.proxy.explaining import REFUSALS, Explanation, FoundManifest, Platform, Serving
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.images.manifests import Manifest, find_manifest, find_tagged, has_manifest
from pkgrepo.storage.catalog.images.trust import Keys
from pkgrepo.storage.catalog.packages.packages import package_serial

from .holders import Holder

MOST_PLATFORMS = 100  # of an explanation


class _Index(msgspec.Struct):
    """The part of an index that names platforms."""

    manifests: list[dict[str, Any]] = []


@frozen
class _Question:
    reference: str
    trace: Trace
    revalidate: bool

    @property
    def by_digest(self) -> bool:
        return is_digest_like(self.reference)


class ImageExplainer:
    """Explains images; ``keys_of`` gives the keys whose signatures make images of a repository visible to readers."""

    def __init__(self, services: Services, images: UpstreamImages, keys_of: Callable[[Repository], Keys]) -> None:
        self._services = services
        self._images = images
        self._keys_of = keys_of

    async def explain(
        self, repository: Repository, image: str, reference: str | None, *, revalidate: bool
    ) -> Explanation:
        """
        How the list of an image's tags is served or, with ``reference``, a tag or digest.

        With ``revalidate`` a tag is confirmed again. :raises Invalid: ``reference`` is neither a tag nor a digest
        """
        if reference is not None:
            _check_reference(reference)
        trace, target = Trace(), Target(repository, image, image, base="", scope="")
        question = _Question(reference or "", trace, revalidate)

        async def read(holder: Holder) -> Explanation:
            if reference is None:
                beside = [Serving(each.repository) for each in holder.beside]
                return Explanation(serving=[await self._find_tags(holder, trace), *beside])
            return await self._find_manifest(holder, question)

        try:
            found = await self._images.holders.first(target, read, trace, by_digest=question.by_digest)
        except REFUSALS as error:
            if reference is not None and type(error) is NotFound:
                error = NotFound("manifest", f"{image}{'@' if question.by_digest else ':'}{reference}")
            found = Explanation().refused(error)
        return evolve(found, steps=trace.steps)

    async def _find_tags(self, holder: Holder, trace: Trace) -> Serving:
        repository, image = holder.target.repository, holder.target.image
        if holder.is_hosted:
            return Serving(repository)
        try:
            found = await self._images.lists.tags(repository, image, trace)
        except UpstreamDenied:
            raise
        except UpstreamFailed:
            if await self._services.catalog.look(package_serial, repository.id, image) is None:
                raise
            return Serving(repository, stale=True)  # the tags that are kept
        return Serving(repository, found.document, found.document.fresh_until_ms, found.found.stale)

    async def _find_manifest(self, holder: Holder, question: _Question) -> Explanation:
        target, reference, trace = holder.target, question.reference, question.trace
        repository, look = target.repository, self._services.catalog.look
        serving = Serving(repository)
        if not holder.is_hosted:
            found = await self._images.manifests.ensure(target, reference, trace, revalidate=question.revalidate)
            key = tag_key(target.image, reference)
            document = await look(upstream_documents.find_document, repository.id, key)
            serving = Serving(repository, document, found.ends_s * 1000 or None, found.stale)
        chosen = await self._images.rules.choose(target, reference, trace)
        served, seen_ms = chosen.digest or reference, chosen.seen_ms
        keys = self._keys_of(repository)
        manifest: Manifest | None = await look(_read, target, served, keys)
        if manifest is None and keys is not None and await look(_read, target, served, None) is not None:
            trace.add(StepKind.UNSIGNED, repository=repository.path, what=f"{target.image}:{reference}")
        if manifest is None:
            raise NotFound("manifest", reference)
        return Explanation(
            serving=[serving],
            manifest=FoundManifest(
                reference=reference,
                repository=repository,
                digest=manifest.digest,
                media_type=manifest.media_type,
                size=manifest.size,
                seen_ms=seen_ms,
                platforms=await self._platforms(repository, manifest),
            ),
        )

    async def _platforms(self, repository: Repository, manifest: Manifest) -> Sequence[Platform]:
        if manifest.media_type not in INDEXES or not manifest.locator:
            return ()
        data = await self._services.files.read(repository.storage_id, manifest.locator, manifest.size)
        listed = (await self._services.pools.cpu(_read_platforms, data))[:MOST_PLATFORMS]
        digests = [digest for _, digest in listed]
        kept = await self._services.catalog.scan(_kept, manifest.package_id, digests)
        return [Platform(name, digest, digest in kept) for name, digest in listed]


def _check_reference(reference: str) -> None:
    valid = find_digest(reference) is not None if is_digest_like(reference) else is_tag(reference)
    if not valid:
        raise Invalid("a version of an image is a tag or a digest", "version")


def _read(r: Reader, target: Target, reference: str, keys: Keys) -> Manifest | None:
    where = (target.repository.storage_id, target.repository.id, target.image)
    if not is_digest_like(reference):
        return find_tagged(r, *where, reference, keys)
    return find_manifest(r, *where, str(find_digest(reference)), keys)


def _kept(r: Reader, package_id: int, digests: Collection[str]) -> set[str]:
    return {each for each in digests if has_manifest(r, package_id, each)}


def _read_platforms(data: bytes) -> list[tuple[str, str]]:
    """The platforms of an index (OCI image index, "platform"), and the digests of their images."""
    found = []
    for each in msgspec.json.decode(data, type=_Index).manifests:
        platform, digest = each.get("platform"), each.get("digest")
        if isinstance(platform, dict) and isinstance(digest, str):
            parts = [platform.get(key) for key in ("os", "architecture", "variant")]
            found.append(("/".join(part for part in parts if isinstance(part, str)), digest))
    return found
