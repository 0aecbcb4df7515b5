"""The front door: one Klein application over everything that is served."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

from twisted.python.failure import Failure
from twisted.web.resource import IResource
from werkzeug.exceptions import NotFound

from pkgrepo.http.answers import Answer, Refusal, error_answer, text_answer
from pkgrepo.http.dispatch import answering, refuse_unrouted
from pkgrepo.http.errors import ErrorTable
from pkgrepo.http.request import Request

from .klein import new_app
from .mounts import Mounts
from .statuses import STATUSES


def render_refusal(_request: Request, refusal: Refusal) -> Answer:
    """A refusal where no format is in charge yet."""
    return error_answer(refusal.sentence, refusal.status, refusal.headers)


ERRORS = ErrorTable(STATUSES, render_refusal)


class FrontDoor:
    """
    Sends a request to the resource in charge.

    ``branches`` are further resources by their first path segment, such as ``api``; ``root`` answers ``/``.
    """

    app = new_app()

    def __init__(self, *, mounts: Mounts, branches: dict[str, IResource]) -> None:
        self._mounts = mounts
        self._branches = branches

    @app.route("/repositories/", branch=True)
    def repository(self, request: Request) -> Any:
        """Everything below a repository's address is its format's."""
        return self._enter(request) or self.nothing(request)

    @app.route("/<first>", branch=True)
    def branch(self, request: Request, first: str) -> Any:
        """Whatever the composition root has put under this word."""
        found = self._branches.get(first)
        return self.nothing(request) if found is None else found

    @app.route("/")
    @answering(ERRORS)
    async def root(self, _request: Request) -> Answer:
        """A word of welcome for people who try the address."""
        return text_answer(
            "pkgrepo is running. The management API is under /api, repositories are under /repositories.\n"
        )

    @answering(ERRORS)
    async def nothing(self, request: Request) -> Answer:
        """There is nothing at this address."""
        raise Refusal(404, f"nothing is served at {request.raw_path.decode('latin-1')}", "not_found")

    def unrouted(self, request: Request, failure: Failure) -> Any:
        """What no route matches, such as a line end, is below its repository or first segment all the same."""
        resource = self._enter(request)
        if resource is not None:
            return resource
        _, first, *rest = [unquote_to_bytes(part) for part in request.raw_path.split(b"/")]
        found = self._branches.get(first.decode("utf-8"))
        if found is None:
            return failure
        request.prepath, request.postpath = [first], rest
        return found

    def _enter(self, request: Request) -> IResource | None:
        """The resource of the repository that the path leads into, with the path as it goes on there."""
        found = self._mounts.find(request.raw_path)
        if found is None:
            return None
        mount, rest = found
        # Klein goes on from what is left of the path. It was split before decoding, so "%2f" splits nothing.
        request.prepath = [b"repositories", *mount.repository.path.encode("utf-8").split(b"/")]
        request.postpath = [unquote_to_bytes(part) for part in rest.split(b"/")]
        return mount.resource


_handle: Any = FrontDoor.app.handle_errors(NotFound)
_handle(FrontDoor.unrouted)
refuse_unrouted(FrontDoor.app, ERRORS)
