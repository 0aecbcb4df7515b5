"""
The Klein application of a repository, for formats that read the raw path themselves.

A router decodes paths, merges slashes and redirects; names of packages have encoded slashes, and clients double them.
So one route takes every path, and the format says what it means.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from attrs import frozen
from twisted.web.resource import IResource

from pkgrepo.errors import NotFound
from pkgrepo.gateway.bodies import misplaced_upload
from pkgrepo.gateway.publishing.quotas import note_quotas
from pkgrepo.gateway.publishing.virtual import publish_context
from pkgrepo.http.answering.dispatch import App, ErrorTable, answer_with
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.model import Action, Repository
from pkgrepo.untrusted.text import split_path

from .services import Context, Services

C = TypeVar("C")  # the caches of a format
P = TypeVar("P")  # what its paths mean


async def _publish_context(context: Context[C], request: Request, _path: object) -> Context[C]:
    return await publish_context(context, request)


@frozen(kw_only=True, eq=False)
class Routes(Generic[C, P]):
    """
    How a format answers the requests to a repository.

    ``read`` tells what the raw path below the repository means, or raises what is answered if it means nothing.
    ``answer`` answers the request. One that ``changes`` packages is answered in the context of the ``target``: the
    member that takes what is published to a virtual repository. ``errors`` says how exceptions are answered.
    """

    read: Callable[[Context[C], Request, bytes], Awaitable[P]]
    answer: Callable[[Context[C], Request, P], Awaitable[Response]]
    changes: Callable[[Request, P], bool] = lambda _request, _path: False
    target: Callable[[Context[C], Request, P], Awaitable[Context[C]]] = _publish_context
    errors: ErrorTable
    methods: tuple[bytes, ...] = (b"DELETE", b"GET", b"HEAD", b"POST", b"PUT")


class FormatSite(Generic[C, P]):
    """One repository as a Klein application."""

    app = App()

    def __init__(self, routes: Routes[C, P], context: Context[C]) -> None:
        self._routes = routes
        self._context = context

    @app.route("/")
    @app.route("/<raw:rest>")
    async def route(self, request: Request, rest: str = "") -> None:  # noqa: ARG002 - decoded; the raw path is read
        """Answer any request to the repository."""
        await answer_with(request, self._routes.errors, lambda: self._answer(request))

    async def _answer(self, request: Request) -> Response:
        routes, context = self._routes, self._context
        request.repository = context.repository.path
        if request.method not in routes.methods:
            headers = ((b"Allow", b", ".join(routes.methods)),)
            raise Refusal(405, "this address does not take this method", headers=headers)
        path = await routes.read(context, request, request.entry.rest)
        if routes.changes(request, path):
            context = await routes.target(context, request, path)
            if request.method != b"DELETE":
                await note_quotas(context.services, context.repository, request)
        return await routes.answer(context, request, path)


def serve(routes: Routes[C, P], caches: C) -> Callable[[Repository, Services], IResource]:
    """The function that makes the resource of a repository."""

    def resource(repository: Repository, services: Services) -> IResource:
        return FormatSite(routes, Context(services, repository, caches)).app.resource()

    return resource


async def unserved(context: Context[Any], request: Request, advice: str, *, method: bool = False) -> Refusal:
    """
    The refusal of an address with nothing, or of a ``method`` that it does not take, to callers who may know of that.

    For ``advice`` see L{misplaced_upload}. :raises PkgrepoError: the caller may not know of the repository
    """
    await context.admit(request, Action.READ)
    if method:
        refusal = Refusal(405, "this address does not take this method", "method_not_allowed")
    else:
        address = request.entry.rest.decode("ascii", "replace")[:200]
        refusal = Refusal(404, str(NotFound("address", address)), "not_found")
    return misplaced_upload(context.services.base_url(request), request, refusal, advice)


async def path_parts(context: Context[Any], request: Request, rest: bytes, *, advice: str) -> list[str]:
    """The decoded parts of a path. :raises Refusal: it can be none, see L{unserved}"""
    parts = split_path(rest)
    if parts is None:
        raise await unserved(context, request, advice)
    return parts
