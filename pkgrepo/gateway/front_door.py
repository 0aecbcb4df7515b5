"""The front door: one Klein application over everything that is served."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import unquote, unquote_to_bytes

from twisted.python.failure import Failure
from twisted.web.resource import IResource
from werkzeug.exceptions import NotFound

from pkgrepo.errors import PkgrepoError, TooManyAttempts
from pkgrepo.http.answering.dispatch import answer_with, answering, refuse_unrouted
from pkgrepo.http.answering.errors import ErrorTable
from pkgrepo.http.answers import Answer, Refusal, error_answer, text_answer
from pkgrepo.http.request import Request
from pkgrepo.model import ANONYMOUS

from .access import SAFE_METHODS, Access, unknown
from .klein_app import new_app
from .mounts import Mount, Mounts, split
from .statuses import STATUSES, challenge

REALM = b'Basic realm="pkgrepo", Bearer'  # npm asks for a new login where Bearer is named


def render_refusal(_request: Request, refusal: Refusal) -> Answer:
    """A refusal where no format is in charge yet."""
    headers = (*challenge(refusal, REALM), (b"Cache-Control", b"no-store"))
    return error_answer(refusal.sentence, refusal.status, headers)


ERRORS = ErrorTable(STATUSES, render_refusal)


class FrontDoor:
    """
    Sends a request to the resource in charge, and into a repository only who may know of it.

    ``branches`` are further resources by their first path segment, such as ``api``; ``root`` answers ``/``.
    """

    app = new_app()

    def __init__(self, *, mounts: Mounts, access: Access, branches: dict[str, IResource]) -> None:
        self._mounts = mounts
        self._access = access
        self._branches = branches

    @app.route("/repositories/", branch=True)
    def repository(self, request: Request) -> Any:
        """Everything below a repository's address is its format's."""
        return self._enter(request)

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
        if split(request.raw_path) is not None:
            return self._enter(request)
        _, first, *rest = [unquote_to_bytes(part) for part in request.raw_path.split(b"/")]
        found = self._branches.get(first.decode("utf-8"))
        if found is None:
            return failure
        request.prepath, request.postpath = [first], rest
        return found

    def _enter(self, request: Request) -> Any:
        """The resource of the repository that the path leads into, now or later; nothing where it leads into none."""
        place = split(request.raw_path)
        if place is None:
            return self.nothing(request)
        try:
            self._access.check_origin(request)
        except Refusal as refusal:
            return answer_with(request, ERRORS, partial(_fail, refusal))
        if self._mounts.refresh_now():
            found = self._mounts.find(request.raw_path)
            if found is not None and self._access.knows_now(ANONYMOUS, found[0].repository):
                return _inside(request, found[0], place[2])
        return self._admit(request, place)

    async def _admit(self, request: Request, place: tuple[bytes, bytes, bytes]) -> Any:
        """
        The resource of a repository that is not for everybody, or not known from memory, for those who may know of it.

        Everybody else is told the same whether there is such a repository or not.
        """
        await self._mounts.refresh()
        found = self._mounts.find(request.raw_path)
        if found is not None and await self._access.knows(ANONYMOUS, found[0].repository):
            return _inside(request, found[0], place[2])
        mount = self._mounts.welcome(request.raw_path)
        if mount is not None:
            return _inside(request, mount, place[2])
        try:
            identity = await self._access.identify(request, counted=False)  # the format asks again
            if found is None or not await self._access.knows(identity, found[0].repository):
                raise unknown(identity, unquote("/".join(part.decode("latin-1") for part in place[:2])))
        except TooManyAttempts as error:
            # npm and others send again what was answered 429, and would be sent away again
            status = 429 if request.method in SAFE_METHODS else 403
            wait = ((b"Retry-After", b"%d" % error.retry_after_s),)
            refusal = Refusal(status, str(error), "too_many_attempts", headers=wait)
            return await answer_with(request, ERRORS, partial(_fail, refusal))
        except (PkgrepoError, Refusal) as error:
            return await answer_with(request, ERRORS, partial(_fail, error))
        return _inside(request, found[0], place[2])


def _inside(request: Request, mount: Mount, rest: bytes) -> IResource:
    """The resource of a mount, with the path as it goes on there: Klein takes what is left of it."""
    request.prepath = [b"repositories", *mount.repository.path.encode("utf-8").split(b"/")]
    # it was split before decoding, so "%2f" splits nothing
    request.postpath = [unquote_to_bytes(part) for part in rest.split(b"/")]
    return mount.resource


async def _fail(error: Exception) -> Answer:
    raise error


_handle: Any = FrontDoor.app.handle_errors(NotFound)
_handle(FrontDoor.unrouted)
refuse_unrouted(FrontDoor.app, ERRORS)
