"""
Requests to upstream registries, by the registry API below the URL of a route, with a bearer token if one is wanted.

A registry that wants a token answers 401 with the address of its token service (the realm) and a scope (RFC 9110
section 11.6.1). The next time a token is got before the request, since realm and scope of a registry's images are
alike. Tokens are used until they expire.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec
from attrs import frozen

from pkgrepo.concurrency.lru import Lru
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.formats.container.documents import MANIFEST_SIZE
from pkgrepo.interfaces import IUpstreamResponse
from pkgrepo.model import ReadLimits
from pkgrepo.outbound.urls import Target, parse_url
from pkgrepo.proxy.caching.search_order import Place
from pkgrepo.proxy.upstream.client import Upstream
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.untrusted.strict_json import ERRORS

LONGEST_CHALLENGE = 16 * 1024  # of the field

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rf'({_WORD})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))')
_SCHEME = re.compile(_WORD)
_BETWEEN = re.compile(r"[\s,]*")
_ESCAPED = re.compile(r"\\(.)")


@frozen
class Challenge:
    """A scheme, such as ``bearer``, and its parameters; names are in lower case."""

    scheme: str
    parameters: Mapping[str, str]


def parse_challenges(value: str | None) -> list[Challenge]:
    """
    The challenges of a WWW-Authenticate field, whose lines are joined by commas. What cannot be parsed ends the list.

    Quoted values may hold commas, as the scopes of registries do.
    """
    text = (value or "")[:LONGEST_CHALLENGE]
    found: list[Challenge] = []
    parameters: dict[str, str] = {}
    at = _skip(text, 0)
    while at < len(text):
        parameter = _PARAMETER.match(text, at) if found else None
        if parameter is not None:
            quoted, plain = parameter[2], parameter[3]
            parameters.setdefault(parameter[1].lower(), plain if quoted is None else _ESCAPED.sub(r"\1", quoted))
            at = parameter.end()
        else:
            scheme = _SCHEME.match(text, at)
            if scheme is None:
                break
            parameters = {}
            found.append(Challenge(scheme[0].lower(), parameters))
            at = scheme.end()
        at = _skip(text, at)
    return found


def _skip(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return at if match is None else match.end()


ANSWER: Final = ReadLimits(256 * 1024, 60.0)
MOST_TOKENS: Final = 4096
MOST_CHARACTERS: Final = 64 * 1024  # of a token
EARLY_S: Final = 10  # before a token expires it is not used for new requests
STRANGE_SERVICE: Final = (
    "it names a token service on another site, which is not sent the credentials of the route unless its token_hosts "
    "name it (the log of the server has its name)"
)
LIFETIME_S: Final = 60  # if the service does not say more


class _TokenResponse(msgspec.Struct):
    """The response of a token service; registries give the token either name."""

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
        self._tokens: Lru[_Key, _Token] = Lru(MOST_TOKENS)
        self._services: dict[tuple[int, Route], _Service] = {}
        self._in_flight: SingleFlight[_Key, str] = SingleFlight()

    async def find(self, upstream: Upstream, place: Place, scope: str) -> str | None:
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
        self, upstream: Upstream, place: Place, scope: str, challenge: str | None, refused: str | None
    ) -> str:
        """
        The Authorization field for the second try of a request that was answered 401 with this ``challenge``.

        ``refused`` is the field of the first try. ``scope`` is for challenges that name none.

        :raises NotFound: the registry does not let the route's credentials pull this image, or has no anonymous access
        :raises UpstreamFailed: there is no token
        """
        route = place.route
        bearer = _find_bearer(challenge)
        if bearer is None:
            raise upstream.misconfigured(route.about_credentials(given=route.credentials is not None))
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

    async def _get(self, upstream: Upstream, key: _Key, service: _Service, scope: str) -> str:
        return await self._in_flight.run(key, lambda: self._ask(upstream, key, service, scope))

    async def _ask(self, upstream: Upstream, key: _Key, service: _Service, scope: str) -> str:
        """Ask the token service (distribution token specification: GET with service and scopes)."""
        _, route, name = key
        try:
            realm = parse_url(service.realm)
        except ValueError:
            raise UpstreamFailed(route.name, "it names a token service that has no usable URL") from None
        if route.target.scheme == "https" and realm.scheme != "https":
            raise UpstreamFailed(route.name, "it names a token service without TLS")
        entrust = may_entrust(route, realm)
        if route.credentials is not None and not entrust:
            raise upstream.misconfigured(STRANGE_SERVICE, f"{realm.host}:{realm.port}")
        realm = route.locate(realm)
        query = [("service", service.service)] if service.service else []
        query += [("scope", each) for each in scope.split()]
        url = f"{realm.text}{'&' if '?' in realm.text else '?'}{urlencode(query)}"
        async with upstream.open(
            "GET",
            url,
            {"Accept": "application/json"},
            limits=ANSWER,
            entrust=entrust,
            accept=(401, 403),
            kind="tokens",
            subject=name,
        ) as response:
            if response.status in (401, 403):
                if response.status == 401 and route.credentials is not None:
                    raise upstream.misconfigured(f"its token service refuses the credentials of the {route.owner}")
                raise NotFound("image", name)
            if response.status != 200:
                raise UpstreamFailed(route.name, f"its token service answers {response.status}")
            token = _read_token(route, await response.read(), self._seconds())
        self._tokens.put(key, token)
        return token.authorization


async def authorize(upstream: Upstream, place: Place, challenge: str | None) -> None:
    """
    Check that the credentials of a route are good for a token, with the challenge of its version check.

    :raises UpstreamFailed: they are not, or it wants credentials without a token; see ``renew``
    """
    given = place.route.credentials is not None
    if _find_bearer(challenge) is not None and not given:
        return  # without credentials it depends on the image
    try:
        await UpstreamTokens(lambda: 0.0).renew(upstream, place, "", challenge, None)
    except NotFound:
        raise upstream.misconfigured(place.route.about_credentials(given=given)) from None


def may_entrust(route: Route, realm: Target) -> bool:
    """
    Whether the credentials of a route may be sent to the token service that its own host has named.

    It is one of ``token_hosts`` or ``hosts`` of the route, or on the same host. On the same site it may be too if both
    speak TLS: without TLS the network may have named it.
    """
    named = {*route.token_hosts, *(host for host, _ in route.hosts)}
    if {realm.host, f"{realm.host}:{realm.port}"} & named:
        return True
    own = route.target
    if own.host == realm.host:
        return realm.scheme in (own.scheme, "https")
    return own.scheme == realm.scheme == "https" and _are_of_one_site(own.host, realm.host)


def _are_of_one_site(host: str, other: str) -> bool:
    """
    Whether one of two hosts is just below the other, or both are just below the same domain.

    Addresses are not, nor are hosts below a name under which everybody gets domains: of one label, or such as co.uk.
    """
    names = [each.rstrip(".") for each in (host, other)]
    if any(":" in each or each.rpartition(".")[2].isdigit() for each in names):
        return False
    first, second = ({each, each.partition(".")[2]} for each in names)
    return any(_has_one_owner(each.split(".")) for each in first & second)


def _has_one_owner(labels: Sequence[str]) -> bool:
    return len(labels) > 2 or (len(labels) == 2 and (len(labels[0]) > 3 or len(labels[1]) > 2))


def _find_bearer(challenge: str | None) -> Challenge | None:
    for each in parse_challenges(challenge):
        if each.scheme == "bearer" and each.parameters.get("realm"):
            return each
    return None


def _read_token(route: Route, data: bytes, now_s: float) -> _Token:
    try:
        response = msgspec.json.decode(data, type=_TokenResponse)
    except ERRORS:
        raise UpstreamFailed(route.name, "its token service sent no token") from None
    token = response.token or response.access_token
    if not token or len(token) > MOST_CHARACTERS or not (token.isascii() and token.isprintable()):
        raise UpstreamFailed(route.name, "its token service sent no token")
    lifetime_s = LIFETIME_S if response.expires_in is None else response.expires_in
    return _Token(f"Bearer {token}", now_s + max(lifetime_s - EARLY_S, 0))


API: Final = "/v2"
ABSENT: Final = frozenset({404, 410})

# RFC 8288, as registries write it. A URL has no "<": so each is the beginning of one attempt only.
_NEXT = re.compile(r'<([^<>]*)>\s*;\s*rel="?next')


class RegistryClient:
    """Asks registries, and gets the tokens that they want for it."""

    def __init__(self, upstreams: Upstreams, tokens: UpstreamTokens) -> None:
        self._upstreams = upstreams
        self._tokens = tokens

    @asynccontextmanager
    async def open(
        self,
        place: Place,
        method: str,
        rest: str,
        headers: Mapping[str, str] | None = None,
        *,
        limits: ReadLimits | None = None,
    ) -> AsyncIterator[IUpstreamResponse]:
        """
        The answer to a GET or HEAD of what follows the image's name in a path; its status is 2xx.

        ``limits`` defaults to those of manifests.

        :raises NotFound: the image does not have it, or the registry wants another scope than it gives us
        :raises UpstreamFailed: see L{Upstream.open}, or any other status
        """
        limits = limits or ReadLimits(MANIFEST_SIZE, self._upstreams.document_timeout_s)
        upstream = self._upstreams.of(place.repository_id, place.route)
        base, prefix = api_of(place.route.url)
        scope = f"repository:{prefix}{place.name}:pull"
        url = f"{base}/{prefix}{place.name}/{rest}"
        authorization = await self._tokens.find(upstream, place, scope)
        for is_last in (False, True):
            fields = {**(headers or {}), **({"Authorization": authorization} if authorization else {})}
            async with upstream.open(method, url, fields, limits=limits, accept=(401,), subject=place.name) as response:
                if response.status != 401:
                    _check_status(place, response.status)
                    yield response
                    return
                challenge = response.headers.get("WWW-Authenticate")
                is_own = parse_url(response.url).origin == place.route.target.origin
            if is_last and _find_bearer(challenge) is not None:
                raise NotFound("image", place.name)
            if not is_own:
                raise upstream.misconfigured("the host to which it redirects wants credentials")
            authorization = await self._tokens.renew(upstream, place, scope, challenge, authorization)


def next_page(rest: str, link: str | None) -> str | None:
    """
    The rest of the path of the next page of a list, by the Link field of this one; None if this is the last.

    Only the query of the link counts: behind other names and paths registries do not know their own address.
    """
    found = _NEXT.search(link or "")
    query = "" if found is None else found[1].partition("?")[2]
    return f"{rest.partition('?')[0]}?{query}" if query else None


def api_of(url: str) -> tuple[str, str]:
    """
    The URL of the registry API of a route with this URL, and what stands before names of images there.

    The latter is empty or ends with a slash. The URL of a route may end with the address of the API, and that at the
    root may have the beginning of names after it.
    """
    path = urlsplit(url).path
    if path.startswith(f"{API}/"):
        return f"{url.removesuffix(path)}{API}", f"{path.removeprefix(f'{API}/')}/"
    return (url if path.endswith(API) else f"{url}{API}"), ""


def _check_status(place: Place, status: int) -> None:
    if status in ABSENT:
        raise NotFound("image", place.name)
    if status >= 300:
        raise UpstreamFailed(place.route.name, f"it answered with status {status}")
