"""Who may read and change what: the npm format's own way of refusing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pkgrepo.auth.login.checkers import identity_of
from pkgrepo.errors import Forbidden, NotFound
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, Repository


async def authorize_read(services: Services, request: Request, repository: Repository, name: str | None) -> Identity:
    """
    The caller, once it is clear that they may read.

    :raises NotFound: they are known and may not: they are not told what there is
    :raises AuthenticationRequired: they are not known
    """
    try:
        return await services.access.admit(request, Action.READ, repository, name)
    except Forbidden:
        raise NotFound("package", name or repository.path) from None


async def authorize_change(
    services: Services, request: Request, repository: Repository, action: Action, name: str, verb: str
) -> Identity:
    """
    The caller, once it is clear that they may do this; ``verb`` is what they want to do to the package.

    :raises AuthenticationRequired: they are not known; :raises Forbidden: they are and may not, in npm's words
    """
    request.repository = repository.path
    identity = await services.access.identify(request)
    require(services, identity, action, repository, name, verb)
    return identity


def require(
    services: Services, identity: Identity, action: Action, repository: Repository, name: str | None, verb: str
) -> None:
    """
    Let the caller pass; the sentence of a refusal names what they wanted to do.

    :raises AuthenticationRequired: they are not known; :raises Forbidden: they are and may not
    """
    try:
        services.access.require(identity, action, repository, name)
    except Forbidden as error:
        what = "to this repository" if name is None else f'"{name}"'
        raise Forbidden(f"You do not have permission to {verb} {what}. {error}") from None


def verb_of(request: Request, revision: str) -> str:
    """
    What a PUT of a package's document wants to do, as far as its head tells; ``revision`` is that of its address.

    npm 9 to 11, pnpm 12 and bun name their command. Of those that do not, none writes a document back without its
    revision.
    """
    command = (request.header(b"npm-command") or b"").decode("latin-1").strip().lower()
    return _VERBS.get(command, "change" if revision else "publish")


def rights_of(services: Services, repository: Repository, username: str) -> Callable[[str], str | None]:
    """Tells of a package, by its name, what a user may do with it: ``write``, ``read`` or None."""
    user = services.accounts.find_user(username)
    identity = None if user is None else identity_of(user, via="")

    def right(name: str) -> str | None:
        if identity is None:
            return None
        may = services.access.may
        return next((word for word, action in _RIGHTS if may(identity, action, repository, name)), None)

    return right


UNPUBLISH: Final = "unpublish"

# The words of ``npm access``.
_RIGHTS: Final = (("write", Action.WRITE), ("read", Action.READ))

_VERBS: Final = {
    "publish": "publish",
    "deprecate": "deprecate",
    "undeprecate": "deprecate",
    "unpublish": UNPUBLISH,
    "owner": "change the owners of",
    "star": "star",
    "unstar": "star",
}


async def authorize_audit(services: Services, request: Request, repository: Repository) -> Identity:
    """
    The caller, once it is clear that they may ask about vulnerabilities.

    Whoever is known may: the answer tells nothing of the repository, and who may read some packages of it (as a member
    of a project, or by a token) audits what they have installed.

    :raises AuthenticationRequired: they are not known, and the repository is not for everybody
    """
    identity = await services.access.identify(request)
    if identity.anonymous:
        services.access.require(identity, Action.READ, repository)
    return identity
