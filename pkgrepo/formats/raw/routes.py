"""
The path table of a raw repository: each path is a file or a folder, and nothing else.

=============  ==================  ====================================================================================
method         path                answered by
=============  ==================  ====================================================================================
GET, HEAD      a file              ``files``; also its checksum, at the path with ``.sha256``, ``.sha512`` and the like
GET, HEAD      a folder, ``/``     ``folders``; without the slash a redirect to it
PUT            a file              ``files``
POST           a folder            ``files``: a form with a file
DELETE         a file, a version   ``files``
=============  ==================  ====================================================================================
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.raw.configuration import patterns_of
from pkgrepo.formats.raw.files import delete, get_file, post_form, put_file, take_file
from pkgrepo.formats.raw.folders import FolderContext, folders_of
from pkgrepo.formats.raw.paths import package_of, package_of_folder, parse_path
from pkgrepo.formats.raw.refusals import ERRORS
from pkgrepo.gateway.folders.pages import ListingTurns, moved_to_folder, wants_json
from pkgrepo.gateway.folders.requests import ARCHIVE
from pkgrepo.gateway.format_site import Routes
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.gateway.publishing.virtual import publish_context
from pkgrepo.gateway.responses.content import SAFE
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.model import Action

METHODS: Final = (b"DELETE", b"GET", b"HEAD", b"POST", b"PUT")
INDEX: Final = "index.html"
READS: Final = frozenset({b"GET", b"HEAD"})


async def _read(context: FolderContext, request: Request, rest: bytes) -> str:
    try:
        return parse_path(rest, written=request.method == b"PUT")
    except Invalid:
        await context.admit(request, Action.READ if request.method in READS else Action.WRITE)
        raise


async def _answer(context: FolderContext, request: Request, path: str) -> Response:
    match request.method:
        case b"PUT":
            return await put_file(context, request, path)
        case b"POST" if path and not request.entry.rest.endswith(b"/"):
            raise Invalid("a form with a file is sent to a folder: its address has a slash at the end")
        case b"POST":
            return await post_form(context, request, path)
        case b"DELETE":
            return await delete(context, request, path)
    if not path or request.entry.rest.endswith(b"/"):
        return await _get_folder(context, request, path)
    try:
        return await get_file(context, request, path)
    except NotFound:
        await context.admit(request, Action.READ, package_of(path, patterns_of(context.repository)))
        if not await folders_of(context).is_folder(path):
            raise
        return moved_to_folder(path)


async def _get_folder(context: FolderContext, request: Request, path: str) -> Response:
    indexed = context.repository.config.get("index_pages") and request.parameter(ARCHIVE) is None
    if indexed and not wants_json(request):
        with suppress(NotFound):  # with headers it is not cached, since JSON is at the same address
            return await get_file(context, request, f"{path}/{INDEX}".lstrip("/"), SAFE)
    package = package_of_folder(path, patterns_of(context.repository))
    identity = await context.admit(request, Action.READ, package)
    return await folders_of(context).answer(request, path, identity, context.caches)


async def take_sent(context: FolderContext, request: Request, sent: SentFile) -> Uploaded:
    """Publish the file of a form, in the repository that takes uploads."""
    return await take_file(await publish_context(context, request), request, sent)


ROUTES: Routes[ListingTurns, str] = Routes(
    read=_read,
    answer=_answer,
    changes=lambda request, _path: request.method not in READS,
    errors=ERRORS,
    methods=METHODS,
)
