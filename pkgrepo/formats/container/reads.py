"""
Reads of repositories whose images come from elsewhere: from upstreams (Proxy), or from their members (Virtual).

What is wanted is fetched unless it is kept, and then answered as for a hosted image, and cached like that. If an
upstream fails whose list was never asked for, the list has what is kept of the image.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from pkgrepo.errors import NotFound, UpstreamDenied, UpstreamFailed
from pkgrepo.formats.container.blobs import blob_response, get_blob, parse_known, unknown_blob
from pkgrepo.formats.container.lists import (
    get_referrers,
    get_tags,
    parse_page,
    referrers_response,
    tags_response,
    unknown_image,
    wanted_types,
)
from pkgrepo.formats.container.manifests import requests as manifests
from pkgrepo.formats.container.manifests.requests import get_manifest
from pkgrepo.formats.container.names import is_digest_like, parse_digest
from pkgrepo.formats.container.registry import RegistryContext
from pkgrepo.formats.container.target import Target, cache_response
from pkgrepo.gateway.responses.content import arriving
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Content, Fields, Refusal, Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Identity, Repository
from pkgrepo.proxy.caching.revalidation import Outcome
from pkgrepo.proxy.trace import Trace
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.images.linked_blobs import LinkedBlob
from pkgrepo.storage.catalog.images.manifests import list_referrers
from pkgrepo.storage.catalog.packages.packages import find_package, package_serial
from pkgrepo.storage.catalog.packages.tags import list_tag_names

from .proxied.holders import Holder

STALE: Final[Fields] = ((b"Warning", b'110 - "stale"'),)  # RFC 7234 section 5.5.1


async def fetch_manifest(
    context: RegistryContext, request: Request, target: Target, identity: Identity, reference: str
) -> Response:
    """
    A manifest, or its headers for HEAD.

    :raises Refusal: there is no such manifest; :raises UpstreamFailed: that is not known
    """
    trace = Trace()

    async def read(holder: Holder) -> Response:
        image = holder.target
        if holder.is_hosted:
            return await get_manifest(context, request, image, identity, reference)
        found = await context.images.manifests.ensure(image, reference, trace, revalidate=request.revalidates)
        chosen = await context.images.rules.choose(image, reference, trace)
        return await get_manifest(
            context,
            request,
            image,
            identity,
            reference,
            served=chosen.digest,
            more_headers=STALE if found.stale else (),
            ends_s=min(filter(None, (found.ends_s, chosen.ends_s)), default=0),
            counted=found.outcome is not Outcome.MISS,
            cacheable=not chosen.counted,
        )

    async def read_again(holder: Holder) -> Response:
        try:
            return await read(holder)
        except Refusal as refusal:
            if refusal.status != 404 or holder.is_hosted:
                raise
        return await read(holder)  # a purge may have removed what was ensured

    try:
        return await context.images.holders.first(target, read_again, trace, by_digest=is_digest_like(reference))
    except NotFound:
        raise manifests.unknown(reference) from None


async def fetch_blob(
    context: RegistryContext, request: Request, target: Target, identity: Identity, text: str
) -> Response:
    """
    A blob, or its headers for HEAD.

    :raises Refusal: the image does not have it; :raises UpstreamFailed: that is not known
    """
    digest = parse_known(text)

    async def read(holder: Holder) -> Response:
        repository, image = holder.target.repository, holder.target.image
        shown, upstream = holder.target.shown, context.images.blobs
        if holder.is_hosted:
            return await get_blob(context, request, holder.target, identity, text)
        await context.images.rules.check_blob(holder.target, str(digest))
        if await upstream.find(repository, image, digest) is not None:
            try:
                return await get_blob(context, request, holder.target, identity, text)
            except Refusal as refusal:
                if refusal.status != 404:  # else a purge has removed it meanwhile
                    raise
        if request.method == b"HEAD":
            size = await upstream.size(repository, image, digest)
            return blob_response(shown, digest, Content(size, open=_open_nothing))
        content = await upstream.content(repository, image, digest)
        if isinstance(content, LinkedBlob):
            body = await context.services.files.body(repository.storage_id, content.locator, content.size)
            return blob_response(shown, digest, body)
        return blob_response(shown, digest, arriving(content))

    try:
        return await context.images.holders.first(target, read, Trace(), by_digest=True)
    except NotFound:
        raise unknown_blob(str(digest)) from None


async def fetch_tags(
    context: RegistryContext, request: Request, target: Target, identity: Identity, rest: str
) -> Response:
    """
    A page of the tags of an image.

    :raises Refusal: there is no such image, or the page size is not a number
    :raises UpstreamFailed: it is not known whether there is
    """
    services = context.services
    size, last = parse_page(request)

    async def read(holder: Holder) -> Response:
        image = holder.target
        if holder.is_hosted:
            return await get_tags(context, request, image, identity, rest, beside=holder.beside)
        repository, generation = image.repository, services.catalog.generation()
        serial = await services.catalog.look(package_serial, repository.id, image.image)
        try:
            found = await context.images.lists.tags(repository, image.image, after=last)
        except UpstreamDenied:
            raise
        except UpstreamFailed:
            kept = await services.catalog.scan(_kept_tags, repository.id, image.image, last, size + 1)
            if kept is None:
                raise
            refused = await context.images.rules.hidden_tags(image, kept)
            return tags_response(image, kept, size, STALE, hidden=refused.tags)
        after = bisect_right(found.entries, last)
        headers = STALE if found.found.stale else ()
        page = found.entries[after : after + size + 1]
        hidden = await context.images.rules.hidden_tags(image, page)
        more = found.following is not None
        response = tags_response(image, page, size, headers, has_more=more, hidden=hidden.tags)
        document = found.document

        def fresh(r: Reader) -> bool:
            if upstream_documents.fetched_at(r, repository.id, document.key) != document.fetched_ms:
                return False
            # Rules decide about a manifest when it is kept.
            return not hidden.judged or package_serial(r, repository.id, image.image) == serial

        if hidden.settled:
            cache_response(
                services.response_cache,
                request,
                image,
                response,
                fresh=fresh,
                generation=generation,
                ends_s=min(filter(None, (found.found.ends_s, hidden.ends_s)), default=0),
            )
        return response

    try:
        return await context.images.holders.first(target, read, Trace())
    except NotFound:
        raise unknown_image(target) from None


async def fetch_referrers(
    context: RegistryContext, request: Request, target: Target, identity: Identity, text: str
) -> Response:
    """
    An image index of the manifests whose subject has this digest.

    :raises DigestInvalid: the digest is malformed; :raises UpstreamFailed: there is no list to serve
    :raises RuleRefused: a rule refuses the subject
    """
    digest = parse_digest(text)
    types, after = wanted_types(request), request.parameter(b"last") or ""

    async def read(holder: Holder) -> Response:
        image = holder.target
        if holder.is_hosted:
            return await get_referrers(context, request, image, identity, text, beside=holder.beside)
        await context.images.rules.choose(image, str(digest), Trace(), counted=False)
        try:
            found = await context.images.lists.referrers(image.repository, image.image, digest)
        except UpstreamDenied:
            raise
        except UpstreamFailed:
            kept = await get_referrers(context, request, image, identity, text, more_headers=STALE)
            if await context.services.catalog.look(_has_referrers, image.repository, image.image, str(digest)):
                return kept
            raise
        entries = [each for each in found.entries if not types or each.get("artifactType") in types]
        headers = STALE if found.found.stale else ()
        shown = [each for each in entries if each["digest"] > after]
        return referrers_response(image, shown, headers, filtered=bool(types))

    try:
        return await context.images.holders.first(target, read, Trace())
    except NotFound:
        return referrers_response(target, [], filtered=bool(types))


def _kept_tags(r: Reader, repository_id: int, image: str, after: str, limit: int) -> list[str] | None:
    """A page of the tags of an image that is kept; None if it is not."""
    package = find_package(r, repository_id, image)
    return None if package is None else list_tag_names(r, package.id, after=after, limit=limit)


def _has_referrers(r: Reader, repository: Repository, image: str, digest: str) -> bool:
    package = find_package(r, repository.id, image)
    return package is not None and bool(list_referrers(r, repository.storage_id, package.id, digest, limit=1))


def _open_nothing() -> int:
    raise AssertionError("the response to a HEAD has no body")
