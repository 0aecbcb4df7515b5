"""
The path table of a Python repository.

``pypi`` and ``pkgindex`` are synonyms, and so are ``pypi-data`` and ``pkgindex-data``. Fixed words win over project
names: a project called ``simple`` is found at ``/simple/simple/``.

The paths have no encoded slashes, so Klein routes them; the site of formats reads raw paths, and has no router.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any, Final, cast

from twisted.python.failure import Failure
from werkzeug.exceptions import HTTPException

from pkgrepo.formats.python.index.requests import (
    IndexCaches,
    file,
    file_beside_page,
    file_by_name,
    file_of_version,
    info,
    page,
    project_list,
    provenance,
)
from pkgrepo.formats.python.proxied.requests import project_metadata, project_metadata_with_files, version_metadata
from pkgrepo.formats.python.token_exchange import answer_audience, answer_mint
from pkgrepo.formats.python.upload.requests import (
    media_type,
    refuse_upload,
    upload_file,
    upload_form,
    upload_form_of,
)
from pkgrepo.gateway.bodies import UPLOADS
from pkgrepo.gateway.publishing.virtual import publish_context
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.answering.dispatch import App, answering, refusal_of
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response, text_response
from pkgrepo.model import Action, Repository

from .changes import delete_file, delete_version, set_status, unyank, yank
from .refusals import ERRORS, misplaced

Handler = Callable[..., Awaitable[Response]]  # of the context, the request and the parts of the path
Table = Sequence[tuple[str, Handler]]

SEARCH_FAULT: Final = (
    "<?xml version='1.0'?><methodResponse><fault><value><struct>"
    "<member><name>faultCode</name><value><int>-32500</int></value></member>"
    "<member><name>faultString</name><value><string>search is not supported here; open {url} in a browser or use "
    "the management API</string></value></member></struct></value></fault></methodResponse>"
)


async def search_or_upload(context: Context[IndexCaches], request: Request) -> Response:
    """
    The XML-RPC search of old pip: answered with a fault, whose text pip prints.

    Anything else is the legacy upload form: other registries take it here, and twine takes any 200 for success.
    """
    if media_type(request) not in ("text/xml", "application/xml"):
        return await upload_form(await publish_context(context, request), request)
    await context.admit(request, Action.READ)
    url = f"{context.url(request)}/simple/"
    return text_response(SEARCH_FAULT.format(url=url), content_type=b"text/xml; charset=utf-8")


async def file_of_devpi(context: Context[object], request: Request, filename: str, **_digest: str) -> Response:
    """A file by the address that devpi gives it, with the beginning of its digest: lock files of uv have that."""
    return await file_by_name(context, request, filename)


READS: Final[Table] = (
    ("GET /", info),
    ("GET /simple/", project_list),
    ("GET /+simple/", project_list),
    ("GET /legacy/+simple/", project_list),
    ("GET /simple/<project>/", page),
    ("GET /+simple/<project>/", page),
    ("GET /legacy/+simple/<project>/", page),
    ("GET /packages/<project>/<version>/<filename>", file),
    ("GET /<project>/<version>/<filename>", file),
    ("GET /packages/<filename>", file_by_name),
    ("GET /+f/<begin>/<more>/<filename>", file_of_devpi),
    ("GET /simple/<project>/<filename>", file_beside_page),
    ("GET /integrity/<project>/<version>/<filename>/provenance", provenance),
    ("GET /pypi/<project>/json", project_metadata),
    ("GET /pypi/<project>/<version>/json", version_metadata),
    ("GET /pypi-data/<project>/json", project_metadata_with_files),
    ("GET /pypi/<project>/<version>/", file_of_version),
    ("POST /pypi/", search_or_upload),
    ("GET /_/oidc/audience", answer_audience),
    ("POST /_/oidc/mint-token", answer_mint),
)
# These are called with the context of the hosted repository that takes changes.
WRITES: Final[Table] = (
    ("POST /", upload_form),
    ("POST /legacy/", upload_form),
    ("POST /pypi/<project>/upload/", upload_form_of),
    ("PUT,POST /<project>/<version>/<filename>", upload_file),
    ("PUT,POST /packages/<project>/<version>/<filename>", upload_file),
    ("PUT,POST /simple/", refuse_upload),
    ("PUT,POST /simple/<project>/", refuse_upload),
    ("PUT,POST /+simple/", refuse_upload),
    ("PUT,POST /+simple/<project>/", refuse_upload),
    ("PUT,POST /legacy/+simple/", refuse_upload),
    ("POST /pypi/<project>/<version>/yank", yank),
    ("POST /pypi/<project>/<version>/unyank", unyank),
    ("DELETE /packages/<project>/<version>/<filename>", delete_file),
    ("DELETE /pypi/<project>/<version>/", delete_version),
    ("PUT /pypi/<project>/status", set_status),
)

app = App()


class PythonSite:
    """One Python repository as a Klein application."""

    app = app

    def __init__(self, services: Services, repository: Repository, caches: IndexCaches) -> None:
        self.context = Context(services, repository, caches)

    @answering(ERRORS)
    async def unrouted(self, request: Request, failure: Failure) -> Response:
        """What no route takes. :raises ReadOnly: it is an upload, and there is no repository to take it"""
        if request.method in UPLOADS:
            await publish_context(self.context, request)
        raise misplaced(self.context, request, refusal_of(cast("HTTPException", failure.value), request))


def _add_routes(table: Table, *, writes: bool) -> None:
    for route, handler in table:
        methods, _, path = route.partition(" ")
        accepted = ["GET", "HEAD"] if methods == "GET" else methods.split(",")
        for each in dict.fromkeys((path, path.replace("/pypi", "/pkgindex", 1))):
            app.route(each, methods=accepted)(_endpoint(handler, writes=writes))


def _endpoint(handler: Handler, *, writes: bool) -> Callable[..., Any]:
    @answering(ERRORS)
    @wraps(handler)
    async def run(site: PythonSite, request: Request, **parts: str) -> Response:
        context = await publish_context(site.context, request) if writes else site.context
        return await handler(context, request, **parts)

    return run


_add_routes(READS, writes=False)
_add_routes(WRITES, writes=True)
_handle: Any = app.handle_errors(HTTPException)
_handle(PythonSite.unrouted)
