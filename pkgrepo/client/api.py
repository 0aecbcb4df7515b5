"""
The HTTP client of the command line: calls of the API of one server, and transfers of files.

Every refusal, and every connection that breaks, is raised as ``Failed`` with a sentence for people. Neither the
sentences nor the addresses contain the token.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from attrs import field, frozen
from treq.client import HTTPClient
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.web.client import Agent, HTTPConnectionPool, RequestGenerationFailed
from twisted.web.http_headers import Headers

from pkgrepo import __version__
from pkgrepo.client.http import BROKEN, Failed, IdleTimeout, IteratorBody, Unreachable, raise_if_cancelled
from pkgrepo.client.profiles import Target
from pkgrepo.tls_policy import make_policy

T = TypeVar("T")

CONNECT_S: Final = 30.0
CALL_S: Final = 330.0  # a call may wait for a job for five minutes
IDLE_S: Final = 120.0  # without a byte of a transfer; the server may work for so long before it answers
CONNECTIONS: Final = 8  # that are kept open; Twisted keeps two
MOST_RESPONSE: Final = 64 * 1024 * 1024  # bytes
PAGE: Final = 200  # items; the API allows 1000
MOST_PROBLEMS: Final = 10  # errors of a refusal that are shown
_HELP: Final = re.compile(r'<(/ui/docs/[a-z0-9#-]+)>; rel="help"')  # the page of the book that helps

Query = Mapping[str, object]


def at(*segments: str) -> str:
    """A path below ``/api``; slashes in a segment are encoded, as in ``at("package", "main/py", "name")``."""
    return "/api/" + "/".join(quote(each, safe="") for each in segments)


@frozen
class Response:
    """A response. ``value`` is its JSON, decoded; None if the body is not JSON. ``headers`` are by lower-case name."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    value: Any = field(repr=False)

    @property
    def unchanged(self) -> Mapping[str, str]:
        """The field that refuses a change of what has changed since this was read (RFC 9110 section 13.1.1), if any."""
        etag = self.headers.get("etag")
        return {} if etag is None else {"If-Match": etag}


