"""The requests of clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from urllib.parse import unquote

from pkgrepo.errors import Invalid, NotFound, existing
from pkgrepo.gateway.bodies import receive_body
from pkgrepo.gateway.format_site import Routes
from pkgrepo.gateway.package_documents import answer_document
from pkgrepo.gateway.package_files import answer_file
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.publishing.virtual import publish_context
from pkgrepo.gateway.refusals import ERRORS
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response, json_response, text_response
from pkgrepo.model import Action, BlobInfo
from pkgrepo.repositories.publish.releases import Published
from pkgrepo.repositories.publish.staged import Staged

from .index import index_files, make_release
from .names import INDEX, check_name, parse_path

Place = tuple[str, str]  # a package, and the path of a file of it; without that its document, without both a greeting


async def _read(context: Context[SplicedDocuments], request: Request, rest: bytes) -> Place:
    path = unquote(rest.decode("ascii", "replace"))
    with suppress(Invalid):
        match path.split("/"):
            case [""]:
                return "", ""
            case [package, end] if end == INDEX:
                return check_name(package), ""
            case _:
                return parse_path(path)[0], path
    await context.admit(request, Action.READ)
    raise NotFound("address", path[:200])


async def _answer(context: Context[SplicedDocuments], request: Request, place: Place) -> Response:
    services, repository, (package, path) = context.services, context.repository, place
    if request.method == b"PUT" and path:
        published = await _put(context, request, path, partial(receive_body, request, limit=services.max_upload))
        return json_response({"sha256": published.files[0].sha256}, 201 if published.changed else 200)
    identity = await context.admit(request, Action.READ, package or None)
    if request.method == b"PUT":
        raise Refusal(405, "files are put to PACKAGE/VERSION/FILE", "method_not_allowed")
    if path:
        found = await answer_file(services, request, identity, repository, package, path)
        return existing(found, "file", path)
    if package:
        return await answer_document(services, request, repository, package, context.caches, lambda _: INDEX)
    return text_response(f"This is the toy repository {repository.path}.\n")


async def take_file(context: Context[SplicedDocuments], request: Request, sent: SentFile) -> Uploaded:
    """Publish the file of a form, before which is the folder of the version."""
    path = sent.text("path") + sent.name
    published = await _put(await publish_context(context, request), request, path, sent.receive)
    return Uploaded(*parse_path(path), published.changed, path, published.files[0].sha256)


async def _put(
    context: Context[SplicedDocuments], request: Request, path: str, receive: Callable[[Staged], Awaitable[BlobInfo]]
) -> Published:
    content, (package, _) = context.services.content, parse_path(path)
    identity = await context.admit(request, Action.WRITE, package)
    async with content.stage(context.repository, package, user_id=identity.user_id) as staged:
        release = make_release(path, await receive(staged))
        _, admitted = await context.admit_publishing(request, package)  # again: the body may have taken hours
        return await content.publish(context.repository, release, staged, admitted, index_files)


ROUTES: Routes[SplicedDocuments, Place] = Routes(
    read=_read,
    answer=_answer,
    changes=lambda request, _place: request.method == b"PUT",
    errors=ERRORS,
    methods=(b"GET", b"HEAD", b"PUT"),
)
