"""Read requests: packuments, versions, tags, tarballs."""

from __future__ import annotations

import hashlib
from functools import partial

import msgspec
from attrs import Factory, evolve, frozen

from pkgrepo.errors import NotFound, ReadOnly, existing
from pkgrepo.formats.npm import names, semver
from pkgrepo.formats.npm.authorization import authorize_read
from pkgrepo.formats.npm.packument.document import FULL, FULL_TYPE, SHORT, SHORT_TYPE, version_document
from pkgrepo.formats.npm.paths import PackagePath, RootPath, TarballPath, VersionPath, tarball_path
from pkgrepo.formats.npm.refusals import version_not_found
from pkgrepo.formats.npm.search.listing import Listings
from pkgrepo.gateway.package_documents import Found, answer_document, serve_document
from pkgrepo.gateway.package_files import answer_file
from pkgrepo.gateway.responses.content import SAFE, Encoding, document_cache_control, document_response
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.gateway.services import Context
from pkgrepo.http.answering.negotiation import best_encoding, best_media_type
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Fields, Response, json_response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Document, Identity, Package, RepositoryType, Version
from pkgrepo.proxy.resolving.serving import PackageState
from pkgrepo.proxy.virtual import publish_target
from pkgrepo.repositories.publish.splicing import BASE, Spliced
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import packages, tags, versions
from pkgrepo.storage.catalog.server import repositories

_OFFERS = (FULL_TYPE.encode(), SHORT_TYPE.encode())


@frozen(eq=False)
class Caches:
    """What one process keeps in memory for all npm repositories."""

    packuments: SplicedDocuments
    listings: Listings = Factory(Listings)


async def packument(context: Context[Caches], request: Request, path: PackagePath) -> Response:
    """
    A packument in the form that the client asks for; see L{_document_for_writing} for one that it will write back.

    :raises NotFound: no such package; :raises RuleRefused: rules hide all of its versions, so that npm would print that
    it may be unpublished
    """
    name = path.name
    identity = await authorize_read(context, request, name)
    if request.raw_query and b"write" in request.args:
        return await _document_for_writing(context, request, identity, name)
    return await answer_document(
        context.services,
        request,
        context.repository,
        name,
        context.caches.packuments,
        _form,
        address=context.url,
        respond=partial(_document_response, context),
        refuses=True,
    )


async def _document_for_writing(context: Context[Caches], request: Request, identity: Identity, name: str) -> Response:
    """
    The full form of what a change of a package concerns, with the versions that rules hide.

    npm writes the document back without the version that it unpublishes, and removes the package if it has only that
    one. So it must see all that there is, where changes go to. Callers who may not change the package see what others
    see.
    """
    services = context.services
    state = await _whole_state(context, identity, name) or await state_of(context, request, name)
    rendered = await context.caches.packuments.get(
        services.pools, services.view_turns, state, FULL, context.url(request)
    )
    return _not_stored(_document_response(context, request, rendered.document, settled=False))


async def _whole_state(context: Context[Caches], identity: Identity, name: str) -> PackageState | None:
    services = context.services
    try:
        target = publish_target(services.registry, context.repository)
    except ReadOnly:
        return None
    changes = [(action, target, name) for action in (Action.WRITE, Action.DELETE)]
    may = await services.access.authorizer.may_each(identity, changes)
    return await services.proxy.resolver.whole_state(target, name) if any(may) else None


def _not_stored(response: Response) -> Response:
    """Without ETag and Last-Modified: npm sends the validators of the other form, which must not make a 304."""
    return evolve(response, etag=None, last_modified=None, headers=(*NO_STORE, *response.headers[1:]))


