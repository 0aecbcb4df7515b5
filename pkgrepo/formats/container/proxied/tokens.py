"""
Bearer tokens for upstream registries: got from the token service that a registry names, and used until they expire.

A registry that wants a token answers 401 with the address of its token service (the realm) and a scope. The next time a
token is got before the request, since realm and scope of a registry's images are alike.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode

import msgspec
from attrs import frozen

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.interfaces import IUpstream
from pkgrepo.model import ReadLimits
from pkgrepo.outbound.urls import Target, parse_url
from pkgrepo.proxy.routes import Route

from .challenges import Challenge, parse_challenges
from .places import Place

ANSWER: Final = ReadLimits(256 * 1024, 60.0)
MOST_TOKENS: Final = 4096
MOST_CHARACTERS: Final = 64 * 1024  # of a token
EARLY_S: Final = 10  # before a token expires it is not used for new requests
LIFETIME_S: Final = 60  # if the service does not say more


class _Answer(msgspec.Struct):
    """The answer of a token service; registries give the token either name."""

    token: str = ""
    access_token: str = ""
    expires_in: float | None = None


@frozen
class _Token:
    authorization: str
    until_s: float


@frozen
class _Service:
    """The token service of a route: its URL, and the name by which it knows the registry."""

    realm: str
    service: str


_Key = tuple[int, Route, str]  # the last is the image's name at the upstream, whose tokens have one scope


class UpstreamTokens:
    """The tokens of all routes; ``seconds`` is a clock."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._tokens: OrderedDict[_Key, _Token] = OrderedDict()
        self._services: dict[tuple[int, Route], _Service] = {}
        self._flight: SingleFlight[_Key, str] = SingleFlight()

    async def find(self, upstream: IUpstream, place: Place, scope: str) -> str | None:
        """
        The Authorization field for a request, or None if it is not known whether the registry wants a token.

        :raises NotFound: see ``renew``
        """
        key = (place.repository_id, place.route, place.name)
        token = self._tokens.get(key)
        if token is not None and token.until_s > self._seconds():
            return token.authorization
        service = self._services.get(key[:2])
        if service is None:
            return None
        try:
            return await self._get(upstream, key, service, scope)
        except UpstreamFailed:
            self._services.pop(key[:2], None)  # the registry may name another one now, or want no token
            return None

    async def renew(
        self, upstream: IUpstream, place: Place, scope: str, challenge: str | None, refused: str | None
    ) -> str:
        """
        The Authorization field for the second try of a request that was answered 401 with this ``challenge``.

        ``refused`` is the field of the first try. ``scope`` is for challenges that name none.

        :raises NotFound: the registry lets nobody pull this image with the route's credentials, or without any
        :raises UpstreamFailed: there is no token
        """
        route = place.route
        bearer = _find_bearer(challenge)
        if bearer is None:
            raise UpstreamFailed(
                route.name,
                "it wants credentials, and the route has none"
                if route.credentials is None
                else "it refuses the credentials of the route",
            )
        key = (place.repository_id, route, place.name)
        token = self._tokens.get(key)
        if token is not None and token.authorization != refused and token.until_s > self._seconds():
            return token.authorization
        named = bearer.parameters.get("scope") or scope
        service = _Service(bearer.parameters["realm"], bearer.parameters.get("service", ""))
        authorization = await self._get(upstream, key, service, named)
        if named == scope:
            self._services[key[:2]] = service
        return authorization

    async def _get(self, upstream: IUpstream, key: _Key, service: _Service, scope: str) -> str:
        return await self._flight.run(key, lambda: self._ask(upstream, key, service, scope))

    async def _ask(self, upstream: IUpstream, key: _Key, service: _Service, scope: str) -> str:
        """Ask the token service (distribution token specification: GET with service and scopes)."""
        _, route, name = key
        try:
            realm = parse_url(service.realm)
        except ValueError:
            raise UpstreamFailed(route.name, "it names a token service that has no usable URL") from None
        if route.target.scheme == "https" and realm.scheme != "https":
            raise UpstreamFailed(route.name, "it names a token service without TLS")
        entrust = may_entrust(route.target, realm)
        realm = route.locate(realm)
        query = [("service", service.service)] if service.service else []
        query += [("scope", each) for each in scope.split()]
        url = f"{realm.text}{'&' if '?' in realm.text else '?'}{urlencode(query)}"
        async with upstream.open("GET", url, {"Accept": "application/json"}, limits=ANSWER, entrust=entrust) as answer:
            if answer.status in (401, 403):
                if answer.status == 401 and route.credentials is not None and entrust:
                    raise UpstreamFailed(route.name, "its token service refuses the credentials of the route")
                raise NotFound("image", name)
            if answer.status != 200:
                raise UpstreamFailed(route.name, f"its token service answers {answer.status}")
            token = _read_token(route, await answer.read(), self._seconds())
        self._tokens[key] = token
        self._tokens.move_to_end(key)
        if len(self._tokens) > MOST_TOKENS:
            self._tokens.popitem(last=False)
        return token.authorization


def may_entrust(route: Target, realm: Target) -> bool:
    """
    Whether the credentials of a route may be sent to the token service that its own host has named.

    Both speak TLS, so that nobody else can have named it, or it is on the same host.
    """
    return (route.scheme == realm.scheme == "https") or (route.host == realm.host and route.scheme == realm.scheme)


def _find_bearer(challenge: str | None) -> Challenge | None:
    for each in parse_challenges(challenge):
        if each.scheme == "bearer" and each.parameters.get("realm"):
            return each
    return None


def _read_token(route: Route, data: bytes, now_s: float) -> _Token:
    try:
        answer = msgspec.json.decode(data, type=_Answer)
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise UpstreamFailed(route.name, "its token service sent no token") from None
    token = answer.token or answer.access_token
    if not token or len(token) > MOST_CHARACTERS or not (token.isascii() and token.isprintable()):
        raise UpstreamFailed(route.name, "its token service sent no token")
    lifetime_s = LIFETIME_S if answer.expires_in is None else answer.expires_in
    return _Token(f"Bearer {token}", now_s + max(lifetime_s - EARLY_S, 0))
