"""
Login with name and password, and the caller's own account.

A login is a PUT of a user document, as in CouchDB, which the first registry ran on. The response has a token, which
gives access to this repository only, and to the one that packages published here go to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pkgrepo.errors import AuthenticationFailed, Forbidden, Invalid, SecondFactorMissing, SecondFactorRequired
from pkgrepo.formats.npm.authorization import require_login
from pkgrepo.formats.npm.refusals import LOGIN_FAILED, user_not_found
from pkgrepo.gateway.bodies import read_object
from pkgrepo.gateway.callers.access import actor_of, code_of, may_see_email, road_of, unknown
from pkgrepo.gateway.callers.tokens import PERSONAL, limits_in
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response
from pkgrepo.model import Action, Identity, RepositoryScope, TokenLimits, User
from pkgrepo.repositories.clock import format_time
from pkgrepo.storage.catalog.people.users import UserChanges

LONGEST_TEXT = 254  # characters of a name or an email


def limits_for(
    context: Context[object], actions: frozenset[Action] = PERSONAL, packages: tuple[str, ...] = ()
) -> TokenLimits:
    """The limits of a token that is issued here; see L{limits_in}."""
    return limits_in(context.services.registry, context.repository, actions, packages)


async def login(context: Context[object], request: Request, username: str) -> Response:
    """
    A token for a name and a password: ``npm login --auth-type=legacy``, ``npm adduser``, yarn and pnpm.

    A client may send an access token as the password; it then gets that token back, since a token issues no others.

    :raises Refusal: the password is wrong, or there is no such user; a login never creates an account
    """
    body = await read_object(request)
    if body.get("name", username) != username or not _is_id(body.get("_id"), username):
        raise Invalid(f"the document is of another user than {username!r}", "name")
    password = body.get("password")
    if not isinstance(password, str) or not password:
        raise Invalid("the document has no password", "password")
    identity, token = await authenticate(context, request, username, password), password
    if identity.limits is None:
        _, token = await context.services.accounts.issue(
            identity, "npm login", limits_for(context), actor_of(request, identity)
        )
    response = {
        "ok": True,
        "id": f"org.couchdb.user:{identity.username}",
        "rev": f"1-{identity.user_id}",
        "token": token,
    }
    return json_response(response, 201, headers=NO_STORE)


async def authenticate(
    context: Context[object], request: Request, username: str, password: str, code: str = ""
) -> Identity:
    """
    The identity of a name and password, with the code of a second factor in a form or in the field of the client.

    :raises Refusal: name or password is wrong; clients print the sentence
    :raises NotFound: the repository does not exist, or is hidden from this user
    """
    client = (request.header(b"user-agent") or b"").decode("latin-1")
    try:
        identity = await context.services.accounts.login(
            username, password, request.client_address, client, code or code_of(request), road_of(request)
        )
    except (SecondFactorRequired, SecondFactorMissing):
        raise
    except AuthenticationFailed:
        raise Refusal(401, "incorrect username or password", LOGIN_FAILED) from None
    if not await context.services.access.authorizer.knows(identity, context.repository):
        raise unknown(identity, context.repository.path)
    return identity


async def user_document(context: Context[object], request: Request, username: str) -> Response:
    """
    The document of a user, with the email for the user and for those who manage users.

    :raises Refusal: there is no such user
    """
    identity = await require_login(context, request)
    user = await context.services.accounts.find_user(username)
    if user is None:
        raise user_not_found(username)
    response = {
        "_id": f"org.couchdb.user:{user.username}",
        "name": user.username,
        "email": user.email if may_see_email(identity, user) else "",
        "type": "user",
        "roles": [],
        "date": format_time(user.created_at),
    }
    return json_response(response, headers=NO_STORE)


async def whoami(context: Context[object], request: Request) -> Response:
    """The caller's name. :raises AuthenticationRequired: the caller is anonymous"""
    identity = await require_login(context, request)
    return json_response({"username": identity.username}, headers=NO_STORE)


async def profile(context: Context[object], request: Request) -> Response:
    """The caller's profile. :raises Forbidden: the caller used a bearer token"""
    identity = await require_login(context, request)
    _check_no_bearer(identity)
    return json_response(_profile(await context.services.accounts.user(identity)), headers=NO_STORE)


async def change_profile(context: Context[object], request: Request) -> Response:
    """
    Change name, email or password of the caller. Other fields that npm offers do not exist here.

    :raises Forbidden: the caller's token is too limited; see ``require_write_access``
    """
    identity = await require_login(context, request)
    require_write_access(identity)
    body = await read_object(request)
    if body.get("tfa"):
        raise Invalid("the second factor is set up on the page /ui/second-factor of this server", "tfa")
    actor = actor_of(request, identity)
    password = body.get("password")
    if password is not None:
        old, new = _passwords(password)
        await context.services.accounts.change_password(identity, old, new, actor, code_of(request))
    changes: UserChanges = {}
    if "email" in body:
        changes["email"] = _text(body, "email")
    if "fullname" in body:
        changes["name"] = _text(body, "fullname")
    user = (
        await context.services.accounts.change(identity, changes, actor)
        if changes
        else await context.services.accounts.user(identity)
    )
    return json_response(_profile(user), headers=NO_STORE)


def require_write_access(identity: Identity) -> None:
    """
    Check that the caller used a password, or a token that may change every package of a repository.

    :raises Forbidden: the caller used a bearer token, or a token for reading only or for some packages only; such
        tokens are given to others, and must not change the account of their owner
    """
    _check_no_bearer(identity)
    limits = identity.limits
    if limits is None:
        return
    scopes = limits.repositories or (RepositoryScope("*", PERSONAL),)
    if limits.packages or not any(Action.WRITE in scope.actions and not scope.packages for scope in scopes):
        raise Forbidden("this token is for reading only, or for some packages only, and not for its owner's account")


def _check_no_bearer(identity: Identity) -> None:
    """Check that the caller used no bearer token. :raises Forbidden: they did"""
    if identity.via == "bearer":
        raise Forbidden("a bearer token is for packages, and not for its owner's account")


def _is_id(stated: object, username: str) -> bool:
    """Whether a document's ``_id``, if it has one, is that of the user; in it a prefix stands before the name."""
    return stated is None or (isinstance(stated, str) and stated.partition(":")[2] == username)


def _profile(user: User) -> Mapping[str, Any]:
    return {
        "tfa": False,
        "name": user.username,
        "email": user.email,
        "email_verified": bool(user.email),
        "created": format_time(user.created_at),
        "updated": format_time(user.updated_at),
        "fullname": user.name,
        "cidr_whitelist": None,
    }


def _passwords(value: object) -> tuple[str, str]:
    if isinstance(value, dict):
        old, new = value.get("old"), value.get("new")
        if isinstance(old, str) and isinstance(new, str):
            return old, new
    raise Invalid("password must be an object of 'old' and 'new'", "password")


def _text(body: Mapping[str, Any], key: str) -> str:
    value = body[key]
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT or not value.isprintable():
        raise Invalid(f"{key} must be a line of at most {LONGEST_TEXT} characters", key)
    return value