async def version(context: Context[object], request: Request, path: VersionPath) -> Response:
    """
    The document of a version, selected by its number or a tag.

    :raises NotFound: no such package; :raises Refusal: no such version or tag; :raises RuleRefused: a rule hides it
    """
    repository, name = context.repository, path.name
    await authorize_read(context, request, name)

    async def look() -> Found[bytes]:
        state, fragment = await _find_version(context, request, name, path.selector)
        if fragment is None:
            wanted = semver.find_version(path.selector)
            refused = None if wanted is None else state.refusal_of(wanted.text.__eq__)
            raise refused or state.refused or version_not_found(path.selector)

        def respond(again: Request, fragment: bytes) -> Response:
            body = version_document(fragment).replace(BASE, context.url(again).encode())
            control = document_cache_control(repository, settled=state.settled)
            return Response(
                body=body,
                content_type=FULL_TYPE.encode(),
                etag=b'"%s"' % hashlib.sha256(body).hexdigest()[:32].encode(),
                headers=((b"Cache-Control", control), (b"Vary", b"Accept, Accept-Encoding")),
            )

        return Found(
            document=fragment,
            respond=respond,
            ready=lambda _: fragment,
            fresh=state.fresh,
            size=2 * len(fragment),
            cacheable=state.cacheable,
            package=name,
            by_address=True,
            ends_s=state.expires_s,
        )

    return await serve_document(context.services, request, repository, look)


async def dist_tags(context: Context[object], request: Request, name: str) -> Response:
    """The dist-tags of a package, as tag to version. :raises NotFound: no such package"""
    await authorize_read(context, request, name)
    if context.services.proxy.resolver.reads_catalog(context.repository, name):
        package = await get_package(context, name)
        tagged = await context.services.catalog.look(tags.tagged_versions, package.id)
    else:
        state = await state_of(context, request, name)
        load = partial(state.load, SHORT)
        spliced, _ = await context.services.view_turns.make(context.repository, load, package=name)
        tagged = await context.services.pools.cpu(read_tags, spliced)
    return json_response(tagged, headers=((b"Cache-Control", document_cache_control(context.repository)),))


async def tarball(context: Context[object], request: Request, path: TarballPath) -> Response:
    """The tarball of a version. :raises NotFound: no tarball has this name"""
    identity = await authorize_read(context, request, path.name)
    response = await answer_file(
        context.services, request, identity, context.repository, path.name, _tarball_path(path)
    )
    if response is None:
        raise NotFound("tarball", path.filename)
    return response


async def exists(context: Context[object], request: Request, path: PackagePath | VersionPath | TarballPath) -> bool:
    """
    Whether there is the package, or the version, that a path names.

    :raises UpstreamFailed: that is not known; :raises AuthenticationRequired: anonymous callers may not ask
    """
    try:
        if context.repository.type is not RepositoryType.HOSTED:
            await authorize_read(context, request, path.name)
        if isinstance(path, VersionPath):
            return (await _find_version(context, request, path.name, path.selector))[1] is not None
        await state_of(context, request, path.name)
    except NotFound:
        return False
    return True


async def state_of(context: Context[object], request: Request, name: str) -> PackageState:
    """
    A package as this repository shows it to this request.

    :raises NotFound: there is none; :raises UpstreamFailed: that is not known
    """
    return await context.services.proxy.resolver.state(context.repository, name, revalidate=request.revalidates)


async def get_package(context: Context[object], name: str) -> Package:
    """A package of a hosted repository by its name. :raises NotFound: there is none"""
    return existing(await find_package(context, name), "package", name)


async def find_package(context: Context[object], name: str) -> Package | None:
    """A package of a hosted repository by its name, or None."""
    return await context.services.catalog.look(packages.find_package, context.repository.id, name)


async def info(context: Context[object], request: Request, _path: RootPath) -> Response:
    """A description of this repository, with the keys of CouchDB, which the first registry ran on."""
    await authorize_read(context, request, None)
    catalog = context.services.catalog
    now = await catalog.look(repositories.find_repository, context.repository.uid) or context.repository
    return json_response(
        {
            "db_name": now.name,
            "doc_count": now.package_count,
            "doc_del_count": 0,
            "update_seq": now.serial,
            "disk_size": now.bytes_used,
            "data_size": now.bytes_used,
            "instance_start_time": str(round(now.created_at.timestamp() * 1_000_000)),
        },
        headers=((b"Cache-Control", b"no-cache"),),
    )


