"""Authorization of requests, with refusals in the words and statuses that npm's clients expect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pkgrepo.auth.login.identities import identity_of
from pkgrepo.errors import AuthenticationRequired, Forbidden, NotFound
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Actor, Extent, Identity, Repository
from pkgrepo.model.admission import Admitted

UNPUBLISH: Final = "unpublish"
CHANGE_OWNERS: Final = "change the owners of"

# The words of ``npm access``; the last that applies counts.
_PERMISSIONS: Final = (("read", Action.READ), ("write", Action.WRITE))

_VERBS: Final = {
    "publish": "publish",
    "deprecate": "deprecate",
    "undeprecate": "deprecate",
    "unpublish": UNPUBLISH,
    "owner": CHANGE_OWNERS,
    "star": "star",
    "unstar": "star",
}


async def authorize_read(context: Context[object], request: Request, name: str | Extent | None) -> Identity:
    """
    The identity of a caller who may read a package, some package, or the whole repository when ``name`` is None.

    :raises NotFound: the caller is logged in and may not read; whether the package exists stays secret
    :raises AuthenticationRequired: the caller is anonymous and may not read
    """
    try:
        return await context.admit(request, Action.READ, name)
    except Forbidden:
        raise NotFound("package", name if name and name is not Extent.SOME else context.repository.path) from None


async def authorize_change(context: Context[object], request: Request, action: Action, name: str, verb: str) -> Actor:
    """
    The caller, who may do ``action`` to a package; ``verb`` names it in the sentence of a refusal.

    :raises AuthenticationRequired: the caller is anonymous; :raises Forbidden: the caller is logged in and may not
    """
    identity = await context.services.access.identify(request)
    await require(context, identity, action, name, verb)
    return actor_of(request, identity)


async def authorize_publishing(context: Context[object], request: Request, name: str, verb: str) -> Admitted:
    """The proof that the caller may make something of a package visible; otherwise as L{authorize_change}."""
    identity = await context.services.access.identify(request)
    return await require_publishing(context, identity, name, verb, actor_of(request, identity))


async def require_publishing(
    context: Context[object], identity: Identity, name: str, verb: str, actor: Actor
) -> Admitted:
    """The proof that an identity may make something of a package visible; errors are those of L{require}."""
    try:
        return await context.services.access.publishing(identity, context.repository, name, actor)
    except Forbidden as error:
        raise _refused(error, name, verb) from None


async def authorize_audit(context: Context[object], request: Request) -> None:
    """
    Check that the caller may ask about vulnerabilities.

    Every logged-in user may: the response says nothing about the repository, and a user who may read only some
    packages of it (as a member of a project, or with a token) audits what they have installed.

    :raises AuthenticationRequired: the caller is anonymous, and anonymous callers may not read the repository
    """
    identity = await context.services.access.identify(request)
    if identity.anonymous:
        await context.services.access.require(identity, Action.READ, context.repository)


async def require_login(context: Context[object], request: Request) -> Identity:
    """The identity of a logged-in caller. :raises AuthenticationRequired: the caller is anonymous"""
    identity = await context.services.access.identify(request)
    if identity.anonymous:
        raise AuthenticationRequired
    return identity


async def require(
    context: Context[object], identity: Identity, action: Action, name: str | Extent | None, verb: str
) -> None:
    """
    Check that an identity may do ``action``; ``verb`` names it in the sentence of a refusal.

    :raises AuthenticationRequired: the caller is anonymous; :raises Forbidden: the caller is logged in and may not
    """
    try:
        await context.services.access.require(identity, action, context.repository, name)
    except Forbidden as error:
        raise _refused(error, name, verb) from None


def _refused(error: Forbidden, name: str | Extent | None, verb: str) -> Forbidden:
    what = "to this repository" if name in (None, Extent.SOME) else f'"{name}"'
    return Forbidden(f"You do not have permission to {verb} {what}. {error}")


def check_access(repository: Repository, wanted: object) -> None:
    """
    Check that the access asked for is the one that packages of the repository have.

    :raises Forbidden: it is another one; the visibility of the repository decides
    """
    present = "restricted" if repository.is_private else "public"
    if wanted in ("public", "restricted", "private") and (wanted == "public") != (present == "public"):
        raise Forbidden(f"packages in {repository.path} are {present}, as their repository is; its visibility decides")


def verb_of_put(request: Request, revision: str) -> str:
    """
    The verb of a PUT of a package's document, from the request's head; ``revision`` is the one in its address.

    npm 9 to 12, pnpm 12 and bun send their command in a header. The other clients put a revision into the address
    whenever they write a document back.
    """
    command = (request.header(b"npm-command") or b"").decode("latin-1").strip().lower()
    return _VERBS.get(command, "change" if revision else "publish")


async def permissions_of(context: Context[object], username: str, packages: Sequence[str]) -> dict[str, str]:
    """What a user may do with packages, by their names: ``write`` or ``read``; the others are left out."""
    user = await context.services.accounts.find_user(username)
    found: dict[str, str] = {}
    if user is not None:
        identity = identity_of(user, via="")
        for word, action in _PERMISSIONS:
            allowed = await context.services.access.allowed(identity, action, context.repository, packages)
            found |= dict.fromkeys(allowed, word)
    return {name: found[name] for name in packages if name in found}
