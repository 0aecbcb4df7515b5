"""The agent below treq: chooses the way to the upstream, and leaves the body as it was sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import wrapClientTLS
from twisted.internet.interfaces import IProtocolFactory, IStreamClientEndpoint
from twisted.web.client import URI, Agent, HTTPConnectionPool, ProxyAgent
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IAgentEndpointFactory, IBodyProducer, IPolicyForHTTPS, IResponse
from zope.interface import implementer

from pkgrepo.proxy.urls import Target, parse_url

from .addresses import AddressGuard
from .connection import Connections
from .endpoints import AddressRefused, CheckedEndpoint, TrackedEndpoint
from .environment import HttpProxy, ProxyChoice
from .tunnel import TunnelEndpoint

SENT_ENCODING = b"X-Sent-Content-Encoding"  # where treq does not see it

_ANYWHERE = AddressGuard(("0.0.0.0/0", "::/0"))  # for the proxies, which the operator names


@frozen(kw_only=True)
class Ways:
    """What decides how connections are made."""

    reactor: Any
    guard: AddressGuard
    proxies: ProxyChoice
    policy: IPolicyForHTTPS
    timeout_s: float


@implementer(IAgent)
class UpstreamAgent:
    """
    Sends requests directly or through a proxy.

    treq asks for gzip and inflates it without a limit. Therefore only the first Accept-Encoding value is sent, which is
    ours, and the Content-Encoding of an answer is renamed to L{SENT_ENCODING}.
    """

    def __init__(self, ways: Ways, pool: HTTPConnectionPool, connections: Connections) -> None:
        self._ways = ways
        self._pool = pool
        self._connections = connections
        self._direct = Agent.usingEndpointFactory(ways.reactor, _Endpoints(ways, connections), pool)
        self._by_proxy: dict[HttpProxy, ProxyAgent] = {}

    def request(
        self, method: bytes, uri: bytes, headers: Headers | None = None, bodyProducer: IBodyProducer | None = None
    ) -> Deferred[IResponse]:
        """
        Send a request.

        :raises AddressRefused: in the Deferred, or at once if a proxy would resolve the host
        """
        fields = Headers() if headers is None else headers.copy()
        wanted = fields.getRawHeaders(b"Accept-Encoding", [b"identity"])
        fields.setRawHeaders(b"Accept-Encoding", wanted[:1])
        target = parse_url(uri.decode("ascii"))
        proxy = self._ways.proxies.find(target.scheme, target.host)
        if proxy is not None and not self._ways.guard.permits_unresolved(target.host):
            raise AddressRefused
        if proxy is None or target.scheme == "https":
            sending: Deferred[IResponse] = self._direct.request(method, uri, fields, bodyProducer)
        else:
            if proxy.authorization is not None:
                fields.setRawHeaders(b"Proxy-Authorization", [proxy.authorization])
            sending = self._agent_of(proxy).request(method, uri, fields, bodyProducer)
        return sending.addCallback(_hide_encoding)

    def _agent_of(self, proxy: HttpProxy) -> ProxyAgent:
        """The agent for plain http; the pool knows its connections by its endpoint."""
        if proxy not in self._by_proxy:
            endpoint = TrackedEndpoint(
                _proxy_endpoint(self._ways, proxy), self._connections, self._ways.reactor, self._ways.timeout_s
            )
            self._by_proxy[proxy] = ProxyAgent(endpoint, self._ways.reactor, self._pool)
        return self._by_proxy[proxy]


@implementer(IAgentEndpointFactory)
class _Endpoints:
    """Endpoints for connections that lead to the upstream itself, directly or through a tunnel."""

    def __init__(self, ways: Ways, connections: Connections) -> None:
        self._ways = ways
        self._connections = connections

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        """See L{IAgentEndpointFactory.endpointForURI}."""
        return _LazyEndpoint(lambda: self._make(uri))

    def _make(self, uri: URI) -> IStreamClientEndpoint:
        ways, target = self._ways, parse_url(uri.toBytes().decode("ascii"))
        proxy = ways.proxies.find(target.scheme, target.host)
        if proxy is None:
            endpoint: IStreamClientEndpoint = CheckedEndpoint(
                ways.reactor, target.host, target.port, ways.guard, ways.timeout_s
            )
        else:
            endpoint = TunnelEndpoint(_proxy_endpoint(ways, proxy), target.authority, proxy.authorization)
        return TrackedEndpoint(_with_tls(ways, target, endpoint), self._connections, ways.reactor, ways.timeout_s)


@implementer(IStreamClientEndpoint)
@frozen
class _LazyEndpoint:
    """An endpoint that is made when it connects: each request has one, and most find a connection that is open."""

    make: Callable[[], IStreamClientEndpoint]

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[Any]:
        """See L{IStreamClientEndpoint.connect}."""
        connecting: Deferred[Any] = self.make().connect(protocolFactory)
        return connecting


def _proxy_endpoint(ways: Ways, proxy: HttpProxy) -> IStreamClientEndpoint:
    target = proxy.target
    return _with_tls(ways, target, CheckedEndpoint(ways.reactor, target.host, target.port, _ANYWHERE, ways.timeout_s))


def _with_tls(ways: Ways, target: Target, endpoint: IStreamClientEndpoint) -> IStreamClientEndpoint:
    if target.scheme == "http":
        return endpoint
    creator = ways.policy.creatorForNetloc(target.host.encode("ascii"), target.port)
    wrapped: IStreamClientEndpoint = wrapClientTLS(creator, endpoint)
    return wrapped


def _hide_encoding(response: IResponse) -> IResponse:
    encodings = response.headers.getRawHeaders(b"Content-Encoding", [])
    response.headers.removeHeader(b"Content-Encoding")
    response.headers.setRawHeaders(SENT_ENCODING, encodings)
    return response
