"""Names of hosts that the reactor of a test resolves as the test says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from twisted.internet import reactor
from twisted.internet.interfaces import IHostnameResolver
from zope.interface import implementer


@implementer(IHostnameResolver)
class Names:
    """Resolves some names to one address each, or to none (""), like the resolver of an attacker."""

    def __init__(self, others: Any, addresses: dict[str, str]) -> None:
        self._others = others
        self._addresses = addresses

    def resolveHostName(self, resolutionReceiver: Any, hostName: str, *rest: Any, **more: Any) -> Any:
        name = self._addresses.get(hostName, hostName)
        if not name:
            resolutionReceiver.resolutionBegan(None)
            resolutionReceiver.resolutionComplete()
            return None
        return self._others.resolveHostName(resolutionReceiver, name, *rest, **more)


@contextmanager
def host_names(**addresses: str) -> Iterator[None]:
    """Resolve these names; others as usual."""
    pluggable: Any = reactor
    previous = pluggable.installNameResolver(Names(pluggable.nameResolver, addresses))
    try:
        yield
    finally:
        pluggable.installNameResolver(previous)