async def _find_version(
    context: Context[object], request: Request, name: str, selector: str
) -> tuple[PackageState, bytes | None]:
    """
    A package, and the fragment in the full form of a version of it, which is None when there is no such version.

    :raises NotFound: no such package
    """
    state = await state_of(context, request, name)
    if context.services.proxy.resolver.reads_catalog(context.repository, name):
        package = await get_package(context, name)
        return state, await context.services.catalog.look(find_version_fragment, package.id, selector)
    load = partial(state.load, FULL)
    spliced, state = await context.services.view_turns.make(context.repository, load, package=name)
    return state, await context.services.pools.cpu(find_fragment, spliced, selector)


def _tarball_path(path: TarballPath) -> str:
    """The file path of the tarball in a request's path. :raises NotFound: no version's tarball has this name"""
    version = existing(names.find_tarball_version(path.name, path.filename), "tarball", path.filename)
    if path.selector:
        selected = semver.find_version(path.selector)
        if selected is None or selected.text != version.text:
            raise NotFound("tarball", f"{path.selector}/{path.filename}")
    return tarball_path(path.name, version.text)


def _document_response(context: Context[object], request: Request, document: Document, *, settled: bool) -> Response:
    headers: Fields = (
        (b"Cache-Control", document_cache_control(context.repository, settled=settled)),
        (b"Vary", b"Accept, Accept-Encoding"),
        *(field for field in SAFE if field[0] != b"Content-Disposition"),
    )
    modified_s = document.modified_s  # None while that second lies in the future (see L{Package})
    if modified_s is not None and modified_s * 1000 > context.services.clock.now_ms():
        modified_s = None
    coding: Encoding = (
        "gzip" if best_encoding(request.header(b"accept-encoding"), (b"gzip", b"identity")) == b"gzip" else "identity"
    )
    return document_response(document, coding, headers, last_modified=modified_s, cpu=context.services.pools.cpu)


def find_version_fragment(reader: Reader, package_id: int, selector: str) -> bytes | None:
    """The fragment, in the full form, of a version selected by its number or a tag; None when there is none."""
    version = find_selected(reader, package_id, selector)
    return (
        None if version is None else index_documents.find_fragment(reader, package_id, FULL, version.sort, version.key)
    )


def find_selected(reader: Reader, package_id: int, selector: str) -> Version | None:
    """A version by its number, in any spelling that npm accepts, or by a tag; None when there is none."""
    wanted = semver.find_version(selector)
    if wanted is None:
        wanted = semver.find_version(tags.tagged_versions(reader, package_id).get(selector, ""))
    return None if wanted is None else versions.find_version(reader, package_id, wanted.key)


def _form(request: Request) -> str:
    """The form that a request asks for: the abbreviated one when its media type is preferred to JSON."""
    return SHORT if best_media_type(request.header(b"accept"), _OFFERS) == _OFFERS[1] else FULL


class _Head(msgspec.Struct):
    tags: dict[str, str] = msgspec.field(name="dist-tags")


def read_tags(spliced: Spliced) -> dict[str, str]:
    """The dist-tags of a packument in any form, as tag to version."""
    return msgspec.json.decode(spliced.head + spliced.tail, type=_Head).tags


def find_fragment(spliced: Spliced, selector: str) -> bytes | None:
    """The fragment of a version selected by its number, in any spelling that npm accepts, or by a tag; or None."""
    wanted = semver.find_version(selector) or semver.find_version(read_tags(spliced).get(selector, ""))
    if wanted is None:
        return None
    # A fragment begins with the version as text. Another one may be meant that differs in build metadata alone.
    for beginning in (f'"{wanted.text}":', f'"{wanted.key}":', f'"{wanted.key}+'):
        for fragment in spliced.fragments:
            if fragment.startswith(beginning.encode()):
                return fragment
    return None
