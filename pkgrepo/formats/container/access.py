"""
Authorization of requests for an image: who the caller is, which image a name means, and whether the caller may.

=============================  =========================  =====================================================
caller                         asks for                   gets
=============================  =========================  =====================================================
anonymous                      what needs credentials     401 with the challenge: clients repeat with a token
anonymous                      a repository that is       401 with the challenge, and the sentence that it does
                               absent or not public       not exist or needs credentials: names do not leak
authenticated, permitted,      anything                   401 ``insufficient_scope``: clients fetch another token
with a token of narrower
scope
authenticated, not permitted   to read                    404, as if the image did not exist
authenticated, not permitted   to change                  403 and the reason; no challenge, since clients would
                                                          only try again
authenticated, without any     anything                   404, as if the repository did not exist
permission in the repository
=============================  =========================  =====================================================

Push rules are checked before the body of a request and again after it. Refusals by them are 403 with a sentence, which
clients print: after 400 some clients try other formats, after 401 other credentials.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TypeVar

from attrs import evolve

from pkgrepo.auth.tokens.bearer import unbound
from pkgrepo.errors import AuthenticationFailed, AuthenticationRequired, Forbidden, NotFound, RepositoryInactive
from pkgrepo.formats.container.configuration import policy
from pkgrepo.formats.container.target import Target, client_of
from pkgrepo.gateway.callers.access import actor_of, unknown
from pkgrepo.gateway.image_addresses import ImageAddress, ImageAddresses
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal
from pkgrepo.model import Action, Identity, Repository
from pkgrepo.model.admission import Admitted

CATALOG_SCOPE = "registry:catalog:*"
TOKEN_PATH = "/api/auth/token"  # noqa: S105 - an address
CONTAINERD = b"containerd/"

_WORDS = {Action.READ: "pull", Action.WRITE: "pull,push", Action.DELETE: "delete"}


T = TypeVar("T")


class Authorization:
    """Authenticates callers, resolves names of images and checks permissions."""

    def __init__(self, services: Services, addresses: ImageAddresses, service: str) -> None:
        self._services = services
        self._addresses = addresses
        self._service = service

    async def authenticate(self, request: Request, scope: str = "") -> Identity:
        """The caller. :raises Refusal: the credentials are wrong; :raises TooManyAttempts: too often so recently"""
        try:
            return await self._services.access.identify(request)
        except AuthenticationFailed as error:
            bearer = (request.header(b"authorization") or b"")[:7].lower() == b"bearer "
            raise self.challenge(request, scope, str(error), "invalid_token" if bearer else "") from None

    async def resolve(
        self, request: Request, identity: Identity, name: str, action: Action, source: str = ""
    ) -> Target:
        """
        The image that a name below ``/v2/`` means; ``source`` is that of L{Target}.

        :raises Refusal: the name belongs to no repository that the caller may see
        """
        await self._services.registry.refresh()
        found = self._addresses.find(request.asked_host, name)
        if found is not None and await self._is_hidden(identity, found, action):
            # the caller gets what the name would mean if the repository did not exist
            found = self._addresses.find_default(request.asked_host, name)
        if found is None:
            if identity.anonymous:
                raise self.challenge(request, scope_of(name, action, source), str(unknown(identity, name)))
            raise await self._not_found(identity, name)
        return Target(found.repository, found.image, name, "/v2", name, source=source)

    async def require(self, request: Request, identity: Identity, target: Target, action: Action) -> Admitted | None:
        """
        Check that the caller may do this to the image. Returns the proof that they may write there now.

        :raises Refusal: as in the table above; :raises RepositoryInactive: the repository is switched off
        """
        if action is Action.WRITE:
            actor = actor_of(request, identity)
            proof = self._services.access.publishing(identity, target.repository, target.image, actor)
            return await self._answered(request, identity, target, action, proof)
        question = self._services.access.require(identity, action, target.repository, target.image)
        return await self._answered(request, identity, target, action, question)

    async def _answered(
        self, request: Request, identity: Identity, target: Target, action: Action, question: Awaitable[T]
    ) -> T:
        """The result of a question whether the caller may do this, with the refusals of registries."""
        request.repository = target.repository.path
        access, repository, image = self._services.access, target.repository, target.image
        scope = scope_of(target.scope, action, target.source)
        try:
            return await question
        except AuthenticationRequired as error:
            known = await access.authorizer.knows(identity, repository)
            sentence = str(error if known else unknown(identity, target.name))
            raise self.challenge(request, scope, sentence) from None
        except NotFound:
            raise await self._not_found(identity, target.name) from None
        except Forbidden as error:
            if not await access.authorizer.knows(identity, repository):
                raise await self._not_found(identity, target.name) from None
            sentence = str(error)
            if identity.via == "bearer":
                sentence = await self._owner_refusal(identity, action, repository, image)
            if not sentence:
                sentence = "the token was not issued for this"
                raise self.challenge(request, scope, sentence, "insufficient_scope") from None
            if action is Action.READ:
                raise await self._not_found(identity, target.name) from None
            raise Refusal(403, sentence, "DENIED") from None

    async def require_again(self, request: Request, identity: Identity, target: Target) -> Admitted:
        """
        Check permissions and push rules again after a body has come, which may have taken hours. Returns the proof.

        Expiry of the credentials is ignored: a bearer token is valid for minutes, and clients cannot send a body a
        second time.

        :raises Refusal: the caller may not write any more; :raises RepositoryInactive: it was switched off
        """
        if identity.limits is not None:
            identity = evolve(identity, limits=evolve(identity.limits, expires_at=None))
        admitted = await self.require(request, identity, target, Action.WRITE)
        assert admitted is not None
        return admitted

    async def _owner_refusal(self, identity: Identity, action: Action, repository: Repository, image: str) -> str:
        """Why the owner of a bearer token may not do this with any token; empty if another token would do."""
        try:
            await self._services.access.require(await self.token_owner(identity), action, repository, image)
        except Forbidden as error:
            return str(error)
        except RepositoryInactive:
            pass
        return ""

    async def _is_hidden(self, identity: Identity, found: ImageAddress, action: Action) -> bool:
        """Whether the caller must not learn that a repository exists, whatever token they use."""
        may = self._services.access.authorizer.may
        if identity.anonymous:
            return False
        if action is not Action.READ:
            return not await self._services.access.authorizer.knows(identity, found.repository)
        if await may(identity, Action.READ, found.repository, found.image):
            return False
        if identity.via != "bearer":
            return True
        return not await may(await self.token_owner(identity), Action.READ, found.repository, found.image)

    async def _not_found(self, identity: Identity, name: str) -> Refusal:
        """The refusal of a name: the same whether the image does not exist or the caller may not see it."""
        asked = self._addresses.explained_by(name)
        may = await self._services.access.authorizer.may_each(identity, [(Action.READ, each, None) for each in asked])
        visible = {each.id for each, readable in zip(asked, may, strict=True) if readable}
        return Refusal(404, self._addresses.explain(name, visible), "NAME_UNKNOWN", detail={"name": name})

    def challenge_containerd(self, request: Request, target: Target) -> None:
        """
        Ask containerd for credentials when it asks whether a blob exists, which it does before a push only.

        If all layers of a push exist, the manifest would be the first request to get a 401, and containerd 1.6 may
        hang after that, since it has to send a body again.

        :raises Refusal: the challenge; other clients and requests with credentials pass
        """
        if request.header(b"authorization") is None and (request.header(b"user-agent") or b"").startswith(CONTAINERD):
            raise self.challenge(request, scope_of(target.scope, Action.READ), str(AuthenticationRequired()))

    async def token_owner(self, identity: Identity) -> Identity:
        """The caller without the scope of a bearer token; see L{unbound}."""
        return await unbound(self._services.catalog, identity)

    async def may_push(self, identity: Identity, repository: Repository, image: str) -> bool:
        """Whether the caller may push to an image with any token; this request may carry one that may only pull."""
        return bool(await self.filter_pushable(identity, repository, [image]))

    async def filter_pushable(self, identity: Identity, repository: Repository, images: Sequence[str]) -> list[str]:
        """The images, of those given, to which the caller may push with any token."""
        caller = await self.token_owner(identity) if identity.via == "bearer" else identity
        return await self._services.access.allowed(caller, Action.WRITE, repository, images)

    async def pushing_client(self, request: Request, identity: Identity, target: Target) -> str | None:
        """The id of the client for leases (see L{client_of}); None if the caller may not push to the image."""
        return client_of(request) if await self.may_push(identity, target.repository, target.image) else None

    def challenge(self, request: Request, scope: str, sentence: str, error: str = "") -> Refusal:
        """
        The refusal that sends a client to the token service.

        Its detail is the scope: without a detail docker does not print a sentence that is the usual one of the code.
        """
        parts = [f'realm="{self._services.base_url(request)}{TOKEN_PATH}"', f'service="{self._service}"']
        if scope:
            parts.append(f'scope="{scope}"')
        if error:
            parts.append(f'error="{error}"')
        value = f"Bearer {','.join(parts)}".encode("latin-1", "replace")
        detail = {"scope": scope} if scope else None
        return Refusal(401, sentence, "UNAUTHORIZED", detail=detail, headers=((b"WWW-Authenticate", value),))


def scope_of(name: str, action: Action, source: str = "") -> str:
    """
    The scope of a token for an action on an image, as challenges spell it.

    With ``source`` a second scope follows, to pull that image: a mount needs both.
    """
    own = f"repository:{name}:{_WORDS[action]}"
    return f"{own} {scope_of(source, Action.READ)}" if source else own


def check_deletion(repository: Repository) -> None:
    """Check that content may be deleted. :raises Refusal: the policy forbids it"""
    if not policy(repository).allow_delete:
        raise Refusal(405, "nothing is deleted in this repository (allow_delete)", "UNSUPPORTED")
