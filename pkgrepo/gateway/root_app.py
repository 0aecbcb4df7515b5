"""The root application: one Klein application over everything that is served."""

from __future__ import annotations

from functools import partial
from typing import Any, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from twisted.python.failure import Failure
from twisted.web.resource import IResource, Resource
from werkzeug.exceptions import NotFound

from pkgrepo.errors import PkgrepoError, TooManyAttempts
from pkgrepo.gateway.bodies import UPLOADS
from pkgrepo.gateway.callers.access import Access
from pkgrepo.gateway.callers.browsers import SAFE_METHODS, shows_page, to_console
from pkgrepo.gateway.refusals import ERRORS
from pkgrepo.http.answering.dispatch import App, answer_with, answering, refuse_unrouted
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response, text_response
from pkgrepo.untrusted.text import decode_parts

from .mounts import Entry, Mount, Mounts, split, unknown_place

AT_ONCE: Final = frozenset({b"/healthz", b"/health", b"/v2/", b"/v2"})  # that the server lives is told at any host
GEMS: Final = b"/api/v1/gems"  # of ``gem push --host`` with the address of the server instead of a repository


class RootApp:
    """
    Routes a request to its resource, and to a repository only if the caller may know of it.

    ``branches`` are further resources by their first path segment, such as ``api``, or by the first two: ``api/maven``.
    """

    app = App()
    waiting = App()

    def __init__(self, *, mounts: Mounts, access: Access, branches: dict[str, IResource]) -> None:
        self._mounts = mounts
        self._access = access
        self._branches = branches

    @app.route("/repositories/", branch=True)
    def repository(self, request: Request) -> Any:
        """The resource of the repository's format, for everything below the repository's address."""
        return self._enter(request)

    @app.route("/<first>", branch=True)
    def branch(self, request: Request, first: str) -> Any:
        """The branch of this first segment."""
        if request.raw_path.startswith(GEMS):
            return self.nothing(request)
        second = request.raw_path.split(b"/", 3)[2:3]
        found = self._branches.get(f"{first}/{second[0].decode('latin-1')}") if second else None
        found = found or self._branches.get(first)
        return self.nothing(request) if found is None else found

    @app.route("/")
    @answering(ERRORS)
    async def root(self, request: Request) -> Response:
        """The console for browsers, and a text for everybody else."""
        if request.method in UPLOADS:
            raise _nothing(request)
        if request.method not in (*SAFE_METHODS, b"OPTIONS"):
            allow = ((b"Allow", b"GET, HEAD, OPTIONS"),)
            raise Refusal(405, "this address does not take this method", "method_not_allowed", headers=allow)
        if shows_page(request):
            return to_console(request.base_url, "/")
        return text_response(
            "pkgrepo is running. The management API is under /api, repositories are under /repositories.\n"
        )

    @answering(ERRORS)
    async def nothing(self, request: Request) -> Response:
        """404."""
        raise _nothing(request)

    def unrouted(self, request: Request, failure: Failure) -> Any:
        """The same resources for paths that Klein's routes do not match, such as one with a line end."""
        if split(request.raw_path) is not None:
            return self._enter(request)
        _, first, *rest = decode_parts(request.raw_path)
        found = self._branches.get(first.decode("utf-8"))
        if found is None:
            return failure
        request.prepath, request.postpath = [first], rest
        return found

    def _enter(self, request: Request) -> Any:
        """The resource of the repository that the path names, or an awaitable for it; 404 if it names none."""
        entry = self._mounts.enter(request)
        if entry is None:
            return self.nothing(request)
        console = self._console_of(request, entry)
        if console:
            named = (unquote_to_bytes(part).partition(b"@")[0] for part in entry.place[:2])  # views have no page
            page = "/repositories/" + "/".join(quote_from_bytes(part) for part in named)
            return answer_with(request, ERRORS, partial(_send_to, console, page))
        try:
            self._access.check_origin(request)
        except Refusal as refusal:
            return answer_with(request, ERRORS, partial(_fail, refusal))
        return self._known_to_all(request, entry) or self._admit(request, entry)

    def find_now(self, request: Request) -> IResource | None:
        """The resource of a repository that everybody may know of, if nothing else is to be said; never waits."""
        entry = self._mounts.enter(request)
        if entry is None or self._console_of(request, entry):
            return None
        try:
            self._access.check_origin(request)
        except Refusal:
            return None
        return self._known_to_all(request, entry)

    def must_wait(self, request: Request) -> bool:
        """Whether only a configuration that is not in memory yet tells if the host or path is of a repository."""
        return request.entry is None and not self._mounts.refresh_now() and request.raw_path not in AT_ONCE

    @waiting.route("/", branch=True)
    async def wait(self, request: Request) -> Any:
        """The resource of a request, once the configuration is in memory."""
        try:
            await self._mounts.refresh_configuration()
        except PkgrepoError as error:
            return await answer_with(request, ERRORS, partial(_fail, error))
        request.prepath, request.postpath = [], decode_parts(request.path[1:])
        return self.find_now(request) or self.app.resource()

    def _console_of(self, request: Request, entry: Entry) -> str:
        """
        The address of the server whose console shows a repository to this browser; empty if the repository answers.

        A host that stands for a repository has no console, and names of repositories are told only to who may know.
        """
        if entry.place[2] or not shows_page(request):
            return ""
        if entry.base is None:
            return request.base_url
        if not self._mounts.known_now(entry):
            return ""
        return request.base_url if entry.base else self._mounts.public_url

    def _known_to_all(self, request: Request, entry: Entry) -> IResource | None:
        mount = entry.mount
        return _resource_of(request, entry, mount) if mount is not None and self._mounts.known_now(entry) else None

    async def _admit(self, request: Request, entry: Entry) -> Any:
        """
        The resource of a repository that is private, or not known without waiting, for a caller who may know of it.

        All others get the same refusal whether there is such a repository or not.
        """
        try:
            await self._mounts.refresh(entry)
            if entry.failure is not None:
                raise entry.failure
            mount = entry.mount
            if mount is not None and entry.known:
                return _resource_of(request, entry, mount)
            open_mount = self._mounts.open_to_anonymous(entry.place)
            if open_mount is not None:
                entry.rest = entry.place[2]
                return _resource_of(request, entry, open_mount)
            identity = await self._access.identify(request, counted=False)  # the format identifies the caller again
            if mount is None or not await self._access.authorizer.knows(identity, mount.repository):
                raise unknown_place(identity, entry)
        except TooManyAttempts as error:
            # npm and others repeat a request that was answered 429, and would be refused again
            status = 429 if request.method in SAFE_METHODS else 403
            wait = ((b"Retry-After", b"%d" % error.retry_after_s),)
            refusal = Refusal(status, str(error), "too_many_attempts", headers=wait)
            return await answer_with(request, ERRORS, partial(_fail, refusal))
        except (PkgrepoError, Refusal) as error:
            return await answer_with(request, ERRORS, partial(_fail, error))
        return _resource_of(request, entry, mount)


