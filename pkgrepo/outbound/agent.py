"""The agent below treq: chooses the way to the server, and a connection that is open or a new one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from attrs import frozen
from OpenSSL import SSL
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import wrapClientTLS
from twisted.internet.error import ConnectionClosed
from twisted.internet.interfaces import IConsumer, IHandshakeListener, IStreamClientEndpoint
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IBodyProducer, IPolicyForHTTPS, IResponse
from zope.interface import implementer

from pkgrepo.concurrency.time_limits import within
from pkgrepo.outbound.addresses import AddressRefused, CheckedEndpoint, TimedEndpoint
from pkgrepo.outbound.http_proxies import HttpProxy, ProxyChoice, TunnelEndpoint
from pkgrepo.outbound.pool import Connections

from .addresses import ANYWHERE, AddressGuard
from .connection import Connection, Response
from .urls import Target, parse_url

SMALL = 64 * 1024  # bytes of a body that goes out with the head, in one piece


@frozen(kw_only=True)
class Ways:
    """
    What decides how connections are made, in ``connect_s`` seconds at most.

    After a request was sent, the head of its response must be complete in ``answer_s`` seconds; None: however long it
    takes. The settings are the names of those that decide it, for errors.
    """

    reactor: Any
    guard: AddressGuard
    proxies: ProxyChoice
    policy: IPolicyForHTTPS
    connect_s: float
    answer_s: float | None = None
    connect_setting: str = "proxy.connect_timeout"
    answer_setting: str = "proxy.idle_timeout"


class RequestFields(Headers):
    """
    The header fields of one request, rendered once.

    treq passes them on without copies, and without its own Accept-Encoding: it would inflate answers without a limit.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__()
        lines = [f"{name.title()}: {' '.join(value.splitlines())}\r\n" for name, value in fields.items()]
        self.lines = "".join(lines).encode()

    def copy(self) -> RequestFields:
        """Return itself: treq copies fields before it adds to them."""
        return self


@frozen
class _Way:
    """Where a request goes, and whether its response is ``bodiless``."""

    target: Target
    proxy: HttpProxy | None
    bodiless: bool

    @property
    def key(self) -> Hashable:
        """What a connection leads to: plain http to all hosts shares those to the proxy."""
        return self.target.origin if self.proxy is None or self.target.scheme == "https" else self.proxy


@implementer(IAgent)
class OutboundAgent:
    """Sends requests directly or through a proxy, with header fields that are L{RequestFields}."""

    def __init__(self, ways: Ways, connections: Connections) -> None:
        self._ways = ways
        self._connections = connections

    def request(
        self, method: bytes, uri: bytes, headers: Headers | None = None, bodyProducer: IBodyProducer | None = None
    ) -> Deferred[IResponse]:
        """
        Send a request. The length of a body is known, and the producer of a large one is a push producer.

        :raises AddressRefused: in the Deferred, or at once if a proxy would resolve the host
        """
        assert isinstance(headers, RequestFields)
        target = parse_url(uri.decode("ascii"))
        proxy = self._ways.proxies.find(target.scheme, target.host)
        if proxy is not None and not self._ways.guard.permits_unresolved(target.host):
            raise AddressRefused
        way = _Way(target, proxy, bodiless=method == b"HEAD")
        if bodyProducer is not None:
            return Deferred.fromCoroutine(self._send_with_body(way, method, headers.lines, bodyProducer))
        return Deferred.fromCoroutine(self._send(way, _render(way, method, headers.lines)))

    async def connect(self, target: Target) -> None:
        """
        Connect to where requests go, up to the end of the TLS handshake, and close the connection. Nothing is sent.

        It raises what ``request`` does before it sends.
        """
        proxy = self._ways.proxies.find(target.scheme, target.host)
        if proxy is not None and not self._ways.guard.permits_unresolved(target.host):
            raise AddressRefused
        handshake = _Handshake(has_tls=target.scheme == "https")
        try:
            await self._endpoint(target, proxy).connect(_QuietFactory.forProtocol(lambda: handshake))
            await handshake.done
        finally:
            if handshake.transport is not None:
                handshake.transport.abortConnection()  # type: ignore[attr-defined]

    async def _send(self, way: _Way, message: bytes) -> Response:
        connection = self._connections.take(way.key)
        if connection is not None:
            try:
                return await self._wait(connection.send(message, bodiless=way.bodiless))
            except (ConnectionClosed, SSL.Error):
                # The upstream may have closed the connection before the request came (RFC 9112 section 9.3.1).
                if connection.received_any:
                    raise
        connection = await self._connect(way)
        return await self._wait(connection.send(message, bodiless=way.bodiless))

    async def _send_with_body(self, way: _Way, method: bytes, lines: bytes, body: IBodyProducer) -> Response:
        size = body.length
        assert isinstance(size, int), "the length of a body is known"
        message = _render(way, method, b"%bContent-Length: %d\r\n" % (lines, size))
        rest = body if size > SMALL else None
        if rest is None:
            message += await _collect(body)
        connection = self._connections.take(way.key) or await self._connect(way)
        return await self._wait(connection.send(message, bodiless=way.bodiless, body=rest))

    async def _wait(self, answering: Deferred[Response]) -> Response:
        """The answer to what was sent. :raises TimedOut: its head was not complete in time"""
        ways = self._ways
        if ways.answer_s is None:
            return await answering
        reason = f"it did not answer within {ways.answer_s:g} s ({ways.answer_setting})"
        return await within(ways.answer_s, answering, ways.reactor, reason)

    async def _connect(self, way: _Way) -> Connection:
        connecting = self._endpoint(way.target, way.proxy).connect(self._connections.factory(way.key))
        made: Connection = await connecting
        return made

    def _endpoint(self, target: Target, proxy: HttpProxy | None) -> TimedEndpoint:
        ways = self._ways
        if proxy is None:
            checked = CheckedEndpoint(ways.reactor, target.host, target.port, ways.guard, ways.connect_s)
            endpoint = _with_tls(ways, target, checked)
        elif target.scheme == "https":
            tunnel = TunnelEndpoint(_proxy_endpoint(ways, proxy), target.authority, proxy.authorization)
            endpoint = _with_tls(ways, target, tunnel)
        else:
            endpoint = _proxy_endpoint(ways, proxy)
        return TimedEndpoint(endpoint, ways.reactor, ways.connect_s, ways.connect_setting)


