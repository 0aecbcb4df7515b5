"""Identification of the caller, and checks of their permissions."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.auth.login.credentials import is_blank, proxied_header, session_header
from pkgrepo.auth.login.sessions import is_csrf
from pkgrepo.auth.permissions import admission
from pkgrepo.errors import (
    AuthenticationFailed,
    AuthenticationRequired,
    NotFound,
    PkgrepoError,
    RepositoryInactive,
)
from pkgrepo.gateway.callers.browsers import SAFE_METHODS, session_secret
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import IAuthenticator, IAuthorizer, ICatalog
from pkgrepo.model import ANONYMOUS, Action, Actor, Extent, Identity, Repository, User, Visibility
from pkgrepo.model.admission import Admitted
from pkgrepo.proxy.virtual import check_publishes
from pkgrepo.repositories.format import Tree

CHANGES = frozenset({Action.WRITE, Action.OVERWRITE, Action.DELETE})  # of what a repository contains


class Access:
    """
    Identifies callers and checks their permissions.

    ``public_url`` is the server's address if it may differ from what requests say. ``proxy_header`` is the field, in
    lower case, in which trusted proxies name the user whom they have authenticated; empty: there is none. Credentials
    in an Authorization field, and sessions, come first.
    """

    def __init__(
        self,
        authenticator: IAuthenticator,
        authorizer: IAuthorizer,
        public_url: str = "",
        *,
        proxy_header: bytes = b"",
    ) -> None:
        self._proxy_header = proxy_header
        self._authenticator = authenticator
        self.authorizer = authorizer
        self._public_url = public_url

    def recall(self, request: Request) -> Identity | None:
        """The caller, if known without waiting."""
        header = request.header(b"authorization")
        if header is None:
            secret = session_secret(request)
            header = self._proxied(request) if secret is None else session_header(secret)
            if header is None:
                return ANONYMOUS
        identity: Identity | None = self._authenticator.recall(header)
        return identity

    def has_credentials(self, request: Request) -> bool:
        """Whether a request has credentials of any kind, right or wrong."""
        return (
            request.header(b"authorization") is not None
            or session_secret(request) is not None
            or self._proxied(request) is not None
        )

    def _proxied(self, request: Request) -> bytes | None:
        """The name that a trusted proxy has sent, as a header for the authenticator, or None."""
        if not self._proxy_header:
            return None
        name = request.header(self._proxy_header)
        peer = getattr(request.client, "host", "")
        return proxied_header(name) if name and request.site.trusted_proxies.trusts(peer) else None

    def count_use(self, identity: Identity) -> None:
        """Count a further use of the token behind a recalled identity, if there is one."""
        self._authenticator.count_use(identity)

    def check_origin(self, request: Request) -> None:
        """
        Refuse requests by which a page of another site would change something (CSRF).

        Credentials may be ones that a browser stores, or in a form. Bodies are read whatever their declared type, so
        the type is no protection. Browsers send the page's origin with every request that changes something (Fetch
        standard, section 3.2).

        :raises Refusal: the page is of another site
        """
        origin = request.header(b"origin")
        if origin is None or request.method in SAFE_METHODS:
            return
        ours = {"/".join(url.split("/")[:3]) for url in (self._public_url, request.base_url) if url}
        if origin.decode("latin-1") not in ours:
            raise Refusal(403, "a page of another site must not change anything here", "cross_site")

    async def identify(self, request: Request, *, blank: bool = False, counted: bool = True) -> Identity:
        """
        The caller; with ``blank`` a Basic header with an empty name and password is anonymous.

        With ``counted`` it counts as a use of the token; a request counts once. The session of a browser counts for
        reads, and for changes that repeat its CSRF value in the field ``X-CSRF``, or in a form that the console has
        read (``Request.csrf``).

        :raises AuthenticationFailed, TooManyAttempts: the credentials are wrong, or guessed at
        :raises Refusal: a page of another site uses credentials that a browser stores
        """
        header = request.header(b"authorization")
        if header is None:
            return await self._identify_browser(request)
        if blank and is_blank(header):
            return ANONYMOUS
        self.check_origin(request)
        if request.identified is not None:
            known: Identity = request.identified
            return known
        client = (request.header(b"user-agent") or b"").decode("latin-1")
        address, code = request.client_address, code_of(request)
        identity: Identity = await self._authenticator.authenticate(
            header, address, client, counted=counted, code=code, road=road_of(request)
        )
        request.principal = identity.username
        if code:
            request.identified = identity  # the code counts once, and a request may be identified in several places
        return identity

    async def _identify_browser(self, request: Request) -> Identity:
        secret = session_secret(request)
        if secret is None:
            proxied = self._proxied(request)
            return ANONYMOUS if proxied is None else await self._identify_proxied(request, proxied)
        if request.method not in SAFE_METHODS:
            self.check_origin(request)
            if not is_csrf(secret, request.csrf or (request.header(b"x-csrf") or b"").decode("latin-1")):
                return ANONYMOUS
        return await self.session_identity(request, secret)

    async def _identify_proxied(self, request: Request, header: bytes) -> Identity:
        self.check_origin(request)  # a browser sends such requests for any page, as the proxy lets them pass
        identity: Identity = await self._authenticator.authenticate(header, request.client_address)
        request.principal = identity.username
        return identity

    async def session_identity(self, request: Request, secret: bytes) -> Identity:
        """The user of a browser session; anonymous if it has ended."""
        try:
            identity: Identity = await self._authenticator.authenticate(session_header(secret), request.client_address)
        except AuthenticationFailed:
            return ANONYMOUS
        request.principal = identity.username
        return identity

    async def allowed(
        self, identity: Identity, action: Action, repository: Repository, packages: Sequence[str]
    ) -> list[str]:
        """The packages, of some, with which the caller may do this."""
        may = await self.authorizer.may_each(identity, [(action, repository, package) for package in packages])
        return [package for package, allowed in zip(packages, may, strict=True) if allowed]

    async def may_list(self, identity: Identity, repository: Repository) -> bool:
        """Whether lists of the server show the caller what is in a repository, as far as the caller may read it."""
        return repository.visibility is not Visibility.HIDDEN or await self.authorizer.may(
            identity, Action.EDIT, repository
        )

    async def require(
        self, identity: Identity, action: Action, repository: Repository, package: str | Extent | None = None
    ) -> None:
        """
        Check that a client's request may do this. Nothing is published to, or changed in, a proxy repository.

        :raises ReadOnly: the repository takes no packages from clients; otherwise as in L{require_permission}
        :raises Forbidden: also if a push rule forbids the change; see L{IAuthorizer.check_push_rules}
        """
        await self.require_permission(identity, action, repository, package)
        if action in CHANGES:
            check_publishes(repository)
            named = package if isinstance(package, str) else None
            await self.authorizer.check_push_rules(identity, action, repository, named)

    async def require_permission(
        self, identity: Identity, action: Action, repository: Repository, package: str | Extent | None = None
    ) -> None:
        """
        Check that the caller may do this, whatever the type of the repository.

        :raises RepositoryInactive: it is switched off
        :raises AuthenticationRequired: the caller is anonymous; credentials may help
        :raises Forbidden: the caller is known; the sentence says which rule decided
        """
        await admission.require_permission(self.authorizer, identity, action, repository, package)
        _check_active(repository)

    async def admit(
        self, request: Request, action: Action, repository: Repository, package: str | Extent | None = None
    ) -> Identity:
        """The caller, after L{require}."""
        request.repository = repository.path
        identity = await self.identify(request)
        await self.require(identity, action, repository, package)
        return identity

    async def publishing(
        self,
        identity: Identity,
        repository: Repository,
        package: str,
        actor: Actor,
        *,
        action: Action = Action.WRITE,
        folder: str | None = None,
        paths: Sequence[str] = (),
    ) -> Admitted:
        """
        The proof, for write commands, that a client's request may make something of a package visible.

        See L{pkgrepo.auth.permissions.admission.admit}; errors are those of L{require}.
        """
        return await admission.admit(
            self.authorizer,
            identity,
            repository,
            package,
            actor,
            check_open=_check_open,
            action=action,
            folder=folder,
            paths=paths,
        )

    async def admit_known(self, request: Request, repository: Repository) -> Identity:
        """
        The caller, who may read the repository or do anything with a package in it, as with a token for one package.

        For what says nothing of other packages; errors are those of L{require_permission} for reading.
        """
        request.repository = repository.path
        identity = await self.identify(request)
        if identity.anonymous or not repository.active or not await self.authorizer.knows(identity, repository):
            await self.require_permission(identity, Action.READ, repository)
        return identity


def road_of(request: Request) -> str:
    """The method and the path of a request, without its query."""
    return (b"%s %s" % (request.method, request.raw_path)).decode("latin-1")


def _check_active(repository: Repository) -> None:
    if not repository.active:
        raise RepositoryInactive(repository.path)


def _check_open(repository: Repository) -> None:
    """Check that clients may change what a repository contains. :raises RepositoryInactive, ReadOnly: they may not"""
    _check_active(repository)
    check_publishes(repository)


async def require_plain_removal(
    access: Access, catalog: ICatalog, tree: Tree | None, identity: Identity, repository: Repository, path: str
) -> None:
    """
    Check that a caller may remove a plain file, also one that a proxy keeps.

    It belongs to the package in whose folder it lies, of the repository and of the one that it is staged for; elsewhere
    the owner of the folder decides.

    :raises AuthenticationRequired, Forbidden, RepositoryInactive: the caller may not
    """
    ids = () if tree is None else {repository.id, repository.authority.id}
    found = [None if tree is None else await catalog.look(tree.package_of, each, path) for each in ids]
    owners = {each for each in found if each is not None}
    for package in sorted(owners):
        await access.require_permission(identity, Action.DELETE, repository, package)
        await access.authorizer.check_push_rules(identity, Action.DELETE, repository, package)
    if owners:
        return
    name, folder = path.replace("/", "."), f"{path.rpartition('/')[0]}/"
    await access.require_permission(identity, Action.DELETE, repository, name)
    await access.authorizer.check_push_rules(identity, Action.DELETE, repository, name, folder=folder)


def actor_of(request: Request, identity: Identity) -> Actor:
    """The caller as an actor in events and the audit log."""
    return Actor.of(identity, address=request.client_address, request_id=request.request_id)


def code_of(request: Request) -> str:
    """The code of a second factor that a request has, in the field of npm or of gem; empty without one."""
    return (request.header(b"npm-otp") or request.header(b"otp") or b"").decode("latin-1").strip()


def unknown(identity: Identity, repository: str) -> PkgrepoError:
    """The error for a repository that does not exist or that this caller may not know of; it repeats their spelling."""
    if identity.anonymous:
        return AuthenticationRequired(f"there is no repository {repository} here, or it needs credentials")
    return NotFound("repository", repository)


def may_see_email(identity: Identity, user: User) -> bool:
    """Whether a caller may see the email of a user: their own, or any if they manage users and used no token."""
    return identity.user_id == user.id or (identity.limits is None and (identity.admin or identity.user_manager))
