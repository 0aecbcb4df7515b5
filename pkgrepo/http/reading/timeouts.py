"""How long a connection's client has kept us waiting, and whether that is too long."""

from __future__ import annotations

from pkgrepo.http.limits import HttpLimits

Progress = tuple[int, int]


class Patience:
    """
    The clocks of one connection.

    Nothing here runs by itself: the connection says what begins and how many bytes come, and asks once in a while.
    """

    def __init__(self, limits: HttpLimits) -> None:
        self.fresh = True  # no request has been made yet
        self._limits = limits
        self._since = 0.0  # when what we wait for began
        self._in_head = False
        self._count = 0  # bytes since the last verdict
        self._total = 0
        self._waited = 0.0
        self._quiet_since = 0.0
        self._stalled = 0.0
        self._progress: Progress = (0, 0)

    def begin_wait(self, now: float) -> None:
        """A request may come, or the end."""
        self._since = now
        self._in_head = False

    @property
    def since(self) -> float:
        """When what is waited for began."""
        return self._since

    def begin_head(self, now: float) -> None:
        """A part of a head has come, perhaps again."""
        if not self._in_head:
            self._in_head = True
            self._since = now

    def end_head(self) -> None:
        """A head is complete."""
        self.fresh = self._in_head = False

    def begin_body(self) -> None:
        """A body is going to come."""
        self._waited, self._count = 0.0, 0

    def begin_drain(self, now: float) -> None:
        """What comes from now on is thrown away."""
        self._since = self._quiet_since = now
        self._count = self._total = 0

    def count(self, size: int) -> None:
        """Bytes of a body have come."""
        self._count += size
        self._total += size

    def head_is_late(self, now: float) -> bool:
        """Whether the rest of a head should be there by now."""
        return now - self._since >= self._limits.header_deadline_s

    def request_is_late(self, now: float, *, leaving: bool) -> bool:
        """Whether a connection without a request has been kept long enough."""
        limits = self._limits
        limit = limits.header_deadline_s if self.fresh else limits.idle_timeout_s
        return now - self._since >= (min(limit, limits.leave_s) if leaving else limit)

    def body_crawls(self, tick: float) -> bool:
        """Whether too little of a body has come in the window that ends now; ``tick`` seconds have passed."""
        self._waited += tick
        if self._waited < self._limits.body_window_s:
            return False
        crawls = self._count < self._limits.min_body_rate * self._waited
        self.begin_body()
        return crawls

    def drained_too_much(self) -> bool:
        """Whether more has been thrown away than a client can expect."""
        return self._total > self._limits.drain_bytes

    def drain_is_over(self, now: float) -> bool:
        """Whether the client has stopped sending, or does not stop."""
        if self._count:
            self._quiet_since = now
            self._count = 0
        return now - self._quiet_since >= self._limits.drain_idle_s or now - self._since >= self._limits.drain_s

    def close_is_late(self, now: float) -> bool:
        """Whether the other end should have confirmed the end of the connection by now."""
        return now - self._since >= self._limits.close_s

    def reader_stalls(self, tick: float, progress: Progress | None) -> bool:
        """Whether the client takes nothing; ``progress`` changes when it does, and is None if nothing waits for it."""
        if progress is None or progress != self._progress:
            self._stalled = 0.0
        else:
            self._stalled += tick
        self._progress = progress or (0, 0)
        return self._stalled >= self._limits.write_stall_s
