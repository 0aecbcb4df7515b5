"""Tokens as ``npm token`` knows them; ``/-/npm/v1/tokens``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from pkgrepo.auth.limits import check_limits
from pkgrepo.errors import AuthenticationRequired, Invalid
from pkgrepo.gateway.access import actor_of
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Identity, Token

from .accounts import NO_STORE, PERSONAL, OwnAccount
from .bodies import read_object
from .packument import format_time

SHOWN = 6  # characters of a token's text that lists show
PAGE = 50
LONGEST_NAME = 100  # characters

READING = frozenset({Action.READ})


class OwnTokens:
    """The requests about the caller's tokens."""

    def __init__(self, services: Services, account: OwnAccount, address: str) -> None:
        self._services = services
        self._accounts = services.accounts
        self._account = account
        self._address = address

    async def page(self, request: Request) -> Answer:
        """The caller's tokens, a page at a time."""
        identity = await self._admit(request)
        args = request.args
        after = _number(args.get(b"after", [b""])[0], 0)
        limit = min(_number(args.get(b"perPage", [b""])[0], PAGE), PAGE)
        found = self._accounts.tokens(identity, after=after, limit=limit + 1)
        urls = {}
        if len(found) > limit:
            found = found[:limit]
            urls["next"] = f"{self._address}?perPage={limit}&after={found[-1].id}"
        objects = [_record(token) for token in found]
        return json_answer({"objects": objects, "total": len(objects), "urls": urls}, headers=NO_STORE)

    async def create(self, request: Request) -> Answer:
        """
        A new token, for whoever knows the password; the text is in this answer and in no other.

        :raises Refusal: the password is wrong; :raises Invalid: the networks are none
        """
        identity = await self._admit(request)
        body = await read_object(request)
        password = body.get("password")
        if not isinstance(password, str):
            raise Invalid("the password is missing", "password")
        proven = await self._account.prove(request, identity.username, password)
        reach = self._account.reach(READING if body.get("readonly") is True else PERSONAL)
        limits = check_limits(evolve(reach, cidrs=_networks(body)))
        token, text = await self._accounts.issue(
            proven, _name(body), limits, actor_of(request, identity), days=_days(body)
        )
        return json_answer({**_record(token), "token": text}, 201, headers=NO_STORE)

    async def revoke(self, request: Request, key: str) -> Answer:
        """End a token by its key, or by its text. :raises NotFound: the caller has no such token"""
        identity = await self._admit(request)
        actor = actor_of(request, identity)
        if key.startswith("pkgr_"):
            await self._accounts.revoke_text(identity, key, actor)
        else:
            await self._accounts.revoke(identity, key.lower(), actor)
        return Answer(204, headers=NO_STORE)

    async def logout(self, request: Request, text: str) -> Answer:
        """End the token that the caller uses."""
        identity = await self._known(request)
        await self._accounts.revoke_text(identity, text, actor_of(request, identity))
        return json_answer({"ok": True}, headers=NO_STORE)

    async def _admit(self, request: Request) -> Identity:
        identity = await self._known(request)
        self._account.require_writing(identity)
        return identity

    async def _known(self, request: Request) -> Identity:
        identity = await self._services.access.identify(request)
        if identity.anonymous:
            raise AuthenticationRequired
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
        "automation": False,
        "created": format_time(token.created_at),
        "updated": format_time(token.last_used_at or token.created_at),
        "expires": None if expires_at is None else format_time(expires_at),
    }


def _networks(body: Mapping[str, Any]) -> tuple[str, ...]:
    given = body.get("cidr_whitelist", body.get("cidr")) or []
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise Invalid("cidr_whitelist must be a list of networks", "cidr_whitelist")
    return tuple(given)


def _name(body: Mapping[str, Any]) -> str:
    name = body.get("name") or "npm token"
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not name.isprintable():
        raise Invalid(f"the name of a token is a line of at most {LONGEST_NAME} characters", "name")
    return name


def _days(body: Mapping[str, Any]) -> int | None:
    days = body.get("expires")
    if days is None:
        return None
    if not isinstance(days, int) or isinstance(days, bool) or days < 1:
        raise Invalid("expires must be a number of days", "expires")
    return days


def _number(text: bytes, default: int) -> int:
    return int(text) if text.isdigit() and len(text) < 18 and int(text) > 0 else default
