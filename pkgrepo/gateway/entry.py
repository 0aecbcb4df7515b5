"""The front door: one Klein application over everything that is served."""

from __future__ import annotations

from typing import Any

from klein import Klein
from twisted.web.resource import IResource

from pkgrepo.http.answers import Answer, Refusal, text_answer
from pkgrepo.http.dispatch import answering
from pkgrepo.http.errors import ErrorTable
from pkgrepo.http.request import Request

from .mounts import Mounts
from .statuses import STATUSES


def plain_refusal(request: Request, refusal: Refusal) -> Answer:
    """A refusal where no format is in charge yet."""
    return text_answer(refusal.sentence + "\n", refusal.status, headers=refusal.headers, reason=refusal.sentence)


ERRORS = ErrorTable(STATUSES, plain_refusal)


class FrontDoor:
    """
    Sends a request to the resource in charge.

    ``branches`` are further resources by their first path segment, such as ``api``; ``root`` answers ``/``.
    """

    app = Klein()

    def __init__(self, *, mounts: Mounts, branches: dict[str, IResource]) -> None:
        self._mounts = mounts
        self._branches = branches

    @app.route("/repositories/", branch=True)
    def repository(self, request: Request) -> Any:
        """Everything below a repository's address is its format's."""
        found = self._mounts.find(request.raw_path)
        if found is None:
            return self.nothing(request)
        return found[0].resource

    @app.route("/<first>", branch=True)
    def branch(self, request: Request, first: str) -> Any:
        """Whatever the composition root has put under this word."""
        found = self._branches.get(first)
        return self.nothing(request) if found is None else found

    @app.route("/")
    @answering(ERRORS)
    async def root(self, request: Request) -> Answer:
        """A word of welcome for people who try the address."""
        return text_answer("pkgrepo is running. The management API is under /api, repositories are under /repositories.\n")

    @answering(ERRORS)
    async def nothing(self, request: Request) -> Answer:
        """There is nothing at this address."""
        raise Refusal(404, f"nothing is served at {request.raw_path.decode('latin-1')}", "not_found")
