"""The requests of clients."""

from __future__ import annotations

from contextlib import suppress
from typing import Final
from urllib.parse import unquote

from attrs import Factory, frozen

from pkgrepo.errors import Invalid, NotFound, existing
from pkgrepo.gateway.bodies import receive_body
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.format_site import Routes
from pkgrepo.gateway.package_files import answer_file
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.publishing.virtual import publish_context
from pkgrepo.gateway.refusals import ERRORS
from pkgrepo.gateway.responses.content import choose_encoding, document_cache_control, document_response
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Refusal, Response, json_response, text_response
from pkgrepo.model import Action, BlobInfo, Document
from pkgrepo.repositories.publish import package_changes
from pkgrepo.repositories.publish.releases import Published
from pkgrepo.repositories.publish.staged import Staged

from .index import index_files, make_release
from .names import INDEX, FilePath, check_name, version_key

CACHE_SIZE: Final = 16 * 1024 * 1024  # bytes of documents


@frozen(eq=False)
class Caches:
    """The documents of packages."""

    documents: SplicedDocuments = Factory(lambda: SplicedDocuments({INDEX: "application/json"}, cache_size=CACHE_SIZE))


Parts = tuple[str, ...]  # of a path, decoded


async def _read(context: Context[Caches], request: Request, rest: bytes) -> Parts:
    parts = tuple(unquote(each) for each in rest.decode("ascii", "replace").split("/"))
    with suppress(Invalid):
        match parts:
            case ("",):
                return ()
            case (package, end) if end == INDEX or request.method == b"DELETE":
                return check_name(package), end if end == INDEX else version_key(end)
            case (package, version, file):
                FilePath(package, version, file)
                return parts
    await context.admit(request, Action.READ)
    raise NotFound("address", "/".join(parts)[:200])


async def _answer(context: Context[Caches], request: Request, parts: Parts) -> Response:
    match request.method, parts:
        case b"PUT", (package, version, file):
            return await _put_file(context, request, FilePath(package, version, file))
        case b"DELETE", (package, version) if version != INDEX:
            return await _delete_version(context, request, package, version)
        case b"GET" | b"HEAD", (package, version, file):
            identity = await context.admit(request, Action.READ, package)
            path = FilePath(package, version, file).path
            response = await answer_file(context.services, request, identity, context.repository, package, path)
            return existing(response, "file", file)
        case b"GET" | b"HEAD", (package, _):
            return await _document(context, request, package)
    await context.admit(request, Action.READ)
    if request.method in (b"GET", b"HEAD"):
        return text_response(f"This is the toy repository {context.repository.path}.\n")
    raise Refusal(405, "this address does not take this method", "method_not_allowed")


async def _document(context: Context[Caches], request: Request, package: str) -> Response:
    services, repository, cache = context.services, context.repository, context.caches.documents
    await context.admit(request, Action.READ, package)
    generation = services.catalog.generation()
    state = await services.proxy.resolver.state(repository, package, revalidate=request.revalidates)
    rendered = await cache.get(services.pools, services.view_turns, state, INDEX, "")

    def respond(again: Request, document: Document) -> Response:
        headers: Fields = (
            (b"Cache-Control", document_cache_control(repository, settled=rendered.state.settled)),
            (b"Vary", b"Accept-Encoding"),
        )
        encoding = choose_encoding(again.header(b"accept-encoding"))
        return document_response(document, encoding, headers, cpu=services.pools.cpu)

    def negotiate(again: Request) -> Response | None:
        ready = cache.ready(rendered.state, INDEX, "")
        return None if ready is None else respond(again, ready)

    services.response_cache.put_document(request, rendered, negotiate=negotiate, generation=generation)
    return respond(request, rendered.document)


async def _put_file(context: Context[Caches], request: Request, place: FilePath) -> Response:
    services = context.services
    identity = await context.admit(request, Action.WRITE, place.package)
    async with services.content.stage(context.repository, place.package, user_id=identity.user_id) as staged:
        blob = await receive_body(request, staged, limit=services.max_upload)
        published = await _publish(context, request, staged, place, blob)
    return json_response({"sha256": blob.sha256}, 201 if published.changed else 200)


async def take_file(context: Context[Caches], request: Request, sent: SentFile) -> Uploaded:
    """Publish the file of a form, which also has the package and the version."""
    context = await publish_context(context, request)
    place = FilePath(sent.text("package"), sent.text("version"), sent.name)
    identity = await context.admit(request, Action.WRITE, place.package)
    async with context.services.content.stage(context.repository, place.package, user_id=identity.user_id) as staged:
        published = await _publish(context, request, staged, place, await sent.receive(staged))
    return Uploaded(place.package, place.version, published.changed)


async def _publish(
    context: Context[Caches], request: Request, staged: Staged, place: FilePath, blob: BlobInfo
) -> Published:
    _, admitted = await context.admit_publishing(request, place.package)  # again: the body may have taken hours
    release = make_release(place, blob, reuse=bool(context.repository.policy.get("reuse_deleted_names", False)))
    return await context.services.content.publish(context.repository, release, staged, admitted, index_files)


async def _delete_version(context: Context[Caches], request: Request, package: str, version: str) -> Response:
    actor = actor_of(request, await context.admit(request, Action.DELETE, package))
    burn = not context.repository.policy.get("reuse_deleted_names", False)
    gone = await context.services.content.change(
        package_changes.remove_files, context.repository, package, version, None, actor, index_files, burn
    )
    return json_response({"deleted": gone})


ROUTES: Routes[Caches, Parts] = Routes(
    read=_read,
    answer=_answer,
    changes=lambda request, _parts: request.method in (b"PUT", b"DELETE"),
    errors=ERRORS,
)
