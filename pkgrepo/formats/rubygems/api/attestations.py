"""Answers requests for the attestations of a gem: those that are kept beside it, or those of its upstream."""

from __future__ import annotations

from typing import Final

from pkgrepo.errors import NotFound
from pkgrepo.formats.rubygems.index.requests import possible_names
from pkgrepo.formats.rubygems.paths import ATTESTATIONS, gem_path
from pkgrepo.formats.rubygems.provenance import attestations_question, kept_attestations
from pkgrepo.gateway.package_files import find_package_file, packages_of_file
from pkgrepo.gateway.responses.content import document_cache_control
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import JSON, Refusal, Response
from pkgrepo.model import Action, File, Repository, RepositoryType
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.resolving.serving import Want
from pkgrepo.proxy.trace import Trace
from pkgrepo.storage.catalog.packages import files

NO_GEM: Final = "This gem could not be found"
_NONE: Final = b"[]"


async def attestations(context: Context[object], request: Request, full_name: str) -> Response:
    """
    The attestations of a gem as a list of bundles, which is empty if it has none.

    :raises Refusal: there is no such gem; :raises RuleRefused: a rule refuses it
    :raises UpstreamFailed: they cannot be had
    """
    services, repository, path = context.services, context.repository, gem_path(full_name)
    for package in await packages_of_file(services, repository, path, possible_names(full_name)):
        await context.admit(request, Action.READ, package)
        try:
            found = await find_package_file(services, repository, package, path, Want.HEAD)
        except NotFound:
            continue
        if found is not None:
            body = await _attestations_of(context, package, full_name, found.file)
            headers = ((b"Cache-Control", document_cache_control(repository)),)
            return Response(body=body, content_type=JSON, headers=headers)
    await context.admit(request, Action.READ)
    raise Refusal(404, NO_GEM, "not_found")


async def _attestations_of(context: Context[object], package: str, full_name: str, gem: File | RemoteFile) -> bytes:
    services = context.services
    member = gem.repository if isinstance(gem, RemoteFile) else _member_of(context, gem.repository_id)
    if member.type is RepositoryType.PROXY:
        question = attestations_question(package, full_name.removeprefix(f"{package}-"))
        try:
            held = await services.proxy.documents.get(member, question, Trace())
        except NotFound:
            return _NONE
        return await services.proxy.documents.read(
            member, question, held, lambda parts: kept_attestations(parts.top) or _NONE
        )
    file: File | None = await services.catalog.look(files.find_file, member.id, gem_path(full_name) + ATTESTATIONS)
    return _NONE if file is None else await services.files.read(file.storage_id, file.locator, file.size)


def _member_of(context: Context[object], repository_id: int) -> Repository:
    members = context.services.proxy.resolver.flat_members(context.repository)
    return next(each for each in members if each.id == repository_id)
