"""
Reads of repositories whose images come from elsewhere: from upstreams (Proxy), or from their members (Virtual).

What is wanted is fetched unless it is kept, and then answered as for a hosted image, whose cached answers it shares. If
an upstream fails whose list was never asked for, the list has what is kept of the image.

An image that a hosted member of a virtual repository has belongs to that member; no upstream is asked for it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from attrs import evolve

from pkgrepo.errors import NotFound, RepositoryInactive, UpstreamFailed
from pkgrepo.formats.container.blobs import requests as blobs
from pkgrepo.formats.container.blobs.requests import BlobRequests, blob_answer, parse_known
from pkgrepo.formats.container.lists import tags
from pkgrepo.formats.container.lists.paging import parse_page
from pkgrepo.formats.container.lists.referrers import ReferrerRequests, referrers_answer, wanted_types
from pkgrepo.formats.container.lists.tags import TagListRequests, tags_answer
from pkgrepo.formats.container.manifests import requests as manifests
from pkgrepo.formats.container.manifests.requests import ManifestRequests
from pkgrepo.formats.container.names import is_digest_like, parse_digest
from pkgrepo.formats.container.query import parameter
from pkgrepo.formats.container.target import Target
from pkgrepo.gateway.content import arriving
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, Content, Fields
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Identity, Repository, RepositoryType
from pkgrepo.proxy.resolving.leaves import Leaf
from pkgrepo.storage.catalog.images.linked_blobs import LinkedBlob
from pkgrepo.storage.catalog.images.manifests import list_referrers
from pkgrepo.storage.catalog.packages import upstream_documents
from pkgrepo.storage.catalog.packages.packages import find_package, package_serial
from pkgrepo.storage.catalog.packages.tags import list_tag_names

from .images import UpstreamImages
from .manifests import Outcome

STALE: Final[Fields] = ((b"Warning", b'110 - "stale"'),)  # RFC 7234 section 5.5.1

T = TypeVar("T")


class ProxiedReads:
    """Reads images of Proxy and Virtual repositories; the caller is authorized."""

    def __init__(
        self,
        services: Services,
        images: UpstreamImages,
        *,
        manifests: ManifestRequests,
        blobs: BlobRequests,
        tags: TagListRequests,
        referrers: ReferrerRequests,
    ) -> None:
        self._services = services
        self._images = images
        self._manifests = manifests
        self._blobs = blobs
        self._tags = tags
        self._referrers = referrers

    async def get_manifest(self, request: Request, target: Target, identity: Identity, reference: str) -> Answer:
        """
        A manifest, or its headers for HEAD.

        :raises Refusal: there is no such manifest; :raises UpstreamFailed: that is not known
        """

        async def read(holder: Target) -> Answer:
            if holder.repository.type is RepositoryType.HOSTED:
                return await self._manifests.get(request, holder, identity, reference)
            found = await self._images.manifests.ensure(holder, reference, revalidate=request.revalidates)
            headers = STALE if found.stale else ()
            return await self._manifests.get(
                request,
                holder,
                identity,
                reference,
                more_headers=headers,
                ends_s=found.ends_s,
                counted=found.outcome is not Outcome.MISS,
            )

        try:
            return await self._first(target, read, by_digest=is_digest_like(reference))
        except NotFound:
            raise manifests.unknown(reference) from None

    async def get_blob(self, request: Request, target: Target, identity: Identity, text: str) -> Answer:
        """
        A blob, or its headers for HEAD.

        :raises Refusal: the image does not have it; :raises UpstreamFailed: that is not known
        """
        digest = parse_known(text)

        async def read(holder: Target) -> Answer:
            repository, image, upstream = holder.repository, holder.image, self._images.blobs
            hosted = repository.type is RepositoryType.HOSTED
            if hosted or await upstream.find(repository, image, digest) is not None:
                return await self._blobs.get(request, holder, identity, text)
            if request.method == b"HEAD":
                size = await upstream.size(repository, image, digest)
                return blob_answer(repository, digest, Content(size, open=_open_nothing))
            content = await upstream.content(repository, image, digest)
            if isinstance(content, LinkedBlob):
                body = await self._services.files.body(repository.storage_id, content.locator, content.size)
                return blob_answer(repository, digest, body)
            return blob_answer(repository, digest, arriving(content))

        try:
            return await self._first(target, read, by_digest=True)
        except NotFound:
            raise blobs.unknown(str(digest)) from None

    async def get_tags(self, request: Request, target: Target, identity: Identity, rest: str) -> Answer:
        """
        A page of the tags of an image.

        :raises Refusal: there is no such image, or the page size is not a number
        :raises UpstreamFailed: it is not known whether there is
        """
        size, last = parse_page(request)

        async def read(holder: Target) -> Answer:
            if holder.repository.type is RepositoryType.HOSTED:
                return await self._tags.get(request, holder, identity, rest)
            repository, generation = holder.repository, self._services.catalog.generation()
            try:
                found = await self._images.lists.tags(repository, holder.image)
            except UpstreamFailed:
                kept = await self._services.catalog.scan(_kept_tags, repository.id, holder.image, last, size + 1)
                if kept is None:
                    raise
                return tags_answer(holder, kept, size, STALE)
            after = bisect_right(found.entries, last)
            headers = STALE if found.confirmation.stale else ()
            answer = tags_answer(holder, found.entries[after : after + size + 1], size, headers)

            def fresh(r: Reader) -> bool:
                return upstream_documents.fetched_at(r, repository.id, found.key) == found.fetched_ms

            self._services.answer_cache.put_answer(
                request,
                repository,
                answer,
                package=holder.image,
                fresh=fresh,
                generation=generation,
                ends_s=found.confirmation.ends_s,
            )
            return answer

        try:
            return await self._first(target, read)
        except NotFound:
            raise tags.unknown(target) from None

    async def get_referrers(self, request: Request, target: Target, identity: Identity, text: str) -> Answer:
        """
        An image index of the manifests whose subject has this digest.

        :raises DigestInvalid: the digest is malformed; :raises UpstreamFailed: there is no list to serve
        """
        digest = parse_digest(text)
        types, after = wanted_types(request), parameter(request, "last")

        async def read(holder: Target) -> Answer:
            if holder.repository.type is RepositoryType.HOSTED:
                return await self._referrers.get(request, holder, identity, text)
            try:
                found = await self._images.lists.referrers(holder.repository, holder.image, digest)
            except UpstreamFailed:
                kept = await self._referrers.get(request, holder, identity, text, more_headers=STALE)
                if await self._services.catalog.look(_has_referrers, holder.repository, holder.image, str(digest)):
                    return kept
                raise
            entries = [each for each in found.entries if not types or each.get("artifactType") in types]
            headers = STALE if found.confirmation.stale else ()
            shown = [each for each in entries if each["digest"] > after]
            return referrers_answer(holder, shown, headers, filtered=bool(types))

        try:
            return await self._first(target, read)
        except NotFound:
            return referrers_answer(target, [], filtered=bool(types))

    async def _first(self, target: Target, read: Callable[[Target], Awaitable[T]], *, by_digest: bool = False) -> T:
        """
        What the first repository behind the addressed one answers.

        If the first ones failed, a later one that has the image goes on serving it. One that does not have it could
        serve a stranger's image under the name of the first one's, except ``by_digest``.

        :raises NotFound: none has it; :raises UpstreamFailed: that is not known
        """
        failure: UpstreamFailed | None = None
        for holder in await self._holders(target):
            if failure is not None and not by_digest and not await self._has_image(holder.repository, target.image):
                continue
            try:
                return await read(holder)
            except NotFound:
                continue
            except UpstreamFailed as error:
                failure = failure or error
        raise failure or NotFound("image", target.image)

    async def _holders(self, target: Target) -> list[Target]:
        """The image in the repositories that are asked for it, in order."""
        repository, image, resolver = target.repository, target.image, self._services.resolver
        leaves = resolver.leaves(repository)
        hosted = [each for each in leaves if each.type is RepositoryType.HOSTED]
        found = [each for each in hosted if await self._has_image(each, image)]
        if not found:
            proxies = [each for each in leaves if each.type is RepositoryType.PROXY]
            found = [each for each in proxies if not _is_reserved(resolver.leaf(repository, each), image)]
        elif not any(each.active for each in found):
            raise RepositoryInactive(found[0].path)
        return [evolve(target, repository=each) for each in found if each.active]

    async def _has_image(self, repository: Repository, image: str) -> bool:
        return await self._services.catalog.look(package_serial, repository.id, image) is not None


def _is_reserved(leaf: Leaf, image: str) -> bool:
    """Whether a rule keeps images of upstreams from being served under this name, also kept ones."""
    return any(rules.reserved_by(image) is not None for _, rules in leaf.rules)


def _kept_tags(r: Reader, repository_id: int, image: str, after: str, limit: int) -> list[str] | None:
    """A page of the tags of an image that is kept; None if it is not."""
    package = find_package(r, repository_id, image)
    return None if package is None else list_tag_names(r, package.id, after=after, limit=limit)


def _has_referrers(r: Reader, repository: Repository, image: str, digest: str) -> bool:
    package = find_package(r, repository.id, image)
    return package is not None and bool(list_referrers(r, repository.storage_id, package.id, digest, limit=1))


def _open_nothing() -> int:
    raise AssertionError("the answer to a HEAD has no body")
