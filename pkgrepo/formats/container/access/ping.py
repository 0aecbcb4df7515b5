"""The ping of registry clients: ``GET /v2/``, which answers that this is a registry, or asks for credentials."""

from __future__ import annotations

from pkgrepo.errors import RepositoryInactive
from pkgrepo.formats.container.refusals import VERSION
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import NO_STORE, Answer, Refusal, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Repository

from .authorization import Authorization

# User agents of people who test whether the server answers. Registry clients must be challenged at the ping, since
# otherwise they send no credentials later (docker 28, skopeo 1.9).
TESTERS = (b"curl/", b"Wget/", b"HTTPie", b"python-requests", b"Mozilla/")


class PingRequests:
    """
    Answers pings, of the server or of one ``repository``.

    ``setting`` is ``container.ping``.
    """

    def __init__(
        self, services: Services, authorization: Authorization, setting: str, repository: Repository | None
    ) -> None:
        self._services = services
        self._authorization = authorization
        self._setting = setting
        self._repository = repository

    async def get(self, request: Request) -> Answer:
        """That this is a registry. :raises Refusal: the challenge; :raises RepositoryInactive: it is switched off"""
        check_read(request, "this address is only read")
        identity = await self._authorization.authenticate(request)
        self.require_credentials(request)
        own = self._repository
        if own is not None and not own.active and await self._services.access.knows(identity, own):
            raise RepositoryInactive(own.path)
        return ping_answer()

    def require_credentials(self, request: Request, scope: str = "") -> None:
        """Check that there are credentials if the client must be asked for them. :raises Refusal: the challenge"""
        if request.header(b"authorization") is not None or request.method == b"HEAD" or self._setting == "open":
            return
        if self._setting == "auto" and (request.header(b"user-agent") or b"").startswith(TESTERS):
            return
        raise self._authorization.challenge(request, scope, "authentication required")


def check_read(request: Request, sentence: str) -> None:
    """Check that a request only reads. :raises Refusal: with the sentence"""
    if request.method not in (b"GET", b"HEAD"):
        raise Refusal(405, sentence, "UNSUPPORTED", headers=((b"Allow", b"GET, HEAD"),))


def ping_answer() -> Answer:
    """The answer that this is a registry, and its version."""
    return json_answer({}, headers=(*VERSION, *NO_STORE))
