"""
HTTP proxies for outgoing connections, and the tunnels through them: CONNECT (RFC 9110 section 9.3.6).

They come from the environment: HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in either case; the standard library reads the
variables (``urllib.request.getproxies_environment``).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionClosed
from twisted.internet.interfaces import IProtocolFactory, IStreamClientEndpoint
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from zope.interface import implementer

from pkgrepo.errors import Invalid
from pkgrepo.outbound.addresses import is_loopback
from pkgrepo.outbound.urls import Target, parse_url

HEAD_BYTES = 16 * 1024  # of the proxy's answer


@frozen
class HttpProxy:
    """A proxy: where it is, and the value of Proxy-Authorization."""

    target: Target
    authorization: bytes | None = field(repr=False)


class ProxyChoice:
    """
    Which proxy a URL goes through.

    ``variables`` are URLs of proxies by scheme, and hosts without a proxy under "no": names, which stand for their
    subdomains as well, addresses, networks, or "*". This machine is never reached through a proxy.

    :raises Invalid: a proxy's URL cannot be used
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = dict(variables)
        self._proxies = {
            scheme: _parse_proxy(scheme, variables[scheme]) for scheme in ("http", "https") if variables.get(scheme)
        }

    def find(self, scheme: str, host: str) -> HttpProxy | None:
        """The proxy for a URL of this scheme and host; None: connect directly."""
        proxy = self._proxies.get(scheme)
        if proxy is None or is_loopback(host) or self._is_excepted(host):
            return None
        return proxy

    def _is_excepted(self, host: str) -> bool:
        if proxy_bypass_environment(host, self._variables):
            return True
        return any(_is_in_network(host, text.strip()) for text in self._variables.get("no", "").split(","))


def _is_in_network(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False


def _parse_proxy(scheme: str, url: str) -> HttpProxy:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    user, _, address = parts.netloc.rpartition("@")
    try:
        target = parse_url(f"{parts.scheme}://{address}")
    except ValueError as error:
        raise Invalid(f"the URL of the proxy for {scheme}, from the environment, cannot be used: {error}") from None
    authorization = b"Basic " + b64encode(unquote(user).encode()) if user else None
    return HttpProxy(target, authorization)


@define
class ProxyRefused(Exception):  # noqa: N818 - named for what happened
    """The proxy makes no tunnel; ``reason`` is a clause for people, ``status`` its answer to CONNECT (0: none)."""

    reason: str
    status: int = 0


@implementer(IStreamClientEndpoint)
class TunnelEndpoint:
    """
    Connects to ``authority`` (host and port) through the proxy at ``proxy``.

    ``authorization`` is the value of Proxy-Authorization, if any.
    """

    def __init__(self, proxy: IStreamClientEndpoint, authority: bytes, authorization: bytes | None) -> None:
        self._proxy = proxy
        fields = [b"Host: " + authority]
        if authorization is not None:
            fields.append(b"Proxy-Authorization: " + authorization)
        self._head = b"\r\n".join([b"CONNECT %s HTTP/1.1" % authority, *fields, b"", b""])

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[Any]:
        """Connect. :raises ProxyRefused: the proxy answered with an error"""
        return Deferred.fromCoroutine(self._connect(protocolFactory))

    async def _connect(self, factory: IProtocolFactory) -> Any:
        connecting: Deferred[Any] = self._proxy.connect(_TunnelFactory(factory))  # type: ignore[no-untyped-call]
        tunnel: _Tunnel = await connecting
        return await tunnel.open(self._head)


class _Tunnel(ProtocolWrapper):
    """Speaks with the proxy first; then the wrapped protocol has the connection."""

    def __init__(self, factory: _TunnelFactory, wrapped: Any) -> None:
        super().__init__(factory, wrapped)
        self._received: bytes | None = b""  # None once the tunnel is open
        self._opened: Deferred[Any] = Deferred(lambda _: self.transport.abortConnection())  # type: ignore[union-attr]

    def makeConnection(self, transport: Any) -> None:
        """Take the connection, and leave the wrapped protocol without it for now."""
        self.transport = transport
        self.connected = 1

    def open(self, head: bytes) -> Deferred[Any]:
        """Ask the proxy; fires with the wrapped protocol, or with what the proxy or the network says."""
        self.transport.write(head)  # type: ignore[union-attr]
        return self._opened

    def dataReceived(self, data: bytes) -> None:
        """Read the proxy's answer, or pass on what comes through the tunnel."""
        if self._received is None:
            super().dataReceived(data)  # type: ignore[no-untyped-call]
        elif not self._opened.called:
            self._read_response(self._received + data)

    def _read_response(self, received: bytes) -> None:
        self._received = received
        head, end, rest = received.partition(b"\r\n\r\n")
        status = head.split(b"\r\n", 1)[0].split(b" ", 2)
        if len(head) > HEAD_BYTES or (end and (len(status) < 2 or not status[0].startswith(b"HTTP/1."))):
            self._refuse("the proxy does not answer in HTTP")
        elif end and not status[1].startswith(b"2"):
            answered = status[1][:3].decode("latin-1")
            self._refuse(f"the proxy answers {answered} to CONNECT", int(answered) if answered.isdigit() else 0)
        elif end:
            self._start(rest)

    def connectionLost(self, reason: Failure = Failure(ConnectionClosed())) -> None:  # noqa: B008
        """Pass on the end of the connection."""
        if self._received is None:
            super().connectionLost(reason)  # type: ignore[no-untyped-call]
        elif not self._opened.called:
            self._opened.errback(reason)

    def _start(self, rest: bytes) -> None:
        self._received = None
        super().makeConnection(self.transport)  # type: ignore[no-untyped-call]
        self._opened.callback(self.wrappedProtocol)
        if rest:
            super().dataReceived(rest)  # type: ignore[no-untyped-call]

    def _refuse(self, reason: str, status: int = 0) -> None:
        self._opened.errback(ProxyRefused(reason, status))
        self.transport.abortConnection()  # type: ignore[union-attr]


class _TunnelFactory(WrappingFactory[_Tunnel]):
    protocol = _Tunnel
    noisy = False
