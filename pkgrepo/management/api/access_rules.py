"""Rules which callers a route admits, checked before the body is read; and what was decided for a page's caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal

from attrs import evolve, frozen

from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.auth.permissions.format_rights import has_images
from pkgrepo.auth.tokens.bearer import unbound
from pkgrepo.auth.tokens.limits import SERVER_SCOPES
from pkgrepo.errors import AuthenticationRequired, Forbidden, RepositoryInactive
from pkgrepo.gateway.callers.access import unknown
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Action, Extent, Identity, Repository
from pkgrepo.repositories.registry import Registry

from .names import find_repository

Scope = Literal["", "api", "users", "system", "metrics", "audit"]
May = Callable[[Action, Repository, str | Extent | None], Awaitable[bool]]  # whether a caller may do this

SCOPED = (
    "this bearer token was asked for with a scope: of the management API it opens garbage collection and statistics "
    "of container repositories, and nothing else"
)

_HOLDERS = {
    "users": "user managers",
    "system": "system managers",
    "metrics": "system managers",
    "audit": "admins",
}


@frozen
class AccessRule:
    """
    The condition under which a route admits a caller; ``label`` is the required permission in the OpenAPI document.

    ``action``: the route is about a repository, and the caller needs this action there. ``scope``: the route is about a
    part of the server (``api``: the caller's own account). With neither, the route admits everybody. ``content``: the
    route is about the content of a repository, and is refused while the repository is inactive. ``extra_scope``: a
    server scope that a token needs here in addition. ``or_scope``: one that opens the route as ``scope`` does.
    ``some``: who has the action for some packages of the repository is admitted, and the handler shows no others.

    A bearer token that was requested with a scope opens only routes that are ``public`` (their answer is the same for
    everybody) and, in container repositories, ``container_scoped`` ones.
    """

    label: str
    scope: Scope = ""
    action: Action | None = None
    content: bool = False
    public: bool = False
    container_scoped: bool = False
    extra_scope: str = ""
    or_scope: str = ""
    some: bool = False

    async def effective_identity(self, identity: Identity, catalog: ICatalog) -> Identity:
        """
        The identity that the route uses: of a bearer token, that of the credentials that it was issued for.

        :raises Forbidden: the bearer token was requested with a scope, and does not open this route
        """
        if identity.scoped is None or (identity.scoped and self.public):
            return identity
        if identity.scoped and not self.container_scoped:
            raise Forbidden(SCOPED)
        return await unbound(catalog, identity)

    async def check(
        self,
        identity: Identity,
        method: str,
        authorizer: Authorizer,
        *,
        repository: Repository | None = None,
        package: str | None = None,
        asked: str = "",
        may: May | None = None,
    ) -> None:
        """
        Raise an error unless the caller may use the route.

        ``package`` is the key of the package that the route is about. ``asked`` is the repository's name as the caller
        wrote it: an error message must not reveal another spelling or the id. Who may read some packages of the
        repository may know of it. ``may`` answers questions about actions; without it, the authorizer does.

        :raises AuthenticationRequired: the caller is anonymous; :raises Forbidden: the caller lacks the permission
        :raises NotFound: the caller may not know that the repository exists
        :raises RepositoryInactive: it is switched off
        """
        if self.extra_scope and not identity.anonymous and not await authorizer.may_use(identity, self.extra_scope):
            raise Forbidden(f"this token lacks the scope {self.extra_scope!r}")
        if self.action is not None:
            if repository is None:
                raise unknown(identity, asked)
            may = may or partial(authorizer.may, identity)
            known = Action.READ, repository, Extent.SOME if package is None else package
            if not await may(*known):
                raise unknown(identity, asked)
            if identity.scoped and not has_images(repository):
                raise Forbidden(SCOPED)
            needed = self.action, repository, known[2] if self.some else package
            if needed != known and not await may(*needed):
                if identity.anonymous:
                    raise AuthenticationRequired
                raise Forbidden(await authorizer.explain(identity, *needed))
            await self._check_content(identity, self.action, authorizer, repository, package)
        elif self.scope:
            await self._check_scope(identity, method, authorizer)

    async def _check_scope(self, identity: Identity, method: str, authorizer: Authorizer) -> None:
        if identity.anonymous:
            raise AuthenticationRequired
        scope = f"api:{'read' if method == 'GET' else 'write'}" if self.scope == "api" else self.scope
        if await authorizer.may_use(identity, scope):
            return
        if self.or_scope and await authorizer.may_use(identity, self.or_scope):
            return
        if identity.limits is not None and scope not in identity.limits.scopes:
            raise Forbidden(f"this token lacks the scope {scope!r}")
        holders = _HOLDERS.get(scope, "active users")
        raise Forbidden(f"this is for {holders} only, and {identity.username!r} is none of them")

    async def _check_content(
        self, identity: Identity, action: Action, authorizer: Authorizer, repository: Repository, package: str | None
    ) -> None:
        if self.content and not repository.active:
            raise RepositoryInactive(repository.path)
        if self.content and action is not Action.READ:
            await authorizer.check_push_rules(identity, action, repository, package)


class Decided:
    """
    What was decided for one caller, by one state of the catalog, for the reading operations of a request.

    A page of the console runs a dozen of them about one package: repositories are found by the names in their paths,
    and permissions asked, when the first one needs them. What changes something is never decided by this, and ends it
    with L{forget}: what follows is decided anew. Without C{kept} each question is asked when it is put, which is so for
    requests to the API itself: they may last for hours, and questions after the body are others than before it.
    """

    def __init__(self, identity: Identity, registry: Registry, authorizer: Authorizer, *, kept: bool) -> None:
        self.identity = identity
        self._registry = registry
        self._authorizer = authorizer
        self._kept = kept
        self._current = False
        self._found: dict[str, Repository | None] = {}
        self._allowed: dict[tuple[Action, int, str | Extent | None], tuple[Repository, bool]] = {}

    def forget(self) -> None:
        """Decide everything anew from now on."""
        self._current = False
        self._found.clear()
        self._allowed.clear()

    async def refresh(self) -> None:
        """Have the storages and repositories in memory as they are now, or as they were when this was last asked."""
        if not self._current:
            await self._registry.refresh()
            self._current = self._kept

    def find(self, name: str) -> Repository | None:
        """The repository with an id or path, see L{find_repository}."""
        if not self._kept:
            return find_repository(self._registry, name)
        if name not in self._found:
            self._found[name] = find_repository(self._registry, name)
        return self._found[name]

    async def may(
        self, identity: Identity, action: Action, repository: Repository, package: str | Extent | None = None
    ) -> bool:
        """The result of L{Authorizer.may}."""
        if not self._kept or identity is not self.identity:
            return await self._authorizer.may(identity, action, repository, package)
        key = action, id(repository), package  # the entry has the repository, so that the id is not another one's
        found = self._allowed.get(key)
        if found is None:
            found = repository, await self._authorizer.may(identity, action, repository, package)
            self._allowed[key] = found
        return found[1]


def is_full_admin(identity: Identity) -> bool:
    """Whether the caller is an admin who logged in, or uses a token without any limit."""
    limits = identity.limits
    narrowed = limits is not None and (not limits.scopes >= SERVER_SCOPES or limits.repositories or limits.packages)
    return identity.admin and not narrowed


def check_no_bearer(identity: Identity) -> None:
    """
    Refuse bearer tokens for operations that create a token or set a password: the result would outlive the token.

    :raises Forbidden: the caller uses a bearer token
    """
    if identity.via == "bearer":
        raise Forbidden("a bearer token makes no tokens and sets no passwords: send a password or an access token")


PUBLIC = AccessRule("none, credentials are optional", public=True)
VIEWERS = AccessRule("none; the answer contains only what the caller may see")
PROJECT_VIEWERS = AccessRule("none; the answer contains only what the caller may see", extra_scope="api:read")
PROJECT_FINDERS = AccessRule("the action read in the repository", action=Action.READ, extra_scope="api:read")
ACCOUNT_HOLDERS = AccessRule("an active user", scope="api")
USER_MANAGERS = AccessRule("user manager or admin", scope="users")
SYSTEM_MANAGERS = AccessRule("system manager or admin", scope="system")
AUDITORS = AccessRule("admin", scope="audit")
RECALLERS = AccessRule(
    "system manager or admin, with a token that has scope system or audit", scope="system", or_scope="audit"
)
METRICS_READERS = AccessRule("system manager or admin", scope="metrics")
READERS = AccessRule("the action read in the repository", action=Action.READ)
EDITORS = AccessRule("the action edit in the repository", action=Action.EDIT)
CONTENT_READERS = AccessRule("the action read in the repository", action=Action.READ, content=True)
READERS_OF_SOME = AccessRule(
    "the action read in the repository, or for packages of it; the answer contains only these",
    action=Action.READ,
    some=True,
)
CONTENT_READERS_OF_SOME = evolve(READERS_OF_SOME, content=True)
CONTENT_PUBLISHERS = AccessRule("the action write in the repository", action=Action.WRITE, content=True)
CONTENT_DELETERS = AccessRule("the action delete in the repository", action=Action.DELETE, content=True)
ADMINS = AccessRule("the action admin in the repository", action=Action.ADMIN, container_scoped=True)
