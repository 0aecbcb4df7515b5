"""Requests that read or delete manifests, by tag or digest."""

from __future__ import annotations

from collections.abc import Callable

from pkgrepo.errors import NotFound
from pkgrepo.formats.container.access import check_deletion
from pkgrepo.formats.container.names import find_digest, is_digest_like, parse_tag
from pkgrepo.formats.container.refusals import VERSION
from pkgrepo.formats.container.registry import RegistryContext
from pkgrepo.formats.container.target import Target, cache_response, renew_lease
from pkgrepo.formats.container.trust.visibility import View
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.responses.content import SAFE, document_cache_control, file_cache_control, sent_part
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Refusal, Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Identity, Repository, RepositoryType
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.downloads import ImagePull
from pkgrepo.repositories.images.manifests import delete_manifest, delete_tag, lease_manifest
from pkgrepo.repositories.images.push import TagImmutable
from pkgrepo.storage.catalog.images.manifests import Manifest, find_manifest, find_tagged, is_listed
from pkgrepo.storage.catalog.images.trust import Keys


async def get_manifest(
    context: RegistryContext,
    request: Request,
    target: Target,
    identity: Identity,
    reference: str,
    *,
    served: str | None = None,
    more_headers: Fields = (),
    ends_s: int = 0,
    counted: bool = True,
    cacheable: bool = True,
) -> Response:
    """
    A manifest, or its headers for HEAD. The Accept header is ignored, since manifests are not converted.

    With ``served`` that digest is served for a tag instead of the one to which it points. With ``ends_s`` the
    answer is cached until then, see L{CachedResponse}; without ``cacheable`` never. Only if ``counted`` it counts as a
    download; it is logged as one in any case.

    :raises Refusal: there is no such manifest, or it is unsigned and hidden from the caller
    :raises RuleRefused: a rule refuses it
    """
    services, repository = context.services, target.repository
    view = await context.visibility.view(identity, repository, target.image)
    generation = services.catalog.generation()
    by_digest, asked = is_digest_like(reference), reference
    if repository.type is RepositoryType.HOSTED:
        chosen = await context.images.rules.choose(target, reference, Trace())
        served, ends_s, cacheable = chosen.digest or served, chosen.ends_s or ends_s, not chosen.counted
    reference = served or reference
    found = await _find_manifest(context, target, reference, view)
    if by_digest and request.method == b"HEAD":
        client = await context.authorization.pushing_client(request, identity, target)
        if not await renew_lease(
            services, repository, lease_manifest, found.package_id, found.digest, found.touched_ms, client
        ):
            raise unknown(found.digest)
    public = len(view.audiences) == 1 or await services.catalog.look(_is_public, target, reference, view, found)
    # a manifest can become hidden, so clients must revalidate it even by digest
    fixed = by_digest and len(view.audiences) == 1
    control = file_cache_control(target.shown) if fixed else document_cache_control(target.shown)
    response = await _present(context, repository, found, control if public else b"private, no-cache", more_headers)

    item = ImagePull(
        found.id,
        repository.id,
        found.package_id,
        f"{target.image}@{found.digest}",
        reference=asked,
        # clients request the manifests of an index after the index, and only the index counts as a pull
        part=await services.catalog.look(is_listed, found.package_id, found.digest),
    )
    if sent_part(request, response) == "all":
        services.downloads.record(item, identity, request.client_address, whole=counted)

    def fresh(r: Reader) -> bool:
        return _is_public(r, target, reference, view, found)

    if cacheable and public and (request.method == b"GET" or not by_digest):
        cache_response(
            services.response_cache,
            request,
            target,
            response,
            fresh=fresh,
            generation=generation,
            item=item,
            serves_head=not by_digest,
            ends_s=ends_s,
        )
    return response


async def _present(
    context: RegistryContext, repository: Repository, found: Manifest, control: bytes, more_headers: Fields
) -> Response:
    """The answer with a manifest; ``control`` is for caches."""
    digest = found.digest.encode("ascii")
    return Response(
        body=await context.services.files.body(repository.storage_id, found.locator, found.size),
        content_type=found.media_type.encode("ascii"),
        etag=b'"%s"' % digest,
        headers=(
            (b"Docker-Content-Digest", digest),
            (b"Cache-Control", control),
            (b"Vary", b"Accept"),
            *SAFE,
            *more_headers,
        ),
        always=VERSION,
    )


async def delete_reference(
    context: RegistryContext, request: Request, target: Target, identity: Identity, reference: str
) -> Response:
    """
    Delete a tag, or a manifest with every tag that points to it.

    :raises Refusal: the tag or manifest does not exist, or deletion is off
    """
    check_deletion(target.repository)
    command: Callable[..., None] = delete_tag
    if is_digest_like(reference):
        command = delete_manifest
        reference = str(find_digest(reference) or _refuse(reference))
    else:
        parse_tag(reference)
    try:
        await context.services.content.change(
            command, target.repository, target.image, reference, actor_of(request, identity)
        )
    except NotFound:
        raise unknown(reference) from None
    except TagImmutable as error:
        raise Refusal(403, str(error), "DENIED") from None
    return Response(202, headers=VERSION)


async def _find_manifest(context: RegistryContext, target: Target, reference: str, view: View) -> Manifest:
    look = context.services.catalog.look
    found: Manifest | None = await look(_read_manifest, target, reference, view.keys)
    if found is not None:
        return found
    if view.keys is not None and await look(_read_manifest, target, reference, None) is not None:
        raise context.visibility.refusal(target.repository, reference)
    raise unknown(reference)


def _is_public(r: Reader, target: Target, reference: str, view: View, found: Manifest) -> bool:
    """Whether all callers who may read the image get this manifest, so that shared caches may store it."""
    every = [_read_manifest(r, target, reference, keys) for keys in view.audiences]
    return all(now is not None and (now.id, now.locator) == (found.id, found.locator) for now in every)


def _read_manifest(r: Reader, target: Target, reference: str, keys: Keys) -> Manifest | None:
    repository = target.repository
    where = (repository.storage_id, repository.id, target.image)
    if not is_digest_like(reference):
        return find_tagged(r, *where, reference, keys)
    digest = find_digest(reference)
    return None if digest is None else find_manifest(r, *where, str(digest), keys)


def unknown(reference: str) -> Refusal:
    """The refusal of a request for a manifest that the image does not have."""
    sentence = f"manifest {reference[:200]} is unknown to this image"
    return Refusal(404, sentence, "MANIFEST_UNKNOWN", detail={"reference": reference[:200]})


def _refuse(reference: str) -> str:
    raise unknown(reference)
