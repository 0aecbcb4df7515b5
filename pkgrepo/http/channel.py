"""
One connection.

=========  ====================================================  ===================================================
state      the input is                                          left by
=========  ====================================================  ===================================================
HEAD       the next request's head, perhaps not complete         a complete head (BODY, HELD), a bad one (DRAIN)
BODY       the body of the request being handled                 its last byte (HELD), the answer's end (DRAIN)
HELD       later requests', kept until the answer is complete    the answer's end (HEAD, or CLOSED)
DEAF       not to be understood any more, thrown away            the answer's end (DRAIN)
DRAIN      the rest of a body nobody wants, thrown away          its last byte (HEAD, or CLOSED), or a limit (CLOSED)
CLOSED     thrown away; what is written still goes out           the end of the connection
=========  ====================================================  ===================================================

At most one request is being answered at a time, and the next head is not even looked at before. Reading is paused
while a body's reader is behind, while too much is held, and while answers pile up unread.

A refused body is drained rather than cut off: closing with unread bytes in the kernel makes it send RST, and clients
then report a broken pipe in place of the answer that was on its way to them.

No timers per connection: the site's sweep calls L{Channel.sweep} once a second.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Protocol

from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http_headers import Headers

from pkgrepo.http.answering.head import render_head
from pkgrepo.http.answering.outlet import Outlet
from pkgrepo.http.reading.body import Body, BodyLost
from pkgrepo.http.reading.framing import BodyFraming, MalformedChunks
from pkgrepo.http.reading.head import (
    BadHead,
    FieldBlock,
    check_version,
    find_early_fault,
    parse_fields,
    parse_request_line,
)
from pkgrepo.http.reading.read_scheduling import USUAL_READ, Pace, Turns
from pkgrepo.http.reading.timeouts import Patience

from .answers import error_answer
from .connection import DirectTransfer, Server
from .limits import HttpLimits
from .processing import ProcessedRequest
from .request import Request

HELD_LIMIT = 64 * 1024  # bytes of later requests kept while one is answered; reading stops above it
TURN = 50  # requests begun before other connections get their turn; a read may bring a thousand
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class State(Enum):
    """See the module's table."""

    HEAD = 1
    BODY = 2
    HELD = 3
    DEAF = 4
    DRAIN = 5
    CLOSED = 6


HEAD, BODY, HELD, DEAF, DRAIN, CLOSED = State


class ChannelServer(Server, Protocol):
    """What a channel uses of the server beside what requests use."""

    limits: HttpLimits
    turns: Turns
    draining: bool  # whether the server is about to stop, and every answer closes its connection
    channels: set[Channel]

    def make_room(self) -> bool:
        """Whether there may be another connection; some that wait for a request are closed when there are too many."""

    def forget(self, channel: Channel) -> None:
        """A connection has ended."""

    def stamp(self) -> bytes:
        """The header lines that all answers of one second share."""

    def log_refused(self, channel: Channel, status: int, sentence: str) -> None:
        """Write the access log's line for a head that made no request."""


