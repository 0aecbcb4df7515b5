"""
The ports of a worker, at listening sockets that its master has bound.

At the end a worker stops to accept, and the master's sockets stay as they are: a Unix socket keeps its path and its
mode.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Sequence
from typing import Any

from twisted.internet import tcp, unix
from twisted.internet.interfaces import IProtocolFactory


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
