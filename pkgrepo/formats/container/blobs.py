"""Requests that read or delete the blobs of an image."""

from __future__ import annotations

from pkgrepo.errors import NotFound
from pkgrepo.formats.container.access import check_deletion
from pkgrepo.formats.container.names import Digest, find_digest
from pkgrepo.formats.container.refusals import VERSION
from pkgrepo.formats.container.registry import RegistryContext
from pkgrepo.formats.container.target import Target, cache_response, renew_lease
from pkgrepo.gateway.responses.content import SAFE, file_cache_control, sent_part
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Content, Fields, Refusal, Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Identity, Repository, RepositoryType
from pkgrepo.repositories.downloads import CachedBlob
from pkgrepo.repositories.images.blobs import delete_blob, lease_blob
from pkgrepo.storage.catalog.images.linked_blobs import LinkedBlob, find_linked

OCTETS = b"application/octet-stream"


async def get_blob(
    context: RegistryContext, request: Request, target: Target, identity: Identity, text: str
) -> Response:
    """
    A blob, or its headers for HEAD.

    :raises Refusal: the image does not have the blob, even if other images have it
    """
    services, repository = context.services, target.repository
    generation = services.catalog.generation()
    digest = parse_known(text)
    found = await _find_blob(context, target, digest)
    client = None
    if request.method == b"HEAD":
        client = await context.authorization.pushing_client(request, identity, target)
    if repository.type is RepositoryType.HOSTED and client is None:  # who pushes asks for what need not be sent again
        await context.images.rules.check_blob(target, str(digest))
    if request.method == b"HEAD":
        content = f"sha256:{found.sha256}"
        if not await renew_lease(services, repository, lease_blob, found.package_id, content, found.touched_ms, client):
            raise unknown_blob(str(digest))
    body = await services.files.body(repository.storage_id, found.locator, found.size)
    response = blob_response(target.shown, digest, body)
    item = None
    if repository.type is RepositoryType.PROXY:
        item = CachedBlob(repository.id, found.package_id, f"{target.image}@{digest}", found.size)
    if request.method == b"GET":
        if item is not None and sent_part(request, response) == "all":
            services.downloads.record(item, identity, request.client_address)

        def fresh(r: Reader) -> bool:
            now = find_linked(r, repository.storage_id, repository.id, target.image, str(digest))
            return now is not None and now.locator == found.locator

        cache_response(
            services.response_cache,
            request,
            target,
            response,
            fresh=fresh,
            generation=generation,
            item=item,
            serves_head=False,
        )
    return response


async def remove_blob(
    context: RegistryContext, _request: Request, target: Target, _identity: Identity, text: str
) -> Response:
    """
    Remove a blob from the image.

    :raises Refusal: the image does not have it, or deletion is off; :raises StillNeeded: a manifest refers to it
    """
    digest = parse_known(text)
    check_deletion(target.repository)
    try:
        await context.services.content.change(delete_blob, target.repository, target.image, str(digest))
    except NotFound:
        raise unknown_blob(str(digest)) from None
    return Response(202, headers=VERSION)


async def _find_blob(context: RegistryContext, target: Target, digest: Digest) -> LinkedBlob:
    repository = target.repository
    found = await context.services.catalog.look(
        find_linked, repository.storage_id, repository.id, target.image, str(digest)
    )
    if found is None:
        raise unknown_blob(str(digest))
    return found


def blob_response(repository: Repository, digest: Digest, body: bytes | Content) -> Response:
    """The answer with a blob."""
    headers: Fields = (
        (b"Docker-Content-Digest", str(digest).encode("ascii")),
        (b"Cache-Control", file_cache_control(repository)),
        *SAFE,
    )
    return Response(
        body=body, content_type=OCTETS, etag=f'"{digest}"'.encode("ascii"), headers=headers, always=VERSION, ranges=True
    )


def unknown_blob(digest: str) -> Refusal:
    """The refusal of a request for a blob that the image does not have."""
    return Refusal(404, f"blob {digest} is unknown to this image", "BLOB_UNKNOWN", detail={"digest": digest})


def parse_known(text: str) -> Digest:
    """The digest in a path. :raises Refusal: the text is no digest, so that no blob has it"""
    digest = find_digest(text)
    if digest is None:
        raise unknown_blob(text[:200])
    return digest
