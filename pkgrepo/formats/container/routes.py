"""
The registry API: one address for all repositories, and each repository's own.

Klein has one route for all of it, since names of images have any number of segments; ``paths`` tells them apart.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from twisted.web.resource import IResource

from pkgrepo.errors import RepositoryInactive
from pkgrepo.formats.container.lists.requests import Lists
from pkgrepo.formats.container.manifests.pushing import Pushing
from pkgrepo.formats.container.manifests.requests import Manifests
from pkgrepo.formats.container.trust.keyring import Keyring
from pkgrepo.formats.container.trust.visibility import Trust
from pkgrepo.formats.container.uploads.mounting import Mounting
from pkgrepo.formats.container.uploads.requests import Uploads
from pkgrepo.gateway.image_addresses import ImageAddresses
from pkgrepo.gateway.klein_app import new_app
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.dispatch import answering, refuse_unrouted
from pkgrepo.http.answers import Answer, Refusal, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, Repository

from .admission import CATALOG_SCOPE, Admission, Target, scope_of
from .blobs import Blobs
from .names import parse_name
from .paths import Kind, Place, parse_path
from .refusals import ERRORS, VERSION
from .rules import PushGate

Handler = Callable[[Request, Target, Identity, str], Awaitable[Answer]]

READS = ("GET", "HEAD")

# What an address takes, and what one must be allowed to do for it.
ACTIONS: dict[Kind, dict[str, Action]] = {
    Kind.MANIFEST: {"GET": Action.READ, "HEAD": Action.READ, "PUT": Action.WRITE, "DELETE": Action.DELETE},
    Kind.BLOB: {"GET": Action.READ, "HEAD": Action.READ, "DELETE": Action.DELETE},
    Kind.UPLOADS: {"POST": Action.WRITE},
    Kind.UPLOAD: {"GET": Action.WRITE, "PATCH": Action.WRITE, "PUT": Action.WRITE, "DELETE": Action.WRITE},
    Kind.TAGS: {"GET": Action.READ, "HEAD": Action.READ},
    Kind.REFERRERS: {"GET": Action.READ, "HEAD": Action.READ},
}

# Programs by which people look whether something answers; registry clients must be asked for credentials at once,
# for they send none later otherwise (docker 28, skopeo 1.9).
PROBES = (b"curl/", b"Wget/", b"HTTPie", b"python-requests", b"Mozilla/")

app = new_app()


class RegistrySite:
    """
    The registry API as a Klein application.

    With ``repository`` it serves that one alone, at its own address, where names are those of its images. ``ping`` is
    the setting ``container.ping``; ``token`` serves ``/v2/token``.
    """

    app = app

    def __init__(
        self,
        services: Services,
        addresses: ImageAddresses,
        *,
        service: str,
        ping: str,
        keyring: Keyring,
        repository: Repository | None = None,
        token: IResource | None = None,
    ) -> None:
        self._services = services
        self._repository = repository
        self._ping = ping
        self._token = token
        self._admission = Admission(services, addresses, service)
        self._gate = PushGate(services, self._admission)
        trust = Trust(services, self._admission, keyring)
        self._lists = Lists(services, addresses, self._admission, trust)
        manifests, pushing, blobs = (
            Manifests(services, self._admission, trust),
            Pushing(services, trust, self._gate),
            Blobs(services, self._admission),
        )
        uploads = Uploads(services, Mounting(services, addresses), self._gate)
        self._handlers: dict[tuple[Kind, str], Handler] = {
            (Kind.MANIFEST, "GET"): manifests.get,
            (Kind.MANIFEST, "HEAD"): manifests.get,
            (Kind.MANIFEST, "PUT"): pushing.put,
            (Kind.MANIFEST, "DELETE"): manifests.delete,
            (Kind.BLOB, "GET"): blobs.get,
            (Kind.BLOB, "HEAD"): blobs.get,
            (Kind.BLOB, "DELETE"): blobs.delete,
            (Kind.UPLOADS, "POST"): uploads.start,
            (Kind.UPLOAD, "GET"): uploads.status,
            (Kind.UPLOAD, "PATCH"): uploads.append,
            (Kind.UPLOAD, "PUT"): uploads.finish,
            (Kind.UPLOAD, "DELETE"): uploads.cancel,
            (Kind.TAGS, "GET"): self._lists.tags,
            (Kind.TAGS, "HEAD"): self._lists.tags,
            (Kind.REFERRERS, "GET"): self._lists.referrers,
            (Kind.REFERRERS, "HEAD"): self._lists.referrers,
        }

    def resource(self) -> IResource:
        """The application's resource."""
        resource: IResource = self.app.resource()
        return resource

    @app.route("/token", branch=True)
    def token(self, request: Request) -> Any:
        """The token service, at the address of older clients."""
        return self._token if self._token is not None else self.everything(request)

    @app.route("/", branch=True)
    @answering(ERRORS)
    async def everything(self, request: Request) -> Answer:
        """Whatever is asked of the registry."""
        base = self._base(request)
        rest = request.raw_path[len(base) :]
        if rest in (b"", b"/"):
            return await self._version(request)
        if rest == b"/_catalog" and self._repository is None:
            return await self._catalog(request)
        place = parse_path(rest)
        if place is None:
            raise Refusal(404, "there is nothing at this address", "NAME_UNKNOWN")
        parse_name(place.name)
        method = request.method.decode("latin-1")
        action = ACTIONS[place.kind].get(method)
        if action is None:
            allowed = ", ".join(sorted(ACTIONS[place.kind])).encode("ascii")
            sentence = f"this address does not take {method}"
            raise Refusal(405, sentence, "UNSUPPORTED", headers=((b"Allow", allowed),))
        identity, target = await self._admit(request, place, action, base.decode("ascii"))
        if action is Action.WRITE:
            self._gate.check(identity, target)
        elif (place.kind, method) == (Kind.BLOB, "HEAD"):
            self._admission.question(request, target)
        return await self._handlers[place.kind, method](request, target, identity, place.rest)

    async def _admit(self, request: Request, place: Place, action: Action, base: str) -> tuple[Identity, Target]:
        own = self._repository
        scope = place.name if own is None else f"{own.path}/{place.name}"
        identity = await self._admission.identify(request, scope_of(scope, action))
        if own is None:
            target = self._admission.locate(request, identity, place.name, action)
        else:
            target = Target(own, place.name, place.name, base, scope)
        self._admission.require(request, identity, target, action)
        return identity, target

    def _base(self, request: Request) -> bytes:
        """What stands before the names of images in the path."""
        if self._repository is None:
            return b"/v2"
        segments = request.raw_path.split(b"/", 5)
        if len(segments) < 5 or segments[4] != b"v2":
            path = self._repository.path
            raise Refusal(404, f"{path} is a container repository: images are at /v2/{path}/IMAGE", "NAME_UNKNOWN")
        return b"/".join(segments[:5])

    async def _version(self, request: Request) -> Answer:
        if request.method.decode("latin-1") not in READS:
            raise Refusal(405, "this address is only read", "UNSUPPORTED", headers=((b"Allow", b"GET, HEAD"),))
        identity = await self._admission.identify(request)
        if request.header(b"authorization") is None and not self._lets_anybody_ping(request):
            raise self._admission.challenge(request, "", "authentication required")
        own = self._repository
        if own is not None and not own.active and self._services.access.knows(identity, own):
            raise RepositoryInactive(own.path)
        return version_answer()

    def _lets_anybody_ping(self, request: Request) -> bool:
        if request.method == b"HEAD" or self._ping == "open":
            return True
        return self._ping == "auto" and (request.header(b"user-agent") or b"").startswith(PROBES)

    async def _catalog(self, request: Request) -> Answer:
        if request.method.decode("latin-1") not in READS:
            raise Refusal(405, "this list is only read", "UNSUPPORTED", headers=((b"Allow", b"GET, HEAD"),))
        identity = await self._admission.identify(request, CATALOG_SCOPE)
        if request.header(b"authorization") is None and not self._lets_anybody_ping(request):
            raise self._admission.challenge(request, CATALOG_SCOPE, "authentication required")
        if identity.scoped is False:
            sentence = "the token was not issued for this"
            raise self._admission.challenge(request, CATALOG_SCOPE, sentence, "insufficient_scope")
        return await self._lists.catalog(request, identity)


def version_answer() -> Answer:
    """The answer that this is a registry, and of which version."""
    return json_answer({}, headers=(*VERSION, (b"Cache-Control", b"no-store")))


refuse_unrouted(app, ERRORS)
