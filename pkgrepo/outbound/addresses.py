"""
Where connections go: to addresses that are public, and to the exceptions that the operator makes.

URLs come from repository configurations, redirects and index documents, whose authors must not reach the networks of
the server through it (server-side request forgery). Addresses are therefore checked after name resolution.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.error import DNSLookupError
from twisted.internet.interfaces import (
    IAddress,
    IHostnameResolver,
    IHostResolution,
    IProtocol,
    IProtocolFactory,
    IReactorPluggableNameResolver,
    IResolutionReceiver,
    IStreamClientEndpoint,
)
from twisted.python.failure import Failure
from zope.interface import implementer

from pkgrepo.concurrency.time_limits import TimedOut, within

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
# The special-purpose registry of IANA (RFC 6890) and what must not be reached beside it.
_FORBIDDEN_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers (RFC 6598); metadata of one cloud
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # metadata and DNS of one cloud, in its public range
        "169.254.0.0/16",  # link-local; metadata of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # IETF; metadata of one cloud
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4 (RFC 7526)
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
# Only 2000::/3 is assigned for use in the whole internet; loopback, ULA, link-local and multicast are outside of it.
_GLOBAL_V6 = IPv6Network("2000::/3")
_FORBIDDEN_V6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # IETF: Teredo and others
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: leads to an IPv4 address
        "3fff::/20",  # documentation
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")  # how DNS64 spells IPv4 addresses in networks that have only IPv6 (RFC 6052)
_PATTERN = re.compile(r"(?:\*\.)?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")


def check_exception(text: str) -> str:
    """An entry of ``proxy.allow_private`` in lower case. :raises ValueError: it is no host, address or network"""
    if _read_network(text) is None and not _PATTERN.fullmatch(text):
        raise ValueError("is no host such as mirror.example or *.corp.example, address or network")
    return text.lower()


class AddressGuard:
    """
    Decides whether a connection may be made.

    ``exceptions`` are entries as ``check_exception`` accepts them. A host that matches one may have any address.
    """

    def __init__(self, exceptions: Iterable[str] = ()) -> None:
        entries = [check_exception(each) for each in exceptions]
        self._networks = [network for network in map(_read_network, entries) if network is not None]
        self._hosts = frozenset(entry for entry in entries if _read_network(entry) is None)

    def permits(self, host: str, address: str) -> bool:
        """Whether a connection to ``address`` (an IP address), which ``host`` resolved to, may be made."""
        found = ip_address(address.partition("%")[0])
        if is_public(found) or self._permits_host(host):
            return True
        mapped = (found.ipv4_mapped if isinstance(found, IPv6Address) else None) or found
        return any(found in network or mapped in network for network in self._networks)

    def permits_unresolved(self, host: str) -> bool:
        """
        Whether a proxy may be asked to connect to ``host``, which it resolves itself.

        Refused are addresses, in every form that the C library reads as one (0177.0.0.1, 2130706433), and localhost.
        """
        literal = _read_literal(host)
        if literal is not None:
            return self.permits(host, str(literal))
        name = host.rstrip(".")
        return self._permits_host(host) or not (name == "localhost" or name.endswith(".localhost"))

    def _permits_host(self, host: str) -> bool:
        return matches_host(self._hosts, host)


def matches_host(hosts: Collection[str], host: str) -> bool:
    """Whether ``host`` is one of ``hosts``, in lower case, or below one that is written as ``*.corp.example``."""
    name = host.rstrip(".").lower()
    parents = name.split(".")[1:]
    wildcards = (f"*.{'.'.join(parents[index:])}" for index in range(len(parents)))
    return name in hosts or any(wildcard in hosts for wildcard in wildcards)


@lru_cache(maxsize=1024)
def is_public(address: Address) -> bool:
    """Whether an address belongs to the public internet. IPv4-mapped addresses never do: no DNS answer has them."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _FORBIDDEN_V4)
    if address in _NAT64:
        return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    return address in _GLOBAL_V6 and not any(address in network for network in _FORBIDDEN_V6)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its name, or an address in any form."""
    literal = _read_literal(host)
    return host.rstrip(".") == "localhost" if literal is None else literal.is_loopback


def _read_literal(host: str) -> Address | None:
    """The address that ``host`` spells, None if it is a name."""
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host.rstrip(".")))
    except OSError:
        return None


def _read_network(text: str) -> Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


ANYWHERE: Final = AddressGuard(("0.0.0.0/0", "::/0"))  # for what the operator names


class AddressRefused(Exception):  # noqa: N818 - named for what happened
    """The guard permits none of the addresses."""


class ConnectingTimedOut(TimedOut):
    """No connection was accepted in time: the host is away, or what is on the way to it drops packets."""


@implementer(IStreamClientEndpoint)
class CheckedEndpoint:
    """
    Connects to an address that a host resolves to and that the guard permits.

    The check is between resolution and connecting, so the connection goes to the checked address: a name that resolves
    differently a second time changes nothing.
    """

    def __init__(self, reactor: Any, host: str, port: int, guard: AddressGuard, timeout_s: float) -> None:
        self._reactor = reactor
        self._host = host
        self._port = port
        self._timeout_s = timeout_s
        self._resolver = _CheckingResolver(reactor, host, guard)

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """Connect. :raises AddressRefused: to none of the addresses"""
        view = _ReactorView(self._reactor, self._resolver)
        endpoint = HostnameEndpoint(view, self._host, self._port, timeout=self._timeout_s)
        connected: Deferred[IProtocol] = endpoint.connect(protocolFactory)
        return connected.addErrback(self._explain)

    def _explain(self, failure: Failure) -> Failure:
        if failure.check(DNSLookupError) and self._resolver.has_refused:
            return Failure(AddressRefused())
        return failure


class TimedEndpoint:
    """Connects within a time limit, which the ``setting`` decides."""

    def __init__(self, endpoint: IStreamClientEndpoint, reactor: Any, timeout_s: float, setting: str) -> None:
        self._setting = setting
        self._endpoint = endpoint
        self._reactor = reactor
        self._timeout_s = timeout_s

    async def connect(self, factory: IProtocolFactory) -> Any:
        """The protocol that is connected. :raises ConnectingTimedOut: it took too long"""
        connecting: Deferred[Any] = self._endpoint.connect(factory)
        reason = f"it did not accept a connection within {self._timeout_s:g} s ({self._setting})"
        try:
            return await within(self._timeout_s, connecting, self._reactor, reason)
        except TimedOut as error:
            raise ConnectingTimedOut(error.reason) from None


@implementer(IHostnameResolver)
class _CheckingResolver:
    """Resolves by the reactor's resolver, and leaves out the addresses that the guard refuses."""

    def __init__(self, reactor: Any, host: str, guard: AddressGuard) -> None:
        self._reactor = reactor
        self._host = host
        self._guard = guard
        self.has_refused = False

    def resolveHostName(
        self,
        resolutionReceiver: IResolutionReceiver,
        hostName: str,
        portNumber: int = 0,
        addressTypes: Sequence[type[IAddress]] | None = None,
        transportSemantics: str = "TCP",
    ) -> IHostResolution:
        """Resolve a name; the receiver gets permitted addresses only."""
        receiver = _CheckingReceiver(resolutionReceiver, self._is_permitted)
        resolution: IHostResolution = self._reactor.nameResolver.resolveHostName(
            receiver, hostName, portNumber, addressTypes, transportSemantics
        )
        return resolution

    def _is_permitted(self, address: Any) -> bool:
        permitted = self._guard.permits(self._host, address.host)
        self.has_refused = self.has_refused or not permitted
        return permitted


@implementer(IResolutionReceiver)
class _CheckingReceiver:
    def __init__(self, receiver: Any, is_permitted: Any) -> None:
        self._is_permitted = is_permitted
        self._receiver = receiver
        self.resolutionBegan = receiver.resolutionBegan
        self.resolutionComplete = receiver.resolutionComplete

    def addressResolved(self, address: IAddress) -> None:
        """Pass on an address that is permitted."""
        if self._is_permitted(address):
            self._receiver.addressResolved(address)


@implementer(IReactorPluggableNameResolver)
class _ReactorView:
    """The reactor, with another name resolver."""

    def __init__(self, reactor: Any, resolver: IHostnameResolver) -> None:
        self._reactor = reactor
        self.nameResolver = resolver

    def installNameResolver(self, resolver: IHostnameResolver) -> IHostnameResolver:
        """Use another resolver. Returns the one before."""
        previous, self.nameResolver = self.nameResolver, resolver
        return previous

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reactor, name)
