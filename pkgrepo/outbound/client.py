"""Requests by treq over the agent, and the bytes of their responses, with back-pressure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http.cookiejar import CookieJar
from typing import Any, Final, cast

from hyperlink import EncodedURL
from treq.client import HTTPClient
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.iweb import IBodyProducer

from .agent import OutboundAgent, RequestFields, Ways
from .connection import Response
from .pool import KEEP_ALIVE_S, Connections
from .urls import Target

HIGH_WATER = 256 * 1024  # bytes held before the connection is paused
PIECE_COST = 64  # bytes of memory that even the smallest piece takes


class _NoCookies(CookieJar):
    """A jar that keeps no cookie and sends none: treq would look for some in each request and response."""

    def add_cookie_header(self, request: object) -> None:
        pass

    def extract_cookies(self, response: object, request: object) -> None:
        pass


_NO_COOKIES: Final = _NoCookies()


class OutboundClient:
    """
    Sends requests with treq, over connections of its own: at most ``most_idle`` idle ones are kept, for ``idle_s``.

    The caller decides about redirects, and inflates bodies within limits of its own; treq sees no header fields of a
    response, so it keeps no cookies.
    """

    def __init__(self, ways: Ways, most_idle: int, idle_s: float = KEEP_ALIVE_S) -> None:
        self._connections = Connections(ways.reactor, most_idle, idle_s)
        self._agent = OutboundAgent(ways, self._connections)
        self._treq = HTTPClient(self._agent, cast("Any", _NO_COOKIES))
        self._reactor = ways.reactor

    def request(
        self, method: str, url: str, fields: Mapping[str, str], body: IBodyProducer | bytes | None = None
    ) -> Deferred[Response]:
        """
        Send a request; fires with the response when its head has come. The length of a producer's body is known.

        :raises AddressRefused: in the Deferred, or at once if a proxy would resolve the host
        """
        sent = self._treq.request(
            method,
            _ExactUrl(url),
            headers=RequestFields(fields),
            data=body,
            cookies=_NO_COOKIES,
            allow_redirects=False,
            unbuffered=True,
            reactor=self._reactor,
        )
        answering: Deferred[Response] = sent.addCallback(_response_of)
        return answering

    async def connect(self, target: Target) -> None:
        """Connect to a server and close the connection, without a request; it raises what ``request`` does."""
        await self._agent.connect(target)

    def keep_none(self) -> None:
        """Close the idle connections, now and later."""
        self._connections.keep_none()

    async def close(self) -> None:
        """Abort all connections, now and those that are made later. Returns when all have ended."""
        await self._connections.close()


class BodyLost(Exception):  # noqa: N818 - named for what happened
    """The connection ended before the body."""


class ReceivedBody(Protocol):
    """Holds what arrived and was not read yet; the connection is paused at ``high_water`` bytes."""

    def __init__(self, high_water: int = HIGH_WATER) -> None:
        self._high_water = high_water
        self.ended = False
        self.framed = True
        self._held: list[bytes] = []
        self._held_size = 0
        self._paused = False
        self._failure: BodyLost | None = None
        self._waiting: Deferred[None] | None = None

    def dataReceived(self, data: bytes) -> None:
        """Hold bytes from the connection."""
        self._held.append(data)
        self._held_size += max(len(data), PIECE_COST)
        self._wake()  # first: what a reader takes at once needs no pause
        if self._held_size >= self._high_water and self._failure is None and not self._paused:
            self._paused = True
            cast("Any", self.transport).pauseProducing()

    def connectionLost(self, reason: Failure) -> None:  # type: ignore[override]
        """Note the end of the body, or of the connection before it."""
        self.ended = reason.check(ResponseDone, PotentialDataLoss) is not None
        self.framed = reason.check(PotentialDataLoss) is None
        if not self.ended:
            self._failure = BodyLost()
        self._wake()

    async def read(self, wait: Callable[[Deferred[None]], Awaitable[None]]) -> bytes:
        """
        What has arrived since the last call, at least one byte; ``b""`` at the end.

        ``wait`` waits for more, as long as the caller likes; what it raises is raised here.

        :raises BodyLost: the connection ended
        """
        while not self._held:
            if self._failure is not None:
                raise self._failure
            if self.ended:
                return b""
            self._waiting = Deferred()
            await wait(self._waiting)
        held = b"".join(self._held)
        self._held, self._held_size = [], 0
        if self._paused:
            self._paused = False
            cast("Any", self.transport).resumeProducing()
        return held

    def abort(self) -> None:
        """Close the connection, unless the body has ended; then it is in the pool again."""
        if not self.ended and self._failure is None:
            self._failure = BodyLost()
            cast("Any", self.transport).stopProducing()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.called:
            waiting.callback(None)


class _ExactUrl(EncodedURL):
    """A URL that treq sends as it is: hyperlink's normal form drops some "?", and it refuses IPv6 addresses."""

    def __init__(self, text: str) -> None:
        self._text = text  # its parts, which the base class has, are not asked for

    def to_uri(self) -> _ExactUrl:
        return self

    def to_text(self, with_password: bool = False) -> str:  # noqa: ARG002 - of the base class
        return self._text


def _response_of(response: Any) -> Response:
    """The agent's response, without what treq puts around it."""
    answer: Response = response.original
    return answer
