"""The factory of connections, and what all connections of one server share."""

from __future__ import annotations

import os
import resource as process_limits
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from heapq import nsmallest
from itertools import count
from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IReactorTime
from twisted.internet.task import LoopingCall
from twisted.internet.threads import deferToThread
from twisted.logger import Logger
from twisted.web import server
from twisted.web.resource import IResource

from pkgrepo.http.answering.conditional import render_date
from pkgrepo.http.answering.dispatch import ProcessedRequest
from pkgrepo.http.answering.prepared import PreparedResponse
from pkgrepo.http.reading.head import TakeCredentials
from pkgrepo.http.reading.proxies import TrustedProxies
from pkgrepo.http.reading.read_scheduling import ReadQueue

from .channel import Channel
from .limits import HttpLimits
from .repeats import LogRepeat, Repeat, Repeats
from .request import Request
from .twisted_internals import reserve_descriptor

__all__ = ["HttpLimits", "Site", "make_site"]

CHECK_EVERY_S = 1.0
LATE_S = 2.0  # seconds between two checks that show that this process stood still
MOST_CONNECTIONS = 100_000  # where nothing else bounds them; some 400 MB
CLOSED_AT_ONCE = 64  # idle connections, when there are too many; finding them takes a millisecond or two

InThread = Callable[..., Deferred[Any]]
RequestContext = Callable[[], AbstractContextManager[object]]

_log = Logger()


class AccessLog(Protocol):
    """Gets every request once, when its response is written or its client has left."""

    def request(self, request: Request) -> None:
        """Log a request that has ended."""

    def refused(self, client_address: str, status: int, sentence: str) -> None:
        """Log a malformed head."""

    def repeater(self, request: Request) -> LogRepeat:
        """A function that logs a further request with the same bytes as this one and the same response."""


class Site(server.Site):
    """
    The factory of all connections; checks their timeouts once a second.

    ``channels`` are the open connections; ``active`` counts the requests being answered, ``request_count`` all requests
    since the start. Requests are of ``request_class``.
    """

    noisy = False

    def __init__(
        self,
        resource: IResource,
        *,
        reactor: Any,
        find_prepared: Callable[[Request], PreparedResponse | None] | None,
        request_context: RequestContext,
        limits: HttpLimits,
        trusted_proxies: TrustedProxies,
        access_log: AccessLog | None,
        server_header: bytes,
        in_thread: InThread,
        take_credentials: TakeCredentials,
        hsts_s: int,
    ) -> None:
        untyped: Any = super()
        untyped.__init__(resource, reactor=reactor, parsePOSTFormSubmission=False)
        self.find_prepared = find_prepared
        self.request_context = request_context
        self.limits = limits
        self.trusted_proxies = trusted_proxies
        self.access_log = access_log
        self.repeats = Repeats(trusted_proxies.trusts)
        self.channels: set[Channel] = set()
        self.draining = False
        self.request_count = 0
        self.seconds: Callable[[], float] = reactor.seconds
        self.in_thread = in_thread
        self.take_credentials = take_credentials
        self.request_class: Callable[..., Any] = ProcessedRequest
        self.read_queue = ReadQueue(reactor)
        server_line = b"Server: %s\r\n" % server_header if server_header else b""
        # Without includeSubDomains: other hosts below this one's name are not ours (RFC 6797 section 14.4).
        hsts_line = b"Strict-Transport-Security: max-age=%d\r\n" % hsts_s if hsts_s else b""
        self._fixed_fields = server_line + hsts_line + b"X-Content-Type-Options: nosniff\r\nDate: "
        self._common_lines, self._common_lines_second = b"", 0
        self._id_prefix = b"%s-" % os.urandom(4).hex().encode("ascii")
        self._id_count = count(1)
        self._most_connections = _most_connections() if limits.connections is None else limits.connections
        self._checking = LoopingCall(self._check_timeouts)
        self._checking.clock = reactor
        self._is_checking = False
        self._checked_at = 0.0
        self._was_late = False
        self._drained: list[Deferred[None]] = []

    # The factory

    def buildProtocol(self, addr: IAddress | None) -> Any:  # noqa: ARG002 - Twisted's signature
        """The channel of a new connection."""
        if not self._checking.running:
            self._checked_at = self.seconds()
            self._checking.start(CHECK_EVERY_S, now=False)
        return Channel(self)

    def make_room(self) -> bool:
        """Whether one more connection may be open; closes the longest idle ones when there are too many."""
        if len(self.channels) < self._most_connections:
            return True
        waiting = [channel for channel in self.channels if channel.waiting_since is not None]
        idlest = nsmallest(CLOSED_AT_ONCE, waiting, key=lambda channel: channel.waiting_since or 0.0)
        for channel in idlest:
            channel.close_idle()
        if idlest:
            _log.debug("closed {count} waiting connections, for there are too many", count=len(idlest))
        return bool(idlest)

    def startFactory(self) -> None:
        """Nothing to open."""

    def stopFactory(self) -> None:
        """The port is closed; the checks go on until the last connection ends."""
        self._stop_checking()

    def acceptableProtocols(self) -> list[bytes]:
        """HTTP/1.1 only: HTTP/2 needs a proxy in front."""
        return [b"http/1.1"]

    def forget(self, channel: Channel) -> None:
        """Remove a channel whose connection has ended."""
        self.channels.discard(channel)
        if not self.channels:
            if not self.numPorts:
                self._stop_checking()
            waiting, self._drained = self._drained, []
            for done in waiting:
                done.callback(None)

    def _stop_checking(self) -> None:
        # Not within a check: a client that learns of a closed connection may open one at once, and a LoopingCall that
        # is stopped and started within its own call goes on twice.
        if self._checking.running and not self.channels and not self._is_checking:
            self._checking.stop()

    # What answers need

    def common_lines(self) -> bytes:
        """The header lines that all responses of one second have in common."""
        now = int(time.time())
        if now != self._common_lines_second:
            self._common_lines_second = now
            self._common_lines = self._fixed_fields + render_date(now) + b"\r\n"
        return self._common_lines

    def next_request_id(self) -> bytes:
        """An id that no other request of this or any other process has."""
        return self._id_prefix + b"%x" % next(self._id_count)

    def log_request(self, request: Any) -> None:
        """Count a request that has ended, and write the access log's line for it."""
        self.request_count += 1
        if self.access_log is not None:
            try:
                self.access_log.request(request)
            except Exception:  # noqa: BLE001 - a request must not fail because its log line did
                _log.failure("the access log failed")

    def repeat_logger(self, request: Request) -> LogRepeat | None:
        """What logs the repetitions of a request; None without an access log."""
        return None if self.access_log is None else self.access_log.repeater(request)

    def log_repeat(self, repeat: Repeat, client_address: str, request_id: bytes, started: float) -> None:
        """Count a request that was answered like an earlier one, and write the access log's line for it."""
        self.request_count += 1
        try:
            for count_ in repeat.counts:
                count_(client_address)
            if repeat.log is not None:
                repeat.log(client_address, request_id, self.seconds() - started)
        except Exception:  # noqa: BLE001 - as above
            _log.failure("the access log failed")

    def log_refused(self, channel: Channel, status: int, sentence: str) -> None:
        """Write the access log's line for a malformed head."""
        if self.access_log is not None:
            try:
                self.access_log.refused(getattr(channel.getPeer(), "host", ""), status, sentence)
            except Exception:  # noqa: BLE001 - as above
                _log.failure("the access log failed")

    # Time

    @property
    def active(self) -> int:
        """How many requests are being answered."""
        return sum(channel.request is not None for channel in self.channels)

    def _check_timeouts(self) -> None:
        now = self.seconds()
        tick, self._checked_at = now - self._checked_at, now
        self._was_late = tick >= LATE_S and not self._was_late
        if self._was_late:
            return  # this process stood still, and has not read what clients sent meanwhile
        reserve_descriptor()
        self._is_checking = True
        for channel in list(self.channels):
            try:
                channel.check_timeouts(now, tick)
            except Exception:  # noqa: BLE001 - a failure of one connection must not end the checks of all
                _log.failure("sweeping a connection failed")
        self._is_checking = False
        self._stop_checking()

    def drain(self, deadline: float) -> Deferred[None]:
        """
        Stop gracefully: from now on every response closes its connection, and idle ones are closed within two seconds.

        The Deferred fires when no connection is left; those still open after ``deadline`` seconds are aborted. Call
        this after the port has stopped listening.
        """
        self.draining = True
        done: Deferred[None] = Deferred()
        if not self.channels:
            done.callback(None)
            return done
        cutting = self.reactor.callLater(deadline, self._abort_all)

        def stop_clock(_: None) -> None:
            if cutting.active():
                cutting.cancel()

        self._drained.append(done)
        return done.addCallback(stop_clock)

    def _abort_all(self) -> None:
        _log.warn("cutting {count} connections that outlived the stop", count=len(self.channels))
        for channel in list(self.channels):
            channel.transport.abortConnection()


