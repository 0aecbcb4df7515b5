"""Where connections go: to resolved addresses that the guard permits, or through a tunnel of a proxy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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

from .addresses import AddressGuard


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
        """See L{IHostnameResolver.resolveHostName}."""
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
        """See L{IReactorPluggableNameResolver.installNameResolver}."""
        previous, self.nameResolver = self.nameResolver, resolver
        return previous

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reactor, name)
