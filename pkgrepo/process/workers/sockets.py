"""
The listening sockets that a master binds for its workers.

A TCP address has one socket for each worker, all bound with SO_REUSEPORT: the kernel spreads connections evenly over
them. With one socket for all, one process gets nearly every connection: it accepts all that wait whenever it wakes up.
The master keeps the sockets open, so that connections wait in their queues; a worker gets those of another one that has
ended, and accepts what waits there until there is a new one.

A Unix socket, and one that systemd passes, is a single one that all workers share.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.protocol import Factory

SUPPORTED = ("tcp:", "tcp6:", "unix:", "systemd:")


def endpoint_problem(description: str) -> str | None:
    """Why several workers cannot listen at an address, or None if they can."""
    if description.startswith("tcp") and not hasattr(socket, "SO_REUSEPORT"):
        return f"server.listen: {description!r} takes server.workers = 1, since this system has no SO_REUSEPORT"
    if description.startswith(SUPPORTED):
        return None
    return f"server.listen: {description!r} takes server.workers = 1; several listen at tcp, tcp6, unix and systemd"


class ListeningSockets:
    """
    The sockets of all addresses for ``count`` workers.

    To endpoints it is the reactor with which they listen.
    """

    def __init__(self, reactor: Any, count: int) -> None:
        self._reactor = reactor
        self._count = count
        self._addresses: list[list[socket.socket]] = []
        self._ports: list[Any] = []  # of Unix sockets, which are removed at the end

    async def bind(self, descriptions: Sequence[str]) -> None:
        """Bind all addresses. :raises CannotListenError: one is taken, or does not exist here"""
        try:
            for each in descriptions:
                await serverFromString(self, each).listen(Factory())
        except BaseException:
            await self.close()
            raise

    def of(self, slot: int) -> list[int]:
        """The descriptors of the sockets of one worker, one for each address."""
        return [each[slot % len(each)].fileno() for each in self._addresses]

    def own(self, slot: int) -> list[int]:
        """The descriptors of those sockets that no other worker has."""
        return [each[slot].fileno() for each in self._addresses if len(each) > 1]

    async def close(self) -> None:
        """Close all sockets, and remove Unix sockets; also twice."""
        addresses, self._addresses = self._addresses, []
        for each in (found for sockets in addresses for found in sockets):
            each.close()
        ports, self._ports = self._ports, []
        for port in ports:
            stopping = port.stopListening()
            if isinstance(stopping, Deferred):
                await stopping

    # As the reactor of endpoints

    def listenTCP(self, port: int, _factory: object, backlog: int = 50, interface: str = "") -> None:
        """Bind one socket for each worker."""
        family = socket.AF_INET6 if ":" in interface else socket.AF_INET
        bound: list[socket.socket] = []
        try:
            address = socket.getaddrinfo(interface or "0.0.0.0", port, family, socket.SOCK_STREAM)[0][4]  # noqa: S104
            if port:
                _check_free(family, address)
            for _ in range(self._count):
                bound.append(_listen(family, address, backlog))
                address = bound[0].getsockname()  # with the number of a port that the kernel chose
        except OSError as error:
            for each in bound:
                each.close()
            raise CannotListenError(interface, port, error) from error
        self._addresses.append(bound)

    def listenUNIX(
        self, address: str, factory: Factory, backlog: int = 50, mode: int = 0o666, wantPID: bool = False
    ) -> None:
        """Bind one socket for all workers."""
        port = self._reactor.listenUNIX(address, factory, backlog=backlog, mode=mode, wantPID=wantPID)
        port.stopReading()
        self._ports.append(port)
        self._addresses.append([socket.socket(fileno=_duplicate(port.fileno()))])

    def adoptStreamPort(self, descriptor: int, _family: object, _factory: object) -> None:
        """Keep a socket that was passed to this process; the endpoint closes its own descriptor."""
        self._addresses.append([socket.socket(fileno=_duplicate(descriptor))])


def _duplicate(descriptor: int) -> int:
    with socket.socket(fileno=descriptor) as found:
        try:
            return found.dup().detach()
        finally:
            found.detach()


def _check_free(family: int, address: Any) -> None:
    """:raises OSError: the address is taken, which SO_REUSEPORT would hide if the other process has the same user"""
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        trial.bind(address)
        trial.listen(1)


def _listen(family: int, address: Any, backlog: int) -> socket.socket:
    line = socket.socket(family, socket.SOCK_STREAM)
    try:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        line.bind(address)
        line.listen(backlog)
        line.setblocking(False)  # Twisted does not do it for sockets that it adopts
    except OSError:
        line.close()
        raise
    return line
