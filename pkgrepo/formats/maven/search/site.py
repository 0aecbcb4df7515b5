"""The addresses of searches and questions at the root of the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from twisted.web.resource import IResource

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.maven.paths import parse_path
from pkgrepo.formats.maven.refusals import ERRORS
from pkgrepo.gateway.klein_app import new_app
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.dispatch import answering, refuse_unrouted
from pkgrepo.http.answers import Answer, Refusal
from pkgrepo.http.request import Request
from pkgrepo.model import Identity, Repository

from .questions import Questions
from .repositories import scope_of_all
from .requests import search

SOLR: Final = b"/solrsearch/select"

Question = Callable[[Request, Repository, Identity, str], Awaitable[Answer]]

app = new_app()


class SearchSite:
    """Searches and questions over all Maven repositories."""

    app = app

    def __init__(self, services: Services) -> None:
        self._services = services
        questions = self._questions = Questions(services)
        self._addresses: dict[bytes, Question] = {
            b"/api/maven/details/": questions.details,
            b"/api/maven/versions/": questions.versions,
            b"/api/maven/latest/version/": questions.latest_version,
            b"/api/maven/latest/file/": questions.latest_file,
            b"/api/maven/latest/details/": questions.latest_details,
            b"/api/badge/latest/": questions.badge,
        }

    def resource(self) -> IResource:
        """The application's resource."""
        resource: IResource = self.app.resource()
        return resource

    @app.route("/", methods=["GET", "HEAD"])
    @app.route("/<raw:rest>", methods=["GET", "HEAD"])
    @answering(ERRORS)
    async def route(self, request: Request, rest: str = "") -> Answer:  # noqa: ARG002 - the raw path is read
        """Answer any of the addresses."""
        path = request.raw_path
        if path == SOLR:
            return await search(self._services, request, await scope_of_all(self._services, request))
        for prefix, question in self._addresses.items():
            if path.startswith(prefix):
                return await self._ask(request, path.removeprefix(prefix), question)
        raise Refusal(404, "nothing is served at this address", "not_found")

    async def _ask(self, request: Request, raw: bytes, question: Question) -> Answer:
        storage, _, rest = raw.partition(b"/")
        name, _, below = rest.partition(b"/")
        try:
            target = parse_path(below.rstrip(b"/") + b"/", directory_ok=True)
        except Invalid:
            raise NotFound("path", below.decode("latin-1")) from None
        if not target.path:
            raise NotFound("path", "")
        repository, identity = await self._questions.find_repository(
            request, storage.decode("latin-1"), name.decode("latin-1")
        )
        request.repository = repository.path
        return await question(request, repository, identity, target.path)


refuse_unrouted(SearchSite.app, ERRORS)
