"""
Reads of the lists over all gems: ``/names``, ``/versions`` and the legacy lists.

Those of hosted repositories come from the catalog, those of the others from their members; also those of repositories
with rules that hide something by its name.
"""

from __future__ import annotations

from contextlib import suppress

from pkgrepo.errors import NotFound
from pkgrepo.formats.rubygems.index import requests as hosted
from pkgrepo.formats.rubygems.index.gem_lists import BINARY_TYPE, NAMES
from pkgrepo.formats.rubygems.index.list_files import ListFile
from pkgrepo.formats.rubygems.index.requests import list_response
from pkgrepo.formats.rubygems.paths import CompactPath, SpecsPath
from pkgrepo.gateway.responses.content import document_cache_control
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.model import Action, Repository, RepositoryType

from .merged_lists import Caches


async def compact(context: Context[Caches], request: Request, path: CompactPath) -> Response:
    """A list of the compact index. :raises NotFound, UpstreamFailed: see L{MergedLists.versions}"""
    await context.admit(request, Action.READ)
    if await _reads_catalog(context, context.repository):
        return await (hosted.names if path.document == NAMES else hosted.versions)(context, request)
    if path.document == NAMES:
        merged = context.caches.merged
        found = await merged.names(context.services, context.repository, revalidate=request.revalidates)
        return list_response(context.repository, found)
    return await _versions(context, request)


async def specs(context: Context[Caches], request: Request, path: SpecsPath) -> Response:
    """
    A list of the legacy index.

    That of a virtual repository has the gems of all members that have a list of versions. If none has, it is the
    list of the first member that has one.

    :raises NotFound, UpstreamFailed: see L{MergedLists.specs}
    """
    await context.admit(request, Action.READ)
    services, repository, merged, file = context.services, context.repository, context.caches.merged, path.document
    if await _reads_catalog(context, repository):
        return await hosted.specs(context, request, file)
    if repository.type is not RepositoryType.PROXY or await _hides(context, repository):
        with suppress(NotFound):
            found = await merged.joined_specs(services, repository, file, revalidate=request.revalidates)
            return _specs_response(context, found)
    for member in services.proxy.resolver.flat_members(repository):
        if member.active and member.type is RepositoryType.PROXY and not await _hides(context, member):
            with suppress(NotFound):
                found = await merged.specs(services, member, file, revalidate=request.revalidates)
                return _specs_response(context, found)
    raise NotFound("file", file)


async def _reads_catalog(context: Context[Caches], repository: Repository) -> bool:
    """
    Whether the lists of a repository are kept as they are.

    Those of a view, and those out of which rules leave something, or may soon, are made as if of its only member.
    """
    if repository.type is not RepositoryType.HOSTED or repository.view is not None:
        return False
    policy = context.services.proxy.resolver.flat_member(repository, repository).policy
    return (policy is None or not policy.decides_on_facts) and not await _hides(context, repository)


async def _hides(context: Context[Caches], member: Repository) -> bool:
    """Whether lists leave something of a member out."""
    services = context.services
    try:
        flat = services.proxy.resolver.flat_member(context.repository, member)
    except KeyError:  # a virtual repository is no member of its own
        return False
    return await services.proxy.judges.named(flat) is not None


async def _versions(context: Context[Caches], request: Request) -> Response:
    services, repository = context.services, context.repository
    generation, config_serial = services.catalog.generation(), services.registry.serial
    state, found = await context.caches.merged.versions(services, repository, revalidate=request.revalidates)
    response = list_response(repository, found)
    if state.cacheable:
        services.response_cache.put_response(
            request,
            repository,
            response,
            package=None,
            fresh=lambda r: state.fresh(r, config_serial),
            ends_s=state.ends_s,
            generation=generation,
        )
    return response


def _specs_response(context: Context[Caches], found: ListFile) -> Response:
    return Response(
        body=found.content(),
        content_type=BINARY_TYPE.encode(),
        etag=b'"%s"' % found.sha256.hexdigest()[:32].encode(),
        headers=((b"Cache-Control", document_cache_control(context.repository)),),
        ranges=True,
    )
