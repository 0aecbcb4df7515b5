"""What the handlers of the registry API work with, and the ping: ``GET /v2/``."""

from __future__ import annotations

from attrs import frozen

from pkgrepo.errors import RepositoryInactive
from pkgrepo.formats.container.access import Authorization
from pkgrepo.formats.container.proxied.lists import UpstreamImages
from pkgrepo.formats.container.proxied.member_content import MemberContent
from pkgrepo.formats.container.refusals import VERSION
from pkgrepo.formats.container.trust.visibility import Visibility
from pkgrepo.gateway.image_addresses import ImageAddresses
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response
from pkgrepo.model import Repository
from pkgrepo.repositories.publish.upload_leases import UploadLeases

# User agents of people who test whether the server answers. Registry clients must be challenged at the ping, since
# otherwise they send no credentials later (docker 28, skopeo 1.9).
TESTERS = (b"curl/", b"Wget/", b"HTTPie", b"python-requests", b"Mozilla/")


@frozen(eq=False)
class RegistryContext:
    """
    The registry of all repositories, or of ``repository`` alone, at its own address.

    ``ping`` is the setting ``container.ping``. Handlers are given a request that ``routes`` has authorized.
    """

    services: Services
    addresses: ImageAddresses
    authorization: Authorization
    visibility: Visibility
    images: UpstreamImages
    members: MemberContent
    leases: UploadLeases
    ping: str
    repository: Repository | None = None


async def get_ping(context: RegistryContext, request: Request) -> Response:
    """That this is a registry. :raises Refusal: the challenge; :raises RepositoryInactive: it is switched off"""
    check_read(request, "this address is only read")
    identity = await context.authorization.authenticate(request)
    require_credentials(context, request)
    own = context.repository
    if own is not None and not own.active and await context.services.access.authorizer.knows(identity, own):
        raise RepositoryInactive(own.path)
    return ping_response()


def ping_response() -> Response:
    """The response that this is a registry, and its version."""
    return json_response({}, headers=(*VERSION, *NO_STORE))


def require_credentials(context: RegistryContext, request: Request, scope: str = "") -> None:
    """Check that there are credentials if the client must be asked for them. :raises Refusal: the challenge"""
    if request.header(b"authorization") is not None or request.method == b"HEAD" or context.ping == "open":
        return
    if context.ping == "auto" and (request.header(b"user-agent") or b"").startswith(TESTERS):
        return
    raise context.authorization.challenge(request, scope, "authentication required")


def check_read(request: Request, sentence: str) -> None:
    """Check that a request only reads. :raises Refusal: with the sentence"""
    if request.method not in (b"GET", b"HEAD"):
        raise Refusal(405, sentence, "UNSUPPORTED", headers=((b"Allow", b"GET, HEAD"),))
