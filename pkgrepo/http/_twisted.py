"""
The names of Twisted that it does not promise to keep, in one place.

A test drives each of them, so that a release which renames one fails there and not in production.
"""

from __future__ import annotations

from typing import Any

from twisted.internet import tcp
from twisted.internet._producer_helpers import _PullToPush as PullToPush

__all__ = ["PullToPush", "is_plain_tcp", "read_at_most", "socket_of", "unsent"]


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


def read_at_most(connection: tcp.Connection, size: int) -> None:
    """Bytes that the transport reads at once from now on."""
    connection.bufferSize = size