class Channel(Outlet):
    """The server's side of one connection."""

    def __init__(self, site: ChannelServer) -> None:
        super().__init__()
        self.site = self.factory = site
        self.state = HEAD
        self.request: Request | None = None
        self.transfer: DirectTransfer | None = None
        self.persistent = True
        self._held = b""
        self._fields: FieldBlock | None = None
        # reading
        self._framing: BodyFraming | None = None  # of the body at hand, unless it is beyond understanding
        self._expects = False
        self._body_paused = False
        self._reading = True
        self._patience = Patience(site.limits)
        self._pace = Pace(site.turns, self._steer)

    # The connection

    def connectionMade(self) -> None:
        """Join the site."""
        super().connectionMade()
        self._patience.begin_wait(self.site.seconds())
        if not self.site.make_room():
            self.transport.abortConnection()  # type: ignore[union-attr]
        self.site.channels.add(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Leave the site, and tell the request in hand."""
        self.state = CLOSED
        self._held = b""
        self.site.forget(self)
        request, self.request = self.request, None
        if request is not None:
            request.gone = True  # before its producer is stopped, and wonders why
        self.stopProducing()
        if request is not None:
            request.connectionLost(reason)

    def loseConnection(self) -> None:
        """Close when everything written has gone out."""
        if self.state is CLOSED:
            return
        self.state = CLOSED
        self._patience.begin_wait(self.site.seconds())
        self._held = b""
        transport: Any = self.transport
        transport.unregisterProducer()
        transport.loseConnection()

    @property
    def waiting_since(self) -> float | None:
        """Since when the client may send a request and has not (or not all of its head); None while one is handled."""
        return self._patience.since if self.state is HEAD and not self._blocked else None

    def leave(self) -> None:
        """Make room for another connection."""
        if self.secure:  # saying goodbye would take a while
            self.transport.abortConnection()  # type: ignore[union-attr]
        else:
            self.loseConnection()

    # Input

    def dataReceived(self, data: bytes) -> None:
        """Bytes from the client."""
        state = self.state
        if state is HEAD and not self._held and not self._blocked:
            self._run(data)
        elif state is BODY or state is DRAIN or state is DEAF:
            rest = self._take_body(data)
            if len(data) >= USUAL_READ and self.state is BODY:
                self._pace.took(len(data), self.socket)
            if rest:
                self._run(rest)
        elif state is not CLOSED:
            self._held += data
            if state is HEAD and not self._blocked:
                self._continue()
            self._steer()

    def _continue(self) -> None:
        held, self._held = self._held, b""
        self._run(held)

    def _run(self, data: bytes) -> None:
        """Begin the requests in ``data`` one after the other, as long as they are answered at once; hold the rest."""
        at = begun = 0
        while at < len(data) and self.state is HEAD and not self._blocked:
            if begun == TURN:
                self.site.reactor.callLater(0, self._go_on)
                break
            begun += 1
            end = data.find(b"\r\n\r\n", at)
            if end < 0 or end - at > self.site.limits.header_bytes:
                self._judge_part(data, at, end)
                break
            try:
                self._begin(data, at, end)
            except BadHead as bad:
                self.refuse(bad.status, str(bad))
                break
            at = end + 4
            if at < len(data) and (self.state is BODY or self.state is DRAIN):
                data, at = self._take_body(data[at:]), 0
        if self.state is HEAD or self.state is HELD:
            self._held = data[at:]
        self._steer()

    def _go_on(self) -> None:
        if self.state is HEAD and self._held and not self._blocked:
            self._continue()

    def _judge_part(self, data: bytes, at: int, end: int) -> None:
        """Refuse a head that is too long, or that has gone wrong before its end."""
        if (len(data) if end < 0 else end) - at > self.site.limits.header_bytes:
            self.refuse(431, f"the request head is longer than {self.site.limits.header_bytes} bytes")
        elif fault := find_early_fault(data, at):
            self.refuse(400, fault)
        else:
            self._patience.begin_head(self.site.seconds())

    def _begin(self, data: bytes, at: int, end: int) -> None:
        """Handle the request whose head is ``data[at:end]``."""
        if data.startswith(b"\r\n", at):  # RFC 9112 section 2.2: one empty line before a request is forgiven
            at += 2
        line_end = data.find(b"\r\n", at, end + 2)
        if line_end < 0:
            raise BadHead(400, "there is no request line")
        line = parse_request_line(data[at:line_end])
        raw = data[line_end + 2 : end + 2]
        fields = self._fields
        if fields is None or fields.raw != raw:  # a client repeats its fields on a kept connection
            fields = self._fields = parse_fields(raw, self.site.limits)
        check_version(line, fields)
        self._patience.end_head()
        self.persistent = line.modern and not fields.close
        request = self.request = ProcessedRequest(self, line, fields)
        if fields.chunked or fields.length:
            self._begin_body(request, fields)
        else:
            self.state = HELD
        request.process()

    def _begin_body(self, request: Request, fields: FieldBlock) -> None:
        request.__dict__["body"] = Body(self, fields.length)
        self._framing = BodyFraming(fields.length, self._feed)
        self._expects = fields.expects and request.clientproto == b"HTTP/1.1"
        self._patience.begin_body()
        self.state = BODY

    def _take_body(self, data: bytes) -> bytes:
        """Use ``data`` for the body at hand; what is beyond its end comes back."""
        framing = self._framing
        if framing is None:
            self._feed(data)
            return b""
        try:
            rest = framing.take(data)
        except MalformedChunks as error:
            self._break_body(400, f"the chunks of the request body are malformed: {error}")
            return b""
        if framing.ended:
            self._framing = None
            self._end_body()
        return rest

    def _feed(self, data: bytes) -> None:
        self._patience.count(len(data))
        if self.state is BODY and self.request is not None:
            self.request.body.feed(data)
        elif self.state is DRAIN and self._patience.drained_too_much():
            self.loseConnection()

    def _end_body(self) -> None:
        self._pace.end()
        if self.state is BODY and self.request is not None:
            self.state = HELD
            self.request.body.end()
        elif self.state is DRAIN:
            self._next()

    def _break_body(self, status: int, sentence: str) -> None:
        """The rest of the body will not come, or cannot be told apart from the next request."""
        self._framing = None
        self.persistent = False
        if self.state is BODY and self.request is not None:
            self.state = DEAF
            self.request.body.fail(BodyLost(sentence, status))
        else:
            self.loseConnection()

    def refuse(self, status: int, sentence: str) -> None:
        """Answer a head that makes no request, and close."""
        answer = error_answer(sentence, status)
        self.persistent = False
        self.site.log_refused(self, status, sentence)
        head = render_head(answer, status, 0, answer.size)
        self.send(b"%s%sConnection: close\r\n\r\n%s" % (head, self.site.stamp(), answer.body))
        self._framing = None
        self._drain()

    # What a body asks for

    def pause_body(self) -> None:
        """The reader is behind."""
        self._body_paused = True
        self._steer()

    def resume_body(self) -> None:
        """The reader has caught up."""
        self._body_paused = False
        self._steer()

    def invite_body(self) -> None:
        """Send ``100 Continue`` if the client waits for it and has no answer yet."""
        if self._expects and self.request is not None and not self.request.startedWriting:
            self._expects = False
            self.send(CONTINUE)

    def _steer(self) -> None:
        """Read, or stop reading."""
        if self.state is CLOSED:
            return
        paused = self._body_paused or self._pace.awaits_turn
        reading = not (paused or len(self._held) > HELD_LIMIT or (self._blocked and self.state in (HEAD, HELD)))
        if reading != self._reading:
            self._reading = reading
            transport: Any = self.transport
            if reading:
                transport.resumeProducing()
            else:
                transport.pauseProducing()

    # Output

    def common_fields(self, request_id: bytes) -> bytes:
        """The fields that every answer has, and the empty line; decides whether the connection outlives it."""
        if self.persistent and (self.site.draining or not self._outlives_body()):
            self.persistent = False
        close = b"" if self.persistent else b"Connection: close\r\n"
        return b"%sX-Request-Id: %s\r\n%s\r\n" % (self.site.stamp(), request_id, close)

    def _outlives_body(self) -> bool:
        """Whether what is left of the body is worth reading to keep the connection."""
        if self.state is not BODY:
            return True
        remaining = self._framing.remaining if self._framing is not None else None
        return not self._expects and remaining is not None and remaining <= self.site.limits.drain_keep_bytes

    def writeHeaders(self, _version: bytes, code: bytes, reason: bytes, headers: Headers) -> None:
        """The head of an answer that is written the old way, by a Resource."""
        assert self.request is not None
        if b"close" in b",".join(headers.getRawHeaders(b"connection", [])).lower():
            self.persistent = False
        headers.removeHeader(b"connection")
        lines = [b"%s: %s\r\n" % (name, value) for name, values in headers.getAllRawHeaders() for value in values]
        self.write(b"HTTP/1.1 %s %s\r\n%s%s" % (code, reason, b"".join(lines), self.common_fields(self.request.rid)))

    def requestDone(self, request: Request) -> None:
        """The answer is written."""
        self.request = None
        if self.state is BODY or self.state is DEAF:
            request.body.fail(BodyLost("the request has been answered before the end of its body"))
            self._drain()
        elif self.state is HELD:
            self._next()

    def _next(self) -> None:
        if not self.persistent:
            self.loseConnection()
            return
        self.state = HEAD
        self._patience.begin_wait(self.site.seconds())
        if self._held:
            self._continue()

    def _drain(self) -> None:
        self.state = DRAIN
        self._patience.begin_drain(self.site.seconds())
        self._body_paused = False
        self._steer()

    # Producers

    def pauseProducing(self) -> None:
        """The transport holds enough unsent bytes."""
        super().pauseProducing()
        self._steer()

    def resumeProducing(self) -> None:
        """The transport has sent what it held."""
        super().resumeProducing()
        self._go_on()
        self._steer()

    # Time

    def sweep(self, now: float, tick: float) -> None:
        """Hold the connection to the limits; called about once a second, ``tick`` seconds after the last time."""
        patience, state = self._patience, self.state
        progress = self._progress()
        if patience.reader_stalls(tick, progress):
            self.transport.abortConnection()  # type: ignore[union-attr]
        elif state is HEAD and not self._blocked:
            self._sweep_head(now)
        elif state is BODY and not self._body_paused and not self._expects:
            if patience.body_crawls(tick):
                self._break_body(408, "the request body arrives too slowly")
        elif state is DRAIN:
            if patience.drain_is_over(now):
                self.loseConnection()
        elif state is CLOSED and progress is None and patience.close_is_late(now):
            # Under TLS the other end must say goodbye too, and some never do.
            self.transport.abortConnection()  # type: ignore[union-attr]

    def _sweep_head(self, now: float) -> None:
        if self._held:
            if self._patience.head_is_late(now):
                self.refuse(408, f"the request head took longer than {self.site.limits.header_deadline_s} seconds")
        elif self._patience.request_is_late(now, leaving=self.site.draining):
            self.loseConnection()

    def _progress(self) -> tuple[int, int] | None:
        """What changes when the client takes something; None when nothing waits for it."""
        held = self.unsent()
        if not held and not self._blocked and (self.transfer is None or not self.transfer.waits_for_client):
            return None
        return self.request.sentLength if self.request is not None else 0, held
