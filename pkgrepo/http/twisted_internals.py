"""
Private names of Twisted, all in this file.

A test uses each of them, so that a Twisted release that renames one fails there and not in production.
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
    """Whether bytes that are written to ``transport`` reach the socket unchanged."""
    return isinstance(transport, tcp.Connection) and not transport.TLS


def unsent(connection: tcp.Connection) -> int:
    """How many bytes of the transport's buffers the kernel has not taken yet."""
    return len(connection.dataBuffer) - connection.offset + connection._tempDataLen  # noqa: SLF001


def reserve_descriptor() -> None:
    """
    Open Twisted's reserve descriptor again, which it closes to refuse a connection when there is no other descriptor.

    Without it a failing accept is retried at once, for as long as the connection waits. Twisted opens it again after
    each use, but does not retry when that fails.
    """
    if tcp._reservedFD.available():  # noqa: SLF001
        return
    with suppress(OSError):
        os.close(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))  # Twisted would log a failure
        tcp._reservedFD.reserve()  # noqa: SLF001


def read_at_most(connection: tcp.Connection, size: int) -> None:
    """Set the size of the transport's next reads, in bytes."""
    connection.bufferSize = size
