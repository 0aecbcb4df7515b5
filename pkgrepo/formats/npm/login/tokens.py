"""Answers ``npm token``: list, create and revoke the caller's tokens at ``/-/npm/v1/tokens``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from pkgrepo.auth.tokens.limits import check_limits, literal
from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import names
from pkgrepo.formats.npm.authorization import require_login
from pkgrepo.formats.npm.login.accounts import authenticate, limits_for, require_write_access
from pkgrepo.gateway.bodies import read_object
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.callers.tokens import PERSONAL
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Response, json_response
from pkgrepo.model import Action, Identity, Token
from pkgrepo.repositories.clock import format_time
from pkgrepo.untrusted.text import quoted

SHOWN = 6  # characters of a token's text in lists
PAGE = 50
LONGEST_LINE = 100  # characters

READING = frozenset({Action.READ})


async def list_tokens(context: Context[object], request: Request) -> Response:
    """A page of the caller's tokens."""
    identity = await _authorize(context, request)
    args = request.args
    after = _number(args.get(b"after", [b""])[0], 0)
    limit = min(_number(args.get(b"perPage", [b""])[0], PAGE), PAGE)
    found = await context.services.accounts.tokens(identity, after=after, limit=limit + 1)
    urls = {}
    if len(found) > limit:
        found = found[:limit]
        urls["next"] = f"{context.url(request)}/-/npm/v1/tokens?perPage={limit}&after={found[-1].id}"
    objects = [_record(token) for token in found]
    return json_response({"objects": objects, "total": len(objects), "urls": urls}, headers=NO_STORE)


async def create_token(context: Context[object], request: Request) -> Response:
    """
    A new token, for a caller who sends the password again. The token's text is in this response only.

    :raises Refusal: the password is wrong
    :raises Invalid: a limit of the token is malformed, or not supported here; no limit is ever ignored
    """
    identity = await _authorize(context, request)
    body = await read_object(request)
    password = body.get("password")
    if not isinstance(password, str):
        raise Invalid("the password is missing", "password")
    owner = await authenticate(context, request, identity.username, password)
    limits = limits_for(context, _actions(body), _packages(body))
    limits = check_limits(evolve(limits, cidrs=_networks(body)))
    actor = actor_of(request, identity)
    token, text = await context.services.accounts.issue(
        owner,
        _line(body, "name") or "npm token",
        limits,
        actor,
        days=_days(body),
        description=_line(body, "description"),
    )
    return json_response({**_record(token), "token": text}, 201, headers=NO_STORE)


async def revoke_token(context: Context[object], request: Request, key: str) -> Response:
    """Revoke a token by its key or its text. :raises NotFound: the caller has no such token"""
    identity = await _authorize(context, request)
    actor = actor_of(request, identity)
    if key.startswith("pkgr_"):
        await context.services.accounts.revoke_text(identity, key, actor)
    else:
        await context.services.accounts.revoke(identity, key.lower(), actor)
    return Response(204, headers=NO_STORE)


async def logout(context: Context[object], request: Request, text: str) -> Response:
    """Revoke the token that the caller uses."""
    identity = await require_login(context, request)
    await context.services.accounts.revoke_text(identity, text, actor_of(request, identity))
    return json_response({"ok": True}, headers=NO_STORE)


async def _authorize(context: Context[object], request: Request) -> Identity:
    identity = await require_login(context, request)
    require_write_access(identity)
    return identity


def _record(token: Token) -> Mapping[str, Any]:
    actions = {action for scope in token.limits.repositories for action in scope.actions}
    expires_at = token.limits.expires_at
    return {
        "key": token.uid,
        "token": token.shown[:SHOWN],
        "name": token.name,
        "cidr_whitelist": list(token.limits.cidrs) or None,
        "readonly": bool(actions) and actions <= READING,
        "packages": list(dict.fromkeys(glob for scope in token.limits.repositories for glob in scope.packages)) or None,
        "automation": False,
        "created": format_time(token.created_at),
        "updated": format_time(token.last_used_at or token.created_at),
        "expires": None if expires_at is None else format_time(expires_at),
    }


def _actions(body: Mapping[str, Any]) -> frozenset[Action]:
    """The actions of a token. npm up to 10 sends ``readonly``, npm 11 one of three words."""
    permission = body.get("packages_and_scopes_permission")
    if permission not in (None, "read-only", "read-write"):
        raise Invalid("a token reads packages (read-only), or publishes them too (read-write)", "permission")
    return READING if body.get("readonly") is True or permission == "read-only" else PERSONAL


def _packages(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The globs of packages that npm 11 asks the token to be limited to; empty for all packages."""
    if body.get("orgs"):
        raise Invalid("there are no organizations here: a token is for packages and scopes", "orgs")
    packages = _texts(body, "packages")
    scopes = [each.removeprefix("@") for each in _texts(body, "scopes")]
    for name in (*packages, *(f"@{scope}/x" for scope in scopes)):
        if not names.is_readable(name) or "*" in name:
            raise Invalid(f"{quoted(name)} is not the name of a package, or of one in a scope", "packages")
    if body.get("packages_all") is True:
        return ()
    return (*map(literal, packages), *(f"@{literal(scope)}/*" for scope in scopes))


def _networks(body: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(_texts(body, "cidr_whitelist" if "cidr_whitelist" in body else "cidr"))


def _texts(body: Mapping[str, Any], key: str) -> list[str]:
    given = body.get(key) or []
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise Invalid(f"{key} must be a list of texts", key)
    return given


def _line(body: Mapping[str, Any], key: str) -> str:
    text = body.get(key) or ""
    if not isinstance(text, str) or len(text) > LONGEST_LINE or not text.isprintable():
        raise Invalid(f"the {key} of a token is a line of at most {LONGEST_LINE} characters", key)
    return text


def _days(body: Mapping[str, Any]) -> int | None:
    days = body.get("expires")
    if days is None:
        return None
    if not isinstance(days, int) or isinstance(days, bool) or days < 1:
        raise Invalid("expires must be a number of days", "expires")
    return days


def _number(text: bytes, default: int) -> int:
    return int(text) if text.isdigit() and len(text) < 18 and int(text) > 0 else default
