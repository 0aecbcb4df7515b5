"""
Answers GET and HEAD of metadata.

=====================  =================================================================================================
the directory          its metadata
=====================  =================================================================================================
an artifact, or a      made of the stored files and of what the last upload says beside them; an upload with the same
snapshot               meaning is sent as it is
anything else          the plain file that was uploaded, to which the plugins of earlier ones are added
a release              as above, or its coordinates if nothing was uploaded and the metadata of the artifact list it
the repository         as above, or empty metadata if the repository is not empty
=====================  =================================================================================================

Checksums are those of the document that is sent. In a view of the past a list of plugins lacks those whose artifacts
came later.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec
from attrs import evolve

from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.formats.maven.caches import MavenContext
from pkgrepo.formats.maven.files import checksum_response, present_file
from pkgrepo.formats.maven.metadata.document import Uploaded, empty_document, plugins_document, version_document
from pkgrepo.formats.maven.metadata.joining import (
    ARTIFACT,
    CONTENT_TYPE,
    FOLDED,
    document_key,
    plugins_then,
    splice,
)
from pkgrepo.formats.maven.metadata.reading import VERSION, Plugin
from pkgrepo.formats.maven.paths import ALGORITHMS, Metadata
from pkgrepo.gateway.package_documents import Found, found_document, serve_document
from pkgrepo.gateway.package_files import STALE, answer_file, find_package_file
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Document, File, Identity, Repository, RepositoryType
from pkgrepo.proxy.format import MemberParts
from pkgrepo.proxy.resolving.serving import PackageState, Want
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
        said = await context.services.catalog.look(
            read_plain, _hosted_members(context, target), target.path, _at_ms(context)
        )
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
        if not target.directory and await context.services.catalog.look(_has_content, context.repository.id):
            return _answer(context, _render(empty_document()), target, algorithm)
    released = await _of_release(context, target)
    if released is None:
        raise NotFound("metadata", target.path)
    return _answer(context, released, target, algorithm)


async def _joined(
    context: MavenContext, request: Request, target: Metadata, package_key: str, algorithm: str | None
) -> Response:
    services, documents = context.services, context.caches.documents

    async def look() -> Found[Document] | Response:
        key, form = document_key(target, package_key)
        # Maven sends "no-cache" with each request, which would make upstreams be asked each time.
        state = _without_plain(context, await services.proxy.resolver.state(context.repository, key), target)
        rendered = await documents.get(services.pools, services.view_turns, state, form, "")
        if target.coordinates is not None and rendered.document.body == _nothing(key, form):
            # That of a release at an upstream names no versions: to what else it belongs only its artifact tells.
            released = await _of_release(context, target)
            if released is not None:
                return _answer(context, released, target, algorithm)
            if context.repository.view is not None:
                raise NotFound("metadata", target.path)
        warned = (STALE,) if state.stale else ()

        def respond(_: Request, document: Document, *, settled: bool) -> Response:
            return _answer(context, document, target, algorithm, warned, settled=settled)

        return found_document(services, rendered, respond, lambda _: documents.ready(rendered.state, form, ""))

    return await serve_document(services, request, context.repository, look)


def _nothing(key: str, form: str) -> bytes | None:
    """The document of an artifact of which nothing is said; None for other forms."""
    return splice(key, form, 0, [MemberParts({}, {VERSION: []})]).joined() if form == ARTIFACT else None


async def _of_release(context: MavenContext, target: Metadata) -> Document | None:
    """
    The metadata of a release without an upload; None if the metadata of its artifact do not list it.

    :raises RuleRefused: a rule hides it; :raises UpstreamFailed: see L{Resolver.state}
    """
    at, services, repository = target.coordinates, context.services, context.repository
    if at is None or target.version is not None:
        return None
    resolver = services.proxy.resolver
    try:
        members = await resolver.members(repository, at.package_key, Trace(), ahead=True)
        join = partial(resolver.parts, members, at.package_key, ARTIFACT)
        parts = await services.view_turns.make(repository, join, package=at.package_key)
        if any(fragment.key == at.version for each in parts for fragment in each.fragments[VERSION]):
            return _render(version_document(group=at.group, artifact=at.artifact, version=at.version))
        if not any(at.version in each.hidden for each in parts):
            return None
        load = partial((await resolver.state(repository, at.package_key)).load, ARTIFACT)
        _, state = await services.view_turns.make(repository, load, package=at.package_key)
    except NotFound:
        return None
    refused = state.refusal_of(lambda text: text == at.version)
    if refused is not None:
        raise refused
    return None


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
    fresh, at_ms = state.fresh, _at_ms(context)
    return evolve(state, fresh=lambda reader: fresh(reader) and not read_plain(reader, members, target.path, at_ms))


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
    repository, services = context.repository, context.services
    file: File | None = await services.catalog.look(files.find_file, repository.id, target.path)
    if file is None:
        return None
    plugins = await services.catalog.look(_plugins_of_then, repository, file, _at_ms(context))
    if algorithm is not None or plugins is not None:
        await find_package_file(services, repository, key, target.path, Want.DIGESTS)  # the rules about it
    if plugins is not None:
        made = plugins_document(plugins, msgspec.convert(file.attrs[FOLDED], Uploaded).others)
        return None if made is None else _answer(context, _render(made), target, algorithm)
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


def _has_content(reader: Reader, repository_id: int) -> bool:
    level = tree.list_tree(reader, repository_id, "", limit=1)
    return bool(level.folders or level.files)


def _render(spliced: Spliced) -> Document:
    return Renderer(0).render(spliced, "", content_type=CONTENT_TYPE, serial=0, algorithms=ALGORITHMS)


def _at_ms(context: MavenContext) -> int | None:
    """The time of a view of the past, None for the present."""
    view = context.repository.view
    return None if view is None else view.at_ms


def read_plain(reader: Reader, members: Sequence[Repository], path: str, at_ms: int | None = None) -> list[MemberParts]:
    """What plain files at a path say of plugins, now or at a time, in the order of the members that have one."""
    found: list[MemberParts] = []
    for member in members:
        file = files.find_file(reader, member.id, path)
        if file is None or file.package_id is not None or FOLDED not in file.attrs:
            continue
        said, then = msgspec.convert(file.attrs[FOLDED], Uploaded), _plugins_of_then(reader, member, file, at_ms)
        plugins = said.plugins if then is None else then
        top = {
            "last_updated_ms": round(file.created_at.timestamp() * 1000),
            "plugins": msgspec.to_builtins(plugins),
            "others": msgspec.to_builtins(said.others),
        }
        if then is None or plugins_document(plugins, said.others) is not None:
            found.append(MemberParts(top, {VERSION: []}))
    return found


def _plugins_of_then(
    reader: Reader, repository: Repository, file: File, at_ms: int | None
) -> tuple[Plugin, ...] | None:
    """The plugins of a plain file at a time, if they are fewer than now; None otherwise."""
    if at_ms is None or FOLDED not in file.attrs:
        return None
    listed = msgspec.convert(file.attrs[FOLDED], Uploaded).plugins
    then = plugins_then(reader, repository, file.path.rpartition("/")[0].replace("/", "."), listed, at_ms)
    return None if then == listed else then