@implementer(IHandshakeListener)
class _Handshake(Protocol):
    """``done`` fires when the connection is made, with TLS after the handshake, or with what ended it before."""

    def __init__(self, *, has_tls: bool) -> None:
        self._has_tls = has_tls
        self.done: Deferred[None] = Deferred()

    def connectionMade(self) -> None:
        """Fire without TLS."""
        if not self._has_tls:
            self.done.callback(None)

    def handshakeCompleted(self) -> None:
        """Fire with TLS."""
        self.done.callback(None)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Fail if nothing came before."""
        if not self.done.called:
            self.done.errback(reason)


class _QuietFactory(Factory):
    noisy = False  # else the log has two lines for each connection


def _render(way: _Way, method: bytes, lines: bytes) -> bytes:
    """The head (RFC 9112 section 3.2): in origin form, in absolute form to a proxy."""
    target, proxy = way.target, way.proxy
    _, _, authority, path = target.text.split("/", 3)
    head = [method, b" ", f"/{path}".encode(), b" HTTP/1.1\r\nHost: ", authority.encode(), b"\r\n", lines]
    if proxy is not None and target.scheme == "http":
        head[2] = target.text.encode()
        if proxy.authorization is not None:
            head += [b"Proxy-Authorization: ", proxy.authorization, b"\r\n"]
    return b"".join([*head, b"\r\n"])


async def _collect(producer: IBodyProducer) -> bytes:
    collector = _Collector()
    await producer.startProducing(collector)
    return b"".join(collector.pieces)


@implementer(IConsumer)
class _Collector:
    """Takes the body of a request."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def registerProducer(self, producer: object, streaming: bool) -> None:
        """Need no control of the producer."""

    def unregisterProducer(self) -> None:
        """Know no producer."""

    def write(self, data: bytes) -> None:
        """Take a piece."""
        self.pieces.append(data)


def _proxy_endpoint(ways: Ways, proxy: HttpProxy) -> IStreamClientEndpoint:
    target = proxy.target
    return _with_tls(ways, target, CheckedEndpoint(ways.reactor, target.host, target.port, ANYWHERE, ways.connect_s))


def _with_tls(ways: Ways, target: Target, endpoint: IStreamClientEndpoint) -> IStreamClientEndpoint:
    if target.scheme == "http":
        return endpoint
    creator = ways.policy.creatorForNetloc(target.host.encode("ascii"), target.port)
    wrapped: IStreamClientEndpoint = wrapClientTLS(creator, endpoint)
    return wrapped
