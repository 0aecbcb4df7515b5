"""Who asks, and whether they may."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.auth.login.credentials import is_blank
from pkgrepo.errors import AuthenticationRequired, Forbidden, NotFound, PkgrepoError, RepositoryInactive
from pkgrepo.http.answers import Refusal
from pkgrepo.http.request import Request
from pkgrepo.interfaces import IAuthenticator, IAuthorizer
from pkgrepo.model import ANONYMOUS, Action, Actor, Identity, Repository

SAFE_METHODS = (b"GET", b"HEAD")


class Access:
    """
    The one way from a request to an identity, and from an identity to leave.

    ``public_url`` is the server's address where it may differ from what requests say.
    """

    def __init__(self, authenticator: IAuthenticator, authorizer: IAuthorizer, public_url: str = "") -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._public_url = public_url

    def recall(self, request: Request) -> Identity | None:
        """The caller, when that is known without waiting."""
        header = request.header(b"authorization")
        if header is None:
            return ANONYMOUS
        identity: Identity | None = self._authenticator.recall(header)
        return identity

    def check_origin(self, request: Request) -> None:
        """
        Keep pages of other sites from sending what changes something.

        Credentials may be what a browser remembers, or in a form. Bodies are read whatever their declared type, so the
        type protects from nothing; browsers name the page's origin in every request that changes something (Fetch
        standard, section 3.2).

        :raises Refusal: the page is of another site than the server's
        """
        origin = request.header(b"origin")
        if origin is None or request.method in SAFE_METHODS:
            return
        ours = {"/".join(url.split("/")[:3]) for url in (self._public_url, request.base_url) if url}
        if origin.decode("latin-1") not in ours:
            raise Refusal(403, "a page of another site must not change anything here", "cross_site")

    async def identify(self, request: Request, *, blank: bool = False, counted: bool = True) -> Identity:
        """
        The caller; with ``blank`` nobody stands behind a Basic header with an empty name and password.

        It is ``counted`` as a use of a token, unless the request is asked about again.

        :raises AuthenticationFailed, TooManyAttempts: the credentials are wrong, or guessed at
        :raises Refusal: a page of another site uses what a browser remembers
        """
        header = request.header(b"authorization")
        if header is None or (blank and is_blank(header)):
            return ANONYMOUS
        self.check_origin(request)
        client = (request.header(b"user-agent") or b"").decode("latin-1")
        address = request.client_address
        identity: Identity = await self._authenticator.authenticate(header, address, client, counted=counted)
        request.principal = identity.username
        return identity

    def may_now(
        self, identity: Identity, action: Action, repository: Repository, package: str | None = None
    ) -> bool | None:
        """The answer of ``may`` if it is known without waiting, else None."""
        allowed: bool | None = self._authorizer.may_now(identity, action, repository, package)
        return allowed

    async def may(self, identity: Identity, action: Action, repository: Repository, package: str | None = None) -> bool:
        """Whether the caller may do this; see L{IAuthorizer}."""
        allowed: bool = await self._authorizer.may(identity, action, repository, package)
        return allowed

    async def may_each(
        self, identity: Identity, questions: Sequence[tuple[Action, Repository, str | None]]
    ) -> list[bool]:
        """The answers of ``may`` to many questions, in their order; see L{IAuthorizer}."""
        allowed: list[bool] = await self._authorizer.may_each(identity, questions)
        return allowed

    async def allowed(
        self, identity: Identity, action: Action, repository: Repository, packages: Sequence[str]
    ) -> list[str]:
        """Those of the packages with which the caller may do this."""
        may = await self.may_each(identity, [(action, repository, package) for package in packages])
        return [package for package, allowed in zip(packages, may, strict=True) if allowed]

    def knows_now(self, identity: Identity, repository: Repository) -> bool | None:
        """The answer of ``knows`` if it is known without waiting, else None."""
        known: bool | None = self._authorizer.knows_now(identity, repository)
        return known

    async def knows(self, identity: Identity, repository: Repository) -> bool:
        """Whether the caller may know of the repository; see L{IAuthorizer}."""
        known: bool = await self._authorizer.knows(identity, repository)
        return known

    async def require(
        self, identity: Identity, action: Action, repository: Repository, package: str | None = None
    ) -> None:
        """
        Let the caller pass, or say why not.

        :raises RepositoryInactive: it is switched off
        :raises AuthenticationRequired: an anonymous caller might do better with credentials
        :raises Forbidden: the caller is known; the sentence says which rule decided
        """
        if not await self.may(identity, action, repository, package):
            if identity.anonymous:
                raise AuthenticationRequired
            raise Forbidden(await self._authorizer.explain(identity, action, repository, package))
        if not repository.active:
            raise RepositoryInactive(repository.path)

    async def require_member(self, identity: Identity, repository: Repository, package: str) -> None:
        """
        Let a member of the project that owns a package pass; see L{IAuthorizer.check_project_member}.

        :raises Forbidden: naming the project
        """
        await self._authorizer.check_project_member(identity, repository, package)

    async def admit(
        self, request: Request, action: Action, repository: Repository, package: str | None = None
    ) -> Identity:
        """The caller, once it is clear that they may do this."""
        request.repository = repository.path
        identity = await self.identify(request)
        await self.require(identity, action, repository, package)
        return identity


def actor_of(request: Request, identity: Identity) -> Actor:
    """Who did it, for events and the audit."""
    return Actor.of(identity, address=request.client_address, request_id=request.request_id)


def unknown(identity: Identity, repository: str) -> PkgrepoError:
    """The error for a repository that does not exist, or not for this caller, who wrote it so."""
    if identity.anonymous:
        return AuthenticationRequired(f"there is no repository {repository} here, or it needs credentials")
    return NotFound("repository", repository)
