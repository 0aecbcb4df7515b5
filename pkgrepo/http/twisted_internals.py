"""
The names of Twisted that it does not promise to keep, in one place.

A test drives each of them, so that a release which renames one fails there and not in production.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from twisted.internet import tcp
from twisted.internet._producer_helpers import _PullToPush as PullToPush

__all__ = ["PullToPush", "is_plain_tcp", "read_at_most", "reserve_descriptor", "socket_of", "unsent"]


def socket_of(transport: Any) -> tcp.Connection | None:
    """The TCP transport at the bottom of ``transport`` (below TLS), or None when there is none."""
    while transport is not None and not isinstance(transport, tcp.Connection):
        transport = getattr(transport, "transport", None)
    return transport


def is_plain_tcp(transport: Any) -> bool:
    """Whether bytes given to ``transport`` reach the socket as they are."""
    return isinstance(transport, tcp.Connection) and not transport.TLS


def unsent(connection: tcp.Connection) -> int:
    """Bytes that the transport holds and the kernel has not taken yet."""
    return len(connection.dataBuffer) - connection.offset + connection._tempDataLen  # noqa: SLF001


def reserve_descriptor() -> None:
    """
    Have Twisted open its reserve again, the descriptor that it closes to refuse a connection when there is no other.

    Without it an accept that fails is tried again at once, for as long as the connection waits. Twisted opens it anew
    after each use, and never again when that fails.
    """
    if tcp._reservedFD.available():  # noqa: SLF001
        return
    with suppress(OSError):
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))  # Twisted would log a failure
        tcp._reservedFD.reserve()  # noqa: SLF001


def read_at_most(connection: tcp.Connection, size: int) -> None:
    """Bytes that the transport reads at once from now on."""
    connection.bufferSize = size
