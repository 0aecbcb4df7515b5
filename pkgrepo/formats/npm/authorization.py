"""Authorization of requests, with refusals in the words and statuses that npm's clients expect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pkgrepo.auth.login.checkers import identity_of
from pkgrepo.errors import AuthenticationRequired, Forbidden, NotFound
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, Repository

UNPUBLISH: Final = "unpublish"

# The words of ``npm access``.
_PERMISSIONS: Final = (("write", Action.WRITE), ("read", Action.READ))

_VERBS: Final = {
    "publish": "publish",
    "deprecate": "deprecate",
    "undeprecate": "deprecate",
    "unpublish": UNPUBLISH,
    "owner": "change the owners of",
    "star": "star",
    "unstar": "star",
}


async def authorize_read(services: Services, request: Request, repository: Repository, name: str | None) -> Identity:
    """
    The identity of a caller who may read a package, or the repository when ``name`` is None.

    :raises NotFound: the caller is logged in and may not read; whether the package exists stays secret
    :raises AuthenticationRequired: the caller is anonymous and may not read
    """
    try:
        return await services.access.admit(request, Action.READ, repository, name)
    except Forbidden:
        raise NotFound("package", name or repository.path) from None


async def authorize_change(
    services: Services, request: Request, repository: Repository, action: Action, name: str, verb: str
) -> Identity:
    """
    The identity of a caller who may do ``action`` to a package; ``verb`` names it in the sentence of a refusal.

    :raises AuthenticationRequired: the caller is anonymous; :raises Forbidden: the caller is logged in and may not
    """
    request.repository = repository.path
    identity = await services.access.identify(request)
    require(services, identity, action, repository, name, verb)
    return identity


async def authorize_audit(services: Services, request: Request, repository: Repository) -> Identity:
    """
    The identity of a caller who may ask about vulnerabilities.

    Every logged-in user may: the answer says nothing about the repository, and a user who may read only some packages
    of it (as a member of a project, or with a token) audits what they have installed.

    :raises AuthenticationRequired: the caller is anonymous, and anonymous callers may not read the repository
    """
    identity = await services.access.identify(request)
    if identity.anonymous:
        services.access.require(identity, Action.READ, repository)
    return identity


async def require_login(services: Services, request: Request) -> Identity:
    """The identity of a logged-in caller. :raises AuthenticationRequired: the caller is anonymous"""
    identity = await services.access.identify(request)
    if identity.anonymous:
        raise AuthenticationRequired
    return identity


def require(
    services: Services, identity: Identity, action: Action, repository: Repository, name: str | None, verb: str
) -> None:
    """
    Check that an identity may do ``action``; ``verb`` names it in the sentence of a refusal.

    :raises AuthenticationRequired: the caller is anonymous; :raises Forbidden: the caller is logged in and may not
    """
    try:
        services.access.require(identity, action, repository, name)
    except Forbidden as error:
        what = "to this repository" if name is None else f'"{name}"'
        raise Forbidden(f"You do not have permission to {verb} {what}. {error}") from None


def verb_of_put(request: Request, revision: str) -> str:
    """
    The verb of a PUT of a package's document, from the request's head; ``revision`` is the one in its address.

    npm 9 to 11, pnpm 12 and bun send their command in a header. The other clients put a revision into the address
    whenever they write a document back.
    """
    command = (request.header(b"npm-command") or b"").decode("latin-1").strip().lower()
    return _VERBS.get(command, "change" if revision else "publish")


def permission_of(services: Services, repository: Repository, username: str) -> Callable[[str], str | None]:
    """A function from a package's name to what the user may do with it: ``write``, ``read`` or None."""
    user = services.accounts.find_user(username)
    identity = None if user is None else identity_of(user, via="")

    def permission(name: str) -> str | None:
        if identity is None:
            return None
        may = services.access.may
        return next((word for word, action in _PERMISSIONS if may(identity, action, repository, name)), None)

    return permission
