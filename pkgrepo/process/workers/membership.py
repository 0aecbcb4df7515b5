"""
A worker's place among the workers of a master, and its ports, at listening sockets that the master has bound.

At the end a worker stops to accept, and the master's sockets stay as they are: a Unix socket keeps its path and its
mode.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet import tcp, unix
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocolFactory
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from pkgrepo.concurrency.services import spawn
from pkgrepo.process.workers.child import CHANNEL, FIRST_SOCKET
from pkgrepo.process.workers.messages import (
    ALIVE_S,
    Alive,
    Answered,
    Asked,
    Begin,
    Channel,
    ChannelFactory,
    Counted,
    Cover,
    Failed,
    Gathered,
    Ready,
    Uncover,
)
from pkgrepo.process.workers.peers import WorkerPeers

log = Logger()


class Membership:
    """
    The connection of this process, a worker, to its master. ``abandoned`` is called when there is no master any more.

    ``sockets`` is the number of inherited listening sockets. ``begun`` fires when this process may serve.
    """

    def __init__(self, reactor: Any, *, sockets: int, abandoned: Callable[[], None]) -> None:
        self._reactor = reactor
        self._sockets = range(FIRST_SOCKET, FIRST_SOCKET + sockets)
        for each in (CHANNEL, *self._sockets):
            os.set_inheritable(each, False)
        self._alive = LoopingCall(self._send_alive)
        self._alive.clock = reactor
        self.begun: Deferred[None] = Deferred()
        self._abandoned = abandoned
        self._closed: Deferred[None] = Deferred()
        self._leaving = False
        self._serving = False
        self._factory: IProtocolFactory | None = None
        self._covering: dict[int, list[Any]] = {}  # ports by slot
        self._channel = Channel(self._receive, self._close)
        self.peers = WorkerPeers(self._channel.send, reactor)
        with socket.socket(fileno=CHANNEL) as end:
            reactor.adoptStreamConnection(end.fileno(), socket.AF_UNIX, ChannelFactory(self._channel))

    def listen(self, factory: IProtocolFactory) -> list[Any]:
        """The ports at the inherited sockets; to be called once."""
        self._factory = factory
        return listen_at(self._sockets, factory, self._reactor)

    def report_ready(self, addresses: list[str], password: str | None) -> None:
        """Tell the master that this process accepts connections."""
        self._serving = True
        self._channel.send(Ready(addresses, password))
        self._alive.start(ALIVE_S, now=False)

    async def stop_covering(self) -> None:
        """Stop to accept connections for other workers."""
        self._factory = None
        for slot in list(self._covering):
            await self._uncover(slot)

    def stop_receiving(self) -> None:
        """Ignore the news of others from now on."""
        self._serving = False

    def report_failure(self, reason: str) -> None:
        """Tell the master why this process cannot start."""
        self._channel.send(Failed(reason))

    async def leave(self, metrics: bytes) -> None:
        """Leave the metrics of this process to the master, and close the connection."""
        self._leaving = True
        if self._alive.running:
            self._alive.stop()
        if metrics:
            self._channel.send(Counted(metrics))
        if not self._closed.called and self._channel.transport is not None:
            self._channel.transport.loseConnection()
            await self._closed

    def _send_alive(self) -> None:
        self._channel.send(Alive())

    def _close(self) -> None:
        if not self._closed.called:
            self._closed.callback(None)
        if not self._leaving:
            self._abandoned()

    def _receive(self, message: Any) -> None:
        if isinstance(message, Begin):
            self.begun.callback(None)
        elif isinstance(message, Cover):
            self._cover(message)
        elif isinstance(message, Uncover):
            spawn(self._uncover(message.slot), "the sockets of another worker could not be closed")
        elif self._serving or isinstance(message, Gathered):
            self.peers.receive(message)
        elif isinstance(message, Asked):  # its parts do not run yet, or not any more
            self._channel.send(Answered(message.number, b""))

    def _cover(self, message: Cover) -> None:
        # The kernel leaves out descriptors for which this process has no room.
        found = self._channel.descriptors
        sockets = [found.popleft() for _ in range(min(message.sockets, len(found)))]
        ports = self._covering.setdefault(message.slot, [])
        for each in sockets:
            if self._factory is None:  # this process stops
                os.close(each)
                continue
            try:
                ports += listen_at([each], self._factory, self._reactor)
            except OSError as error:  # no room either
                log.warn("connections of another worker are not accepted: {error}", error=str(error))

    async def _uncover(self, slot: int) -> None:
        for port in self._covering.pop(slot, ()):
            await port.stopListening()


class SharedUnixPort(unix.Port):
    """A port at a Unix socket that belongs to another process."""

    _shouldShutdown = False  # of Twisted: a shutdown would end the socket of all processes

    def connectionLost(self, reason: Any) -> None:
        """Close the descriptor; the path stays."""
        tcp.Port.connectionLost(self, reason)


def listen_at(descriptors: Sequence[int], factory: IProtocolFactory, reactor: Any) -> list[Any]:
    """A port for each inherited socket; the descriptors are closed."""
    ports = []
    for each in descriptors:
        with socket.socket(fileno=each) as line:
            line.setblocking(False)
            if line.family == socket.AF_UNIX:
                ports.append(_listen_unix(line, factory, reactor))
            else:
                ports.append(reactor.adoptStreamPort(each, line.family, factory))
    return ports


def _listen_unix(line: socket.socket, factory: IProtocolFactory, reactor: Any) -> SharedUnixPort:
    untyped: Any = SharedUnixPort
    port = untyped._fromListeningDescriptor(reactor, line.fileno(), factory)  # noqa: SLF001 - as adoptStreamPort does
    name = line.getsockname()
    if isinstance(name, str) and name:
        port.mode = stat.S_IMODE(os.stat(name).st_mode)  # which Twisted sets again
    port.startListening()
    return port  # type: ignore[no-any-return]
