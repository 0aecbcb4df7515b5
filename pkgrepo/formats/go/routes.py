"""
The path table of a Go repository.

=========  ===================================  =======================================================================
method     path                                 answered by
=========  ===================================  =======================================================================
GET, HEAD  list, query                          ``reads.versions``
GET, HEAD  ``@latest``                          ``reads.latest``
GET, HEAD  file of a version                    ``reads.file``
GET, HEAD  checksum database                    ``reads.database``
PUT        zip of a version, or ``upload``      ``publishing.upload``
PUT        its ``.mod`` or ``.info``            ``publishing.compare``
=========  ===================================  =======================================================================
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.go import publishing, reads
from pkgrepo.gateway.bodies import misplaced_upload
from pkgrepo.gateway.format_site import Routes
from pkgrepo.gateway.refusals import TEXT_ERRORS
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.model import Action, Extent

from .names import KINDS, Path, read_path
from .reads import GoContext

READS: Final = (b"GET", b"HEAD")
HANDLERS: Final[Mapping[str, Callable[[GoContext, Request, Path], Awaitable[Response]]]] = {
    **dict.fromkeys(("list", "query"), reads.versions),
    "latest": reads.latest,
    "sumdb": reads.database,
    **dict.fromkeys(KINDS, reads.file),
}


async def _read(context: GoContext, request: Request, rest: bytes) -> Path:
    found, why = None, str(NotFound("address", rest.decode("ascii", "replace")[:200]))
    try:
        found = read_path(rest)
    except Invalid as error:  # there is no such version, and who publishes it is told why
        if request.method not in READS:
            return Path("", "", "", error.message)
        if error.pointer != "version":
            raise
        why = error.message
    if found is None:
        await context.admit(request, Action.READ, Extent.SOME)
        raise _misplaced(context, request, Refusal(404, why, "not_found"))
    return found


async def _answer(context: GoContext, request: Request, path: Path) -> Response:
    if request.method == b"PUT" and not path.kind:
        raise Invalid(path.text, "path")
    if request.method == b"PUT" and path.kind in ("zip", "upload"):
        return await publishing.upload(context, request, path)
    if request.method == b"PUT" and path.kind in KINDS:
        return await publishing.compare(context, request, path)
    if request.method not in READS or path.kind not in HANDLERS:
        sentence = "a version is published by PUT of its zip, of which its .mod and .info are made"
        raise _misplaced(context, request, Refusal(405, sentence, headers=((b"Allow", b"GET, HEAD, PUT"),)))
    return await HANDLERS[path.kind](context, request, path)


def _misplaced(context: GoContext, request: Request, refusal: Refusal) -> Refusal:
    return misplaced_upload(context.services.base_url(request), request, refusal, "publish to {}/MODULE/@v/VERSION.zip")


ROUTES: Routes[SplicedDocuments, Path] = Routes(
    read=_read, answer=_answer, changes=lambda request, _path: request.method not in READS, errors=TEXT_ERRORS
)
