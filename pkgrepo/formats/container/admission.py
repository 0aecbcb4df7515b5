"""
Who may do what to which image, and what is told to those who may not.

==========================  =============================  ===================================================
caller                      wants                          is told
==========================  =============================  ===================================================
nobody                      what needs somebody            401 with the challenge: clients come back with a token
nobody                      a repository that is not there 401 with the challenge, and that there is none or it needs
                            or not for everybody           credentials: names do not leak
somebody, right             but the token was issued for   401 ``insufficient_scope``: clients fetch another
                            less
somebody, without right     to read                        404, as if it were not there
somebody, without right     to change                      403 and the reason; no challenge, which would only
                                                           make clients try again
somebody, without any right whatever                       404, as if the repository were not there
==========================  =============================  ===================================================
"""

from __future__ import annotations

import hashlib

from attrs import frozen

from pkgrepo.auth.tokens.bearer import behind
from pkgrepo.errors import AuthenticationFailed, AuthenticationRequired, Forbidden, RepositoryInactive, TooManyAttempts
from pkgrepo.gateway.access import unknown
from pkgrepo.gateway.image_addresses import ImageAddress, ImageAddresses
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Refusal
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, Repository
from pkgrepo.storage.catalog.images.promises import ANYBODY

CATALOG_SCOPE = "registry:catalog:*"
TOKEN_PATH = "/api/auth/token"  # noqa: S105 - an address
CONTAINERD = b"containerd/"

_WORDS = {Action.READ: "pull", Action.WRITE: "pull,push", Action.DELETE: "delete"}


@frozen
class Target:
    """
    An image as a request addresses it: ``name`` below ``base``, and the scope under which tokens know it.

    ``base`` is ``/v2``, or the repository's own address with it.
    """

    repository: Repository
    image: str
    name: str
    base: str
    scope: str

    def url(self, rest: str) -> bytes:
        """An address below the image, without host: every client resolves it, and no proxy can break it."""
        return f"{self.base}/{self.name}/{rest}".encode("ascii")