class Client:
    """
    Sends requests to the server of ``target``, in the reactor's thread.

    A call fails after ``call_s`` seconds, a transfer after ``idle_s`` seconds without a byte.

    :raises Invalid: the file of certificates cannot be used
    """

    def __init__(self, reactor: Any, target: Target, *, call_s: float = CALL_S, idle_s: float = IDLE_S) -> None:
        self._reactor = reactor
        self._call_s = call_s
        self._idle_s = idle_s
        self.url = target.url
        self.ca_file = target.ca_file
        self._authorization = target.authorization
        pool = HTTPConnectionPool(reactor, persistent=True)
        pool.maxPersistentPerHost = CONNECTIONS
        policy = make_policy([target.ca_file] if target.ca_file else [])
        self._pool = pool
        self._http = HTTPClient(Agent(reactor, policy, connectTimeout=CONNECT_S, pool=pool))

    @property
    def has_credentials(self) -> bool:
        """Whether its requests are not anonymous."""
        return bool(self._authorization)

    async def close(self) -> None:
        """Close the connections that are kept open."""
        await self._pool.closeCachedConnections()

    async def get(self, *segments: str, **query: object) -> Any:
        """The JSON at a path of the API. :raises Failed: the server refused, or was not reached"""
        return (await self.call("GET", at(*segments), query=query)).value

    async def find(self, *segments: str, **query: object) -> Any:
        """Return the JSON at a path of the API, or None if the server has nothing there."""
        found = await self.look(*segments, **query)
        return None if found is None else found.value

    async def look(self, *segments: str, **query: object) -> Response | None:
        """What is at a path of the API, or None if the server has nothing there."""
        try:
            return await self.call("GET", at(*segments), query=query)
        except Failed as error:
            if error.status != 404:
                raise
            return None

    async def change(self, method: str, *segments: str, body: Any = None, **query: object) -> Any:
        """Call an operation that changes something; the JSON of the response."""
        return (await self.call(method, at(*segments), value=body, query=query)).value

    async def pages(self, *segments: str, most: int | None = None, **query: object) -> AsyncIterator[dict[str, Any]]:
        """The pages of a list, with ``most`` items in all."""
        cursor, left = "", most
        while left is None or left > 0:
            limit = PAGE if left is None else min(PAGE, left)
            page = await self.get(*segments, limit=limit, **query, **({"cursor": cursor} if cursor else {}))
            yield page
            left = None if left is None else left - len(page["items"])
            cursor = page.get("next") or ""
            if not cursor:
                return

    async def items(self, *segments: str, most: int | None = None, **query: object) -> AsyncIterator[Any]:
        """The items of a list, page by page, ``most`` of them."""
        async for page in self.pages(*segments, most=most, **query):
            for item in page["items"]:
                yield item

    async def all_items(self, *segments: str, most: int | None = None, **query: object) -> list[Any]:
        """The items of a list."""
        return [item async for item in self.items(*segments, most=most, **query)]

    async def call(
        self,
        method: str,
        path: str,
        *,
        value: Any = None,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send a request, with ``value`` as JSON. :raises Failed: the server refused, or was not reached"""
        fields = {"Accept": "application/json", **(headers or {})}
        body = None
        if value is not None:
            body, fields["Content-Type"] = msgspec.json.encode(value), "application/json"
        reply: Response = await self._within(self._call_s, self._call(method, path + _query(query), body, fields))
        return reply

    async def send(
        self,
        method: str,
        path: str,
        body: IteratorBody | bytes,
        headers: Mapping[str, str],
        *,
        query: Query | None = None,
    ) -> Response:
        """Send a request with a body that may be long. :raises Failed: the server refused, or was not reached"""
        idle = IdleTimeout(self._reactor, self._idle_s)
        if isinstance(body, IteratorBody):
            body.on_piece = idle.progress
        try:
            return await idle.watch(self._reached(self._call(method, path + _query(query), body, headers)))
        except RequestGenerationFailed:
            if isinstance(body, IteratorBody) and body.error is not None:
                raise body.error from None
            raise Failed("the file has changed while it was sent") from None
        finally:
            if isinstance(body, IteratorBody):
                body.stopProducing()

    async def fetch(
        self, path: str, write: Callable[[bytes], None], headers: Mapping[str, str] | None = None
    ) -> Mapping[str, str]:
        """GET a file; ``write`` gets its pieces. Returns the header fields. :raises Failed: as for ``call``"""
        idle = IdleTimeout(self._reactor, self._idle_s)

        def take(data: bytes) -> None:
            idle.progress()
            try:
                write(data)
            except OSError as error:
                raise Failed(f"the file cannot be stored: {error.strerror}") from None

        async def receive() -> Mapping[str, str]:
            response = await self._request("GET", path, None, headers or {})
            fields = _fields(response)
            if response.code != 200:
                raise _refusal(response, fields, await _read(response))
            await response.collect(take)
            return fields

        return await idle.watch(self._reached(receive()))

    # Below

    async def _call(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Response:
        response = await self._request(method, path, body, headers)
        data, fields = await _read(response), _fields(response)
        if response.code >= 300:
            raise _refusal(response, fields, data)
        return Response(response.code, fields, data, _decode(data))

    async def _request(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Any:
        fields = {"User-Agent": f"pkgrepo/{__version__}", **headers}
        if self._authorization:
            fields["Authorization"] = self._authorization
        try:
            return await self._http.request(
                method,
                self.url + path,
                data=body,
                headers=Headers({name: [value] for name, value in fields.items()}),
                allow_redirects=False,
                unbuffered=True,
            )
        except BROKEN as error:
            raise_if_cancelled(error)
            raise

    async def _within(self, seconds: float, work: Any) -> Any:
        waiting = Deferred.fromCoroutine(work)
        waiting.addTimeout(seconds, self._reactor)
        try:
            return await self._reached(waiting)
        except DeferredTimeout:
            raise Failed(f"{self.url} has not answered within {seconds:g} seconds") from None

    async def _reached(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except BROKEN as error:
            if isinstance(error, OSError) and error.filename is not None:
                raise  # of a local file
            raise Unreachable(self.url, error) from None


def problem_of(value: Any, fallback: str) -> str:
    """The sentence of a refusal: of the API, or of a package format in the form of its clients."""
    if not isinstance(value, dict):
        return fallback
    given = value.get("errors")
    errors = given if isinstance(given, list) else []
    if errors and "detail" not in value:  # the form of the registry API of images
        texts = [str(each.get("message")) for each in errors[:MOST_PROBLEMS] if isinstance(each, dict)]
        return "; ".join(texts) or fallback
    sentence = next((str(value[key]) for key in ("detail", "error", "message", "title") if value.get(key)), fallback)
    faults = [each for each in errors if isinstance(each, dict) and each.get("message") != value.get("detail")]
    more = [f"{each.get('pointer')}: {each.get('message')}" for each in faults[:MOST_PROBLEMS]]
    return "; ".join([sentence, *more])


def _query(query: Query | None) -> str:
    pairs = []
    for name, value in (query or {}).items():
        if isinstance(value, bool):
            pairs.append((name, "true" if value else "false"))
        elif value is not None and value != "":
            pairs.append((name, str(value)))
    return f"?{urlencode(pairs)}" if pairs else ""


def _fields(response: Any) -> dict[str, str]:
    return {
        name.decode("latin-1").lower(): values[-1].decode("latin-1")
        for name, values in response.headers.getAllRawHeaders()
    }


async def _read(response: Any) -> bytes:
    parts: list[bytes] = []
    size = 0

    def collect(data: bytes) -> None:
        nonlocal size
        size += len(data)
        if size > MOST_RESPONSE:
            raise Failed("the server's response is too long")
        parts.append(data)

    try:
        await response.collect(collect)
    except BROKEN as error:
        raise_if_cancelled(error)
        raise
    return b"".join(parts)


def _refusal(response: Any, fields: Mapping[str, str], data: bytes) -> Failed:
    phrase = response.phrase.decode("latin-1")
    if 300 <= response.code < 400:
        sentence = f"the server redirects to {fields.get('location', 'nowhere')}; is this its address?"
        return Failed(sentence, response.code)
    value = _decode(data)
    text = data.decode("utf-8", "replace").strip()
    is_text = fields.get("content-type", "").startswith("text/plain") and 0 < len(text) <= 1000
    sentence = problem_of(value, text if is_text else phrase)
    wait = fields.get("retry-after", "")
    if wait.isdigit() and response.code in (429, 503):
        sentence += f" (try again in {wait} seconds)"
    page = _HELP.search(fields.get("link", ""))
    return Failed(sentence, response.code, "" if page is None else page[1])


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data) if data else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
