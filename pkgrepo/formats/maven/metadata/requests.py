"""
Answers GET and HEAD of metadata.

=====================  =================================================================================================
the directory          its metadata
=====================  =================================================================================================
an artifact, or a      made of the stored files and of what the last upload says beside them; an upload with the same
snapshot               meaning is sent as it is
anything else          the plain file that was uploaded, to which the plugins of earlier ones are added
a release              as above, or its coordinates if nothing was uploaded
the repository         as above, or empty metadata if the repository is not empty
=====================  =================================================================================================

Checksums are those of the document that is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec
from attrs import evolve

from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.formats.maven.caches import MavenContext
from pkgrepo.formats.maven.files import checksum_response, present_file
from pkgrepo.formats.maven.metadata.document import Uploaded, empty_document
from pkgrepo.formats.maven.metadata.joining import CONTENT_TYPE, FOLDED, document_key, of_version, splice
from pkgrepo.formats.maven.metadata.reading import VERSION
from pkgrepo.formats.maven.paths import ALGORITHMS, Metadata
from pkgrepo.gateway.package_files import STALE, answer_file
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Document, File, Identity, Repository, RepositoryType
from pkgrepo.proxy.format import MemberParts
from pkgrepo.proxy.resolving.serving import PackageState
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.publish.splicing import Renderer, Spliced
from pkgrepo.storage.catalog.packages import files, tree


async def get_metadata(
    context: MavenContext, request: Request, identity: Identity, key: str, target: Metadata, algorithm: str | None
) -> Response:
    """
    The metadata at a path, or the checksum of it by an algorithm; ``key`` is what the caller may read.

    :raises NotFound: the directory has none; :raises UpstreamFailed: see L{Resolver.state}
    """
    if target.package_key is not None:
        said = await context.services.catalog.look(read_plain, _hosted_members(context, target), target.path)
        if said:
            return await _with_plain(context, target, target.package_key, said, algorithm)
        try:
            return await _joined(context, request, target, target.package_key, algorithm)
        except NotFound:
            pass
    if context.repository.type is RepositoryType.HOSTED:
        response = await _plain(context, request, identity, key, target, algorithm)
        if response is not None:
            return response
        of_past = context.repository.view is not None and target.directory
        made = None if of_past else await context.services.catalog.look(_made, context.repository.id, target)
        if made is not None:
            return _answer(context, _render(made), target, algorithm)
    raise NotFound("metadata", target.path)


async def _joined(
    context: MavenContext, request: Request, target: Metadata, package_key: str, algorithm: str | None
) -> Response:
    services = context.services
    generation = services.catalog.generation()
    key, form = document_key(target, package_key)
    # Maven sends "no-cache" with each request, which would make upstreams be asked each time.
    state = _without_plain(context, await services.proxy.resolver.state(context.repository, key), target)
    rendered = await context.caches.documents.get(services.pools, services.view_turns, state, form, "")
    warned, settled = (STALE,) if state.stale else (), rendered.state.settled

    def negotiate(_: Request) -> Response | None:
        ready = context.caches.documents.ready(rendered.state, form, "")
        return None if ready is None else _answer(context, ready, target, algorithm, warned, settled=settled)

    response = _answer(context, rendered.document, target, algorithm, warned, settled=settled)
    services.response_cache.put_document(
        request,
        rendered,
        negotiate=negotiate,
        generation=generation,
        expires_at=0 if response.last_modified is not None else rendered.document.modified_s or 0,
    )
    return response


def _hosted_members(context: MavenContext, target: Metadata) -> list[Repository]:
    """The members of a virtual repository that may have the metadata of a group as a plain file."""
    if context.repository.type is not RepositoryType.VIRTUAL or target.version is not None:
        return []
    members = context.services.proxy.resolver.flat_members(context.repository)
    return [each for each in members if each.type is RepositoryType.HOSTED and each.active]


def _without_plain(context: MavenContext, state: PackageState, target: Metadata) -> PackageState:
    """The state, which ends when a member has such a file."""
    members = _hosted_members(context, target)
    if not members:
        return state
    fresh = state.fresh
    return evolve(state, fresh=lambda reader: fresh(reader) and not read_plain(reader, members, target.path))


async def _with_plain(
    context: MavenContext, target: Metadata, package_key: str, said: Sequence[MemberParts], algorithm: str | None
) -> Response:
    """What hosted members and upstreams say of a group, or the former alone if an upstream fails."""
    key, form = document_key(target, package_key)
    resolver, parts, stale = context.services.proxy.resolver, list(said), False
    try:
        members = await resolver.members(context.repository, key, Trace())
        join = partial(resolver.parts, members, key, form)
        parts += await context.services.view_turns.make(context.repository, join, package=package_key)
        stale = members.stale
    except NotFound:
        pass
    except UpstreamFailed:
        stale = True
    document = _render(splice(key, form, 0, parts))
    return _answer(context, document, target, algorithm, (STALE,) if stale else ())


async def _plain(
    context: MavenContext, request: Request, identity: Identity, key: str, target: Metadata, algorithm: str | None
) -> Response | None:
    repository = context.repository
    file = await context.services.catalog.look(files.find_file, repository.id, target.path)
    if file is None:
        return None
    if algorithm is not None:
        return checksum_response(repository, target, algorithm, file.digests, int(file.created_at.timestamp()))
    present = partial(present_file, repository, target)
    return await answer_file(context.services, request, identity, repository, key, target.path, present=present)


def _answer(
    context: MavenContext,
    document: Document,
    target: Metadata,
    algorithm: str | None,
    more: Fields = (),
    *,
    settled: bool = False,
) -> Response:
    modified_s = _last_modified(context, document)
    if algorithm is not None:
        digests = document.digests
        return checksum_response(context.repository, target, algorithm, digests, modified_s, settled=settled)
    head = present_file(context.repository, target, document.digests, settled=settled)
    return Response(
        body=document.body,
        content_type=CONTENT_TYPE.encode("ascii"),
        etag=head.etag,
        last_modified=modified_s,
        headers=(*head.headers, *more),
        ranges=True,
    )


def _last_modified(context: MavenContext, document: Document) -> int | None:
    """When the artifact changed, in seconds; None while that second lies in the future (see L{Package})."""
    modified_s = document.modified_s
    return None if modified_s is None or modified_s * 1000 > context.services.clock.now_ms() else modified_s


def _made(reader: Reader, repository_id: int, target: Metadata) -> Spliced | None:
    """The metadata of a directory that has neither a document of its own nor an upload."""
    if not target.directory:
        level = tree.list_tree(reader, repository_id, "", limit=1)
        return empty_document() if level.folders or level.files else None
    return of_version(reader, repository_id, target)


def _render(spliced: Spliced) -> Document:
    return Renderer(0).render(spliced, "", content_type=CONTENT_TYPE, serial=0, algorithms=ALGORITHMS)


def read_plain(reader: Reader, members: Sequence[Repository], path: str) -> list[MemberParts]:
    """What plain files at a path say of plugins, in the order of the members that have one."""
    found = (files.find_file(reader, each.id, path) for each in members)
    return [_parts(each) for each in found if each is not None and each.package_id is None and FOLDED in each.attrs]


def _parts(file: File) -> MemberParts:
    said = msgspec.convert(file.attrs[FOLDED], Uploaded)
    top = {
        "last_updated_ms": round(file.created_at.timestamp() * 1000),
        "plugins": msgspec.to_builtins(said.plugins),
        "others": msgspec.to_builtins(said.others),
    }
    return MemberParts(top, {VERSION: []})
