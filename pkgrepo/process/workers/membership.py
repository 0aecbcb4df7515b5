"""A worker's place among the workers of a master."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocolFactory
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from .child import CHANNEL, FIRST_SOCKET
from .inherited import listen_at
from .messages import (
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
from .peers import WorkerPeers

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
            Deferred.fromCoroutine(self._uncover(message.slot))
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
