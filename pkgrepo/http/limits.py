"""Limits of one connection, and its idle, header, body-rate, drain, close and write-stall timeouts."""

from __future__ import annotations

from attrs import frozen

Progress = tuple[int, int]


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


class ConnectionTimeouts:
    """
    The clocks of one connection.

    It has no timer of its own: the channel reports what starts and how many bytes arrive, and asks about once a second
    whether a timeout has passed.
    """

    def __init__(self, limits: HttpLimits) -> None:
        self.first_request = True  # no request has been made on this connection yet
        self.started_at = 0.0  # when the wait for a request, a head, the end of a drain or of the connection began
        self._limits = limits
        self._in_head = False
        self._count = 0  # bytes in the present window
        self._drained = 0
        self._window_s = 0.0
        self._last_byte_at = 0.0
        self._stalled_s = 0.0
        self._progress: Progress = (0, 0)

    def start_wait(self, now: float) -> None:
        """Start the wait for a request, or for the end of the connection."""
        self.started_at = now
        self._in_head = False

    def start_head(self, now: float) -> None:
        """Start the header deadline, unless it runs already."""
        if not self._in_head:
            self._in_head = True
            self.started_at = now

    def end_head(self) -> None:
        """Stop the header deadline: the head is complete."""
        self.first_request = self._in_head = False

    def start_body(self) -> None:
        """Start the first window of the body's rate."""
        self._window_s, self._count = 0.0, 0

    def start_drain(self, now: float) -> None:
        """Start the deadlines for the rest of a refused body."""
        self.started_at = self._last_byte_at = now
        self._count = self._drained = 0

    def count_bytes(self, size: int) -> None:
        """Count bytes of a body, or of a drained one."""
        self._count += size
        self._drained += size

    def head_timed_out(self, now: float) -> bool:
        """Whether the header deadline has passed."""
        return now - self.started_at >= self._limits.header_deadline_s

    def idle_timed_out(self, now: float, *, draining: bool) -> bool:
        """Whether a connection without a request has been kept for long enough; less while the server stops."""
        limits = self._limits
        limit = limits.header_deadline_s if self.first_request else limits.idle_timeout_s
        return now - self.started_at >= (min(limit, limits.leave_s) if draining else limit)

    def body_too_slow(self, tick: float) -> bool:
        """Whether a window has ended in which the body came too slowly; ``tick`` seconds since the last call."""
        self._window_s += tick
        if self._window_s < self._limits.body_window_s:
            return False
        too_slow = self._count < self._limits.min_body_rate * self._window_s
        self.start_body()
        return too_slow

    def drained_too_much(self) -> bool:
        """Whether more of a refused body has been read than ``drain_bytes``."""
        return self._drained > self._limits.drain_bytes

    def drain_timed_out(self, now: float) -> bool:
        """Whether the client has stopped sending a refused body, or has sent it for too long."""
        if self._count:
            self._last_byte_at = now
            self._count = 0
        return now - self._last_byte_at >= self._limits.drain_idle_s or now - self.started_at >= self._limits.drain_s

    def close_timed_out(self, now: float) -> bool:
        """Whether the client should have confirmed the end of the connection by now."""
        return now - self.started_at >= self._limits.close_s

    def write_stalled(self, tick: float, progress: Progress | None) -> bool:
        """
        Whether the client has read nothing for ``write_stall_s``.

        ``progress`` changes whenever the client reads, and is None if nothing waits to be read. ``tick`` as above.
        """
        if progress is None or progress != self._progress:
            self._stalled_s = 0.0
        else:
            self._stalled_s += tick
        self._progress = progress or (0, 0)
        return self._stalled_s >= self._limits.write_stall_s
