"""Reads of lists, ``@latest``, queries, files of versions, and of a checksum database that an upstream passes on."""

from __future__ import annotations

from pkgrepo.errors import NotFound, existing
from pkgrepo.formats.go.index import LATEST
from pkgrepo.formats.go.names import INFO, LIST, Path, file_path, pseudo_time
from pkgrepo.gateway.package_documents import answer_document
from pkgrepo.gateway.package_files import answer_file
from pkgrepo.gateway.responses.content import SAFE, document_cache_control
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Refusal, Response
from pkgrepo.model import Action, Extent, RepositoryType

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
    return existing(response, "checksum database", path.text)