def _most_connections() -> int:
    limit, _ = process_limits.getrlimit(process_limits.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if limit == process_limits.RLIM_INFINITY else min(MOST_CONNECTIONS, limit * 2 // 3)


def make_site(
    resource: IResource,
    *,
    reactor: IReactorTime | Any,
    find_prepared: Callable[[Request], PreparedResponse | None] | None = None,
    request_context: RequestContext = nullcontext,
    limits: HttpLimits | None = None,
    trusted_proxies: TrustedProxies | Sequence[str] = (),
    access_log: AccessLog | None = None,
    server_header: str = "pkgrepo",
    in_thread: InThread = deferToThread,
    take_credentials: TakeCredentials = lambda line, fields: (line, fields),
    hsts_s: int = 0,
) -> Site:
    """
    A factory to listen with.

    ``find_prepared`` gets every GET and HEAD without a body before ``resource`` does: it returns what is sent at once,
    or None. Each request is processed in a context that ``request_context`` makes, until its handler first waits.
    ``trusted_proxies`` are networks ("10.0.0.0/8"), or "unix". An empty ``server_header`` is not sent. ``in_thread``
    runs a function in the pool of threads that waits for disks. ``take_credentials`` gets each head before all else
    does, and returns it with credentials from other places in the Authorization header. For ``hsts_s`` seconds browsers
    use https alone with this host (RFC 6797); 0 says nothing of it.
    """
    if not isinstance(trusted_proxies, TrustedProxies):
        trusted_proxies = TrustedProxies(trusted_proxies)
    return Site(
        resource,
        reactor=reactor,
        find_prepared=find_prepared,
        request_context=request_context,
        limits=limits or HttpLimits(),
        trusted_proxies=trusted_proxies,
        access_log=access_log,
        server_header=server_header.encode("ascii"),
        in_thread=in_thread,
        take_credentials=take_credentials,
        hsts_s=hsts_s,
    )
