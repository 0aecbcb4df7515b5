"""Who may use a route, decided before the body is read."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.auth.tokens.bearer import behind
from pkgrepo.auth.tokens.limits import SERVER_SCOPES
from pkgrepo.errors import AuthenticationRequired, Forbidden, RepositoryInactive
from pkgrepo.gateway.access import unknown
from pkgrepo.gateway.image_addresses import FORMAT
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Action, Identity, Repository

Scope = Literal["", "api", "users", "system", "metrics", "audit"]

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
class Who:
    """
    The callers of a route; ``words`` names them for people.

    With an ``action`` the route is about a repository, and the caller needs that action there. With a ``scope`` it is
    about a part of the server (``api``: the caller's own account). With neither, everybody may call. ``content`` marks
    routes to what is in a repository, which rest while it is switched off. A bearer token that was asked for with a
    scope opens only routes that are ``public``, which tell everybody the same, and ``registry``, in container
    repositories. ``needs`` is a server scope that tokens need here beside everything else.
    """

    words: str
    scope: Scope = ""
    action: Action | None = None
    content: bool = False
    public: bool = False
    registry: bool = False
    needs: str = ""

    def caller(self, identity: Identity, catalog: ICatalog) -> Identity:
        """
        The caller as the routes of the API take them: with what the credentials behind a bearer token may do.

        :raises Forbidden: the bearer token was asked for with a scope, and this is no route for those
        """
        if identity.scoped is None or (identity.scoped and self.public):
            return identity
        if identity.scoped and not self.registry:
            raise Forbidden(SCOPED)
        return behind(catalog, identity)

    def check(
        self,
        identity: Identity,
        method: str,
        authorizer: Authorizer,
        *,
        repository: Repository | None = None,
        package: str | None = None,
        asked: str = "",
    ) -> None:
        """
        Let the caller pass, or say why not.

        ``package`` is the key of the package that the route is about, ``asked`` how the caller named the repository:
        a refusal must not tell more than that.

        :raises AuthenticationRequired: nobody was named; :raises Forbidden: somebody was, and may not
        :raises NotFound: ... and may not even know of the repository
        :raises RepositoryInactive: it is switched off
        """
        if self.needs and not identity.anonymous and not authorizer.may_use(identity, self.needs):
            raise Forbidden(f"this token lacks the scope {self.needs!r}")
        if self.action is not None:
            if repository is None:
                raise unknown(identity, asked)
            if not authorizer.may(identity, Action.READ, repository, package):
                raise unknown(identity, asked)
            if identity.scoped and repository.format != FORMAT:
                raise Forbidden(SCOPED)
            self._check_action(identity, self.action, authorizer, repository, package)
        elif self.scope:
            self._check_scope(identity, method, authorizer)

    def _check_scope(self, identity: Identity, method: str, authorizer: Authorizer) -> None:
        if identity.anonymous:
            raise AuthenticationRequired
        scope = f"api:{'read' if method == 'GET' else 'write'}" if self.scope == "api" else self.scope
        if authorizer.may_use(identity, scope):
            return
        if identity.limits is not None and scope not in identity.limits.scopes:
            raise Forbidden(f"this token lacks the scope {scope!r}")
        holders = _HOLDERS.get(scope, "active users")
        raise Forbidden(f"this is for {holders} only, and {identity.username!r} is none of them")

    def _check_action(
        self,
        identity: Identity,
        action: Action,
        authorizer: Authorizer,
        repository: Repository,
        package: str | None,
    ) -> None:
        if not authorizer.may(identity, action, repository, package):
            if identity.anonymous:
                raise AuthenticationRequired
            raise Forbidden(authorizer.explain(identity, action, repository, package))
        if self.content and not repository.active:
            raise RepositoryInactive(repository.path)


def is_full_admin(identity: Identity) -> bool:
    """Whether the caller is an admin, and not through a token that was made for less."""
    limits = identity.limits
    narrowed = limits is not None and (not limits.scopes >= SERVER_SCOPES or limits.repositories or limits.packages)
    return identity.admin and not narrowed


def check_no_bearer(identity: Identity) -> None:
    """
    Let pass who makes a token or sets a password.

    :raises Forbidden: with a bearer token, whose short life would be of no use then
    """
    if identity.via == "bearer":
        raise Forbidden("a bearer token makes no tokens and sets no passwords: send a password or an access token")


PUBLIC = Who("anyone", public=True)
VIEWERS = Who("anyone; callers see what they may")
PROJECT_VIEWERS = Who("anyone; callers see what they may", needs="api:read")
PROJECT_FINDERS = Who("readers of the repository", action=Action.READ, needs="api:read")
SELF = Who("anyone with an account", scope="api")
USER_MANAGERS = Who("user managers", scope="users")
SYSTEM_MANAGERS = Who("system managers", scope="system")
AUDITORS = Who("admins", scope="audit")
WATCHERS = Who("system managers", scope="metrics")
READERS = Who("readers of the repository", action=Action.READ)
EDITORS = Who("editors of the repository", action=Action.EDIT)
CONTENT_READERS = Who("readers of the repository", action=Action.READ, content=True)
CONTENT_DELETERS = Who("whoever may delete from the repository", action=Action.DELETE, content=True)