class Admission:
    """The one way from a request to somebody who may."""

    def __init__(self, services: Services, addresses: ImageAddresses, service: str) -> None:
        self._services = services
        self._addresses = addresses
        self._service = service

    async def identify(self, request: Request, scope: str = "") -> Identity:
        """The caller. :raises Refusal: the credentials are wrong, or guessed at"""
        try:
            return await self._services.access.identify(request)
        except AuthenticationFailed as error:
            bearer = (request.header(b"authorization") or b"")[:7].lower() == b"bearer "
            raise self.challenge(request, scope, str(error), "invalid_token" if bearer else "") from None
        except TooManyAttempts as error:
            wait = b"%d" % error.retry_after_s
            raise Refusal(429, str(error), "TOOMANYREQUESTS", headers=((b"Retry-After", wait),)) from None

    def locate(self, request: Request, identity: Identity, name: str, action: Action) -> Target:
        """
        What a name of ``/v2/`` means.

        :raises Refusal: no repository is there
        """
        found = self._addresses.find(request.authority, name)
        if found is not None and self._hides(identity, found, action):
            # the caller gets what the name would mean if the repository were not there
            found = self._addresses.find_default(request.authority, name)
        if found is None:
            if identity.anonymous:
                raise self.challenge(request, scope_of(name, action), str(unknown(identity, name)))
            raise self._nothing(identity, name)
        return Target(found.repository, found.image, name, "/v2", name)

    def require(self, request: Request, identity: Identity, target: Target, action: Action) -> None:
        """
        Let the caller pass, or say why not, as the table says.

        :raises Refusal: not this caller; :raises RepositoryInactive: it is switched off
        """
        request.repository = target.repository.path
        access, repository, image = self._services.access, target.repository, target.image
        try:
            access.require(identity, action, repository, image)
        except AuthenticationRequired as error:
            known = access.knows(identity, repository)
            sentence = str(error if known else unknown(identity, target.name))
            raise self.challenge(request, scope_of(target.scope, action), sentence) from None
        except Forbidden as error:
            if not access.knows(identity, repository):
                raise self._nothing(identity, target.name) from None
            sentence = str(error)
            if identity.via == "bearer":
                sentence = self._refusal_of_owner(identity, action, repository, image)
            if not sentence:
                sentence = "the token was not issued for this"
                raise self.challenge(request, scope_of(target.scope, action), sentence, "insufficient_scope") from None
            if action is Action.READ:
                raise self._nothing(identity, target.name) from None
            raise Refusal(403, sentence, "DENIED") from None

    def _refusal_of_owner(self, identity: Identity, action: Action, repository: Repository, image: str) -> str:
        """Why the owner of a short-lived token may not do this with any; empty when another one would do."""
        try:
            self._services.access.require(self.unbound(identity), action, repository, image)
        except Forbidden as error:
            return str(error)
        except RepositoryInactive:
            pass
        return ""

    def _hides(self, identity: Identity, found: ImageAddress, action: Action) -> bool:
        """Whether somebody must not learn of a repository, with whatever token."""
        may = self._services.access.may
        if identity.anonymous:
            return False
        if action is not Action.READ:
            return not self._services.access.knows(identity, found.repository)
        if may(identity, Action.READ, found.repository, found.image):
            return False
        return identity.via != "bearer" or not may(self.unbound(identity), Action.READ, found.repository, found.image)

    def _nothing(self, identity: Identity, name: str) -> Refusal:
        """The refusal of a name; the same whether nothing is there or nothing for this caller."""

        def visible(repository: Repository) -> bool:
            return self._services.access.may(identity, Action.READ, repository)

        return Refusal(404, self._addresses.explain(name, visible), "NAME_UNKNOWN", detail={"name": name})

    def question(self, request: Request, target: Target) -> None:
        """
        Have containerd name itself when it asks whether a blob is there, which only those who push do.

        The layers of a push may all be there already. The manifest would then be the first to be answered 401, and
        containerd 1.6 may wait for ever after that, since it has to send a body again.

        :raises Refusal: the challenge; other clients, and whoever shows credentials, pass
        """
        if request.header(b"authorization") is None and (request.header(b"user-agent") or b"").startswith(CONTAINERD):
            raise self.challenge(request, scope_of(target.scope, Action.READ), str(AuthenticationRequired()))

    def unbound(self, identity: Identity) -> Identity:
        """See L{behind}."""
        return behind(self._services.catalog, identity)

    def may_push(self, identity: Identity, repository: Repository, image: str) -> bool:
        """Whether the caller may push to an image, with whatever token: clients also ask for one that only pulls."""
        caller = self.unbound(identity) if identity.via == "bearer" else identity
        return self._services.access.may(caller, Action.WRITE, repository, image)

    def pusher(self, request: Request, identity: Identity, target: Target) -> str | None:
        """The client that may push to an image next, as promises name it; None where the caller may not."""
        return client_of(request) if self.may_push(identity, target.repository, target.image) else None

    def challenge(self, request: Request, scope: str, sentence: str, error: str = "") -> Refusal:
        """
        The refusal that sends a client to the token service.

        The scope is its detail, too: without one docker leaves out a sentence that is the code's customary one.
        """
        parts = [f'realm="{self._services.base_url(request)}{TOKEN_PATH}"', f'service="{self._service}"']
        if scope:
            parts.append(f'scope="{scope}"')
        if error:
            parts.append(f'error="{error}"')
        value = f"Bearer {','.join(parts)}".encode("latin-1", "replace")
        detail = {"scope": scope} if scope else None
        return Refusal(401, sentence, "UNAUTHORIZED", detail=detail, headers=((b"WWW-Authenticate", value),))


def client_of(request: Request) -> str:
    """
    What tells one run of a client program from others: its bearer token, else its connection.

    Proxies share their connections among clients, and sockets of the Unix have no address.
    """
    value = request.header(b"authorization") or b""
    if value[:7].lower() == b"bearer ":
        return f"bearer {hashlib.sha256(value[7:].strip()).hexdigest()}"
    peer = request.client
    host, port = getattr(peer, "host", ""), getattr(peer, "port", "")
    return f"connection {host} {port}" if host and host == request.client_address else ANYBODY


def scope_of(name: str, action: Action) -> str:
    """The scope to ask for, as challenges name it."""
    return f"repository:{name}:{_WORDS[action]}"
