"""Limits of one connection, in bytes and seconds."""

from __future__ import annotations

from attrs import frozen


@frozen
class HttpLimits:
    """
    Limits of one connection; times are checked once a second, for all connections together.

    ``header_deadline_s`` runs from the first byte of a head (on a new connection from the accept) to its end, however
    busily bytes drip in. A body must bring ``min_body_rate`` bytes a second, averaged over each ``body_window_s``
    during which we were willing to read. What is left of a refused body is read and thrown away up to
    ``drain_bytes`` and ``drain_s``, and no longer than ``drain_idle_s`` without a byte; above ``drain_keep_bytes`` the
    connection is not kept for another request.

    At most ``connections`` are open at a time; those that wait for a request the longest make room for new ones. None
    means as many as leave a third of the descriptors that the process may open to files.

    A reader that takes nothing for ``write_stall_s`` is cut off, and so is a client that does not confirm the end of
    a connection within ``close_s``. While the server stops, an idle connection is kept for ``leave_s``, so that a
    request which is on its way still finds it open.
    """

    connections: int | None = None
    header_bytes: int = 32768
    header_count: int = 200
    header_deadline_s: float = 20
    idle_timeout_s: float = 75
    min_body_rate: float = 100
    body_window_s: float = 30
    write_stall_s: float = 120
    close_s: float = 15
    leave_s: float = 1
    drain_bytes: int = 64 * 1024 * 1024
    drain_s: float = 10
    drain_idle_s: float = 1
    drain_keep_bytes: int = 64 * 1024
