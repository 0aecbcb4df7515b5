"""Reads of lists, ``@latest``, queries, files of versions, and of a checksum database that an upstream passes on."""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.errors import NotFound, UpstreamFailed, existing
from pkgrepo.formats.go.index import LATEST
from pkgrepo.formats.go.names import INFO, LIST, Path, file_path, pseudo_time
from pkgrepo.gateway.package_documents import answer_document
from pkgrepo.gateway.package_files import answer_file
from pkgrepo.gateway.responses.content import SAFE, document_cache_control
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Fields, Refusal, Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Extent, RepositoryType
from pkgrepo.proxy.addressed.request import file_key
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument, find_document, list_documents

HASH_SIZE: Final = 32  # bytes
MOST_HASHES: Final = 256  # in a tile of height 8

_PART: Final = re.compile(r"(sumdb/.+/tile/8/[0-9]+/(?:x[0-9]{3}/)*[0-9]{3})\.p/([0-9]+)")

GoContext = Context[SplicedDocuments]


async def versions(context: GoContext, request: Request, path: Path) -> Response:
    """The list of a module, or what a query stands for. For the errors see L{answer_document}."""
    await context.admit(request, Action.READ, path.module)
    return await _document(context, request, path.key, LIST if path.kind == LIST else INFO)


async def latest(context: GoContext, request: Request, path: Path) -> Response:
    """The ``.info`` of the newest version; of a module without releases, what the upstream says that is."""
    await context.admit(request, Action.READ, path.module)
    services = context.services
    state = await services.proxy.resolver.state(context.repository, path.module, revalidate=request.revalidates)
    found = await context.caches.get(services.pools, services.view_turns, state, LATEST, "")
    if found.state.refused is not None:
        raise found.state.refused.with_traceback(None)
    version = found.document.body.decode()
    if not version or pseudo_time(version):  # the upstream may know a newer one
        try:
            return await _document(context, request, path.key, INFO)
        except NotFound:
            if not version:
                raise
    headers = ((b"Cache-Control", document_cache_control(context.repository)), *SAFE)
    return await file(context, request, Path(INFO, path.module, version), headers)


async def _document(context: GoContext, request: Request, key: str, form: str) -> Response:
    services, repository = context.services, context.repository
    return await answer_document(services, request, repository, key, context.caches, lambda _: form, refuses=True)


async def file(context: GoContext, request: Request, path: Path, headers: Fields | None = None) -> Response:
    """A file of a version. :raises NotFound: there is none; otherwise as L{answer_file}"""
    identity = await context.admit(request, Action.READ, path.module)
    services, stored = context.services, file_path(path.module, path.version, path.kind)
    response = await answer_file(services, request, identity, context.repository, path.module, stored, headers)
    return existing(response, "version", f"{path.module}@{path.version}")


async def database(context: GoContext, request: Request, path: Path) -> Response:
    """
    A part of a checksum database.

    A part of a tile (``tile/8/0/000.p/5``, its first 5 hashes) is the beginning of each wider one: it is made of a kept
    one while the upstream cannot be asked.

    :raises NotFound: no upstream passes it on; :raises Refusal: it does not have the module, or is not asked for it
    """
    repository = context.repository
    identity = await context.admit(request, Action.READ, path.module or Extent.SOME)
    if repository.type is RepositoryType.HOSTED:
        raise NotFound("checksum database", path.text)
    try:
        response = await answer_file(context.services, request, identity, repository, path.module, path.text)
    except NotFound:
        if not path.module:
            raise
        why = f"no checksum database has {path.module}, or may be asked for it: of private modules set GONOSUMDB"
        raise Refusal(404, why, "not_found") from None
    except UpstreamFailed:
        begun = await _beginning(context, path.text)
        if begun is None:
            raise
        return Response(body=begun, content_type=b"application/octet-stream", headers=NO_STORE)
    return existing(response, "checksum database", path.text)


async def _beginning(context: GoContext, path: str) -> bytes | None:
    """The hashes of a part of a tile, out of a wider one that is kept."""
    services, found = context.services, _PART.fullmatch(path)
    if found is None:
        return None
    tile, size = found[1], int(found[2]) * HASH_SIZE
    for member in services.proxy.resolver.flat_members(context.repository):
        file = await services.catalog.look(_find_wider, member.id, tile, size)
        if file is not None:
            content = b"".join([each async for each in services.files.chunks(file.storage_id, file.locator, file.size)])
            return content[:size]
    return None


def _find_wider(reader: Reader, repository_id: int, tile: str, size: int) -> UpstreamDocument | None:
    """A kept tile, or part of it, of more than ``size`` bytes."""
    parts = f"{file_key(tile)}.p/"
    found = [
        *list_documents(reader, repository_id, after=parts, limit=MOST_HASHES),
        find_document(reader, repository_id, file_key(tile)),
    ]
    for each in found:
        is_one = each is not None and (each.key.startswith(parts) or each.key == file_key(tile))
        if each is not None and is_one and each.locator and size < each.size <= MOST_HASHES * HASH_SIZE:
            return each
    return None