class RootResource(Resource):
    """
    The resource of a root application.

    Repositories that everybody may know of are found without its routing, which takes as long as that of the format.
    """

    isLeaf = True

    def __init__(self, root: RootApp) -> None:
        untyped: Any = super()
        untyped.__init__()
        self._root = root
        self._routed: IResource = root.app.resource()
        self._waiting: IResource = root.waiting.resource()

    def render(self, request: Any) -> Any:
        """Answer at once if that needs no wait; else have the request routed."""
        found = self._root.find_now(request)
        if found is None and self._root.must_wait(request):
            found = self._waiting
        return (found or self._routed).render(request)


def _resource_of(request: Request, entry: Entry, mount: Mount) -> IResource:
    """The resource of a mount, with the rest of the path for Klein."""
    request.prepath = [b"repositories", *mount.repository.path.encode("utf-8").split(b"/")]
    request.postpath = decode_parts(entry.rest)
    return mount.resource


def _nothing(request: Request) -> Refusal:
    sentence = f"nothing is served at {request.raw_path.decode('latin-1')}"
    if request.method in UPLOADS:
        sentence += "; the address of a repository is /repositories/<storage>/<repository>/"
    return Refusal(404, sentence, "not_found")


async def _send_to(base_url: str, page: str) -> Response:
    return to_console(base_url, page)


async def _fail(error: Exception) -> Response:
    raise error


_handle: Any = RootApp.app.handle_errors(NotFound)
_handle(RootApp.unrouted)
refuse_unrouted(RootApp.app, ERRORS)
