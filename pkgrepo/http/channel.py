"""
One connection: requests in, responses out, one at a time.

=========  ====================================================  ======================================================
state      the input is                                          left by
=========  ====================================================  ======================================================
HEAD       the next request's head, perhaps not complete         a complete head (BODY, ANSWERING), a bad one (DRAIN)
BODY       the body of the request that is being answered        its last byte (ANSWERING), the response's end (DRAIN)
ANSWERING  later requests, buffered until the response is        the response's end (HEAD, or CLOSED)
           complete
BROKEN     of unknown framing, and discarded                     the response's end (DRAIN)
DRAIN      the rest of a body that is not wanted, discarded      its last byte (HEAD, or CLOSED), or a limit (CLOSED)
CLOSED     discarded; what is written is still sent              the end of the connection
=========  ====================================================  ======================================================

At most one request is answered at a time, and the next head is not parsed before. Reading is paused while the reader of
a body is behind, while the buffer is full, and while the client does not read its responses.

A refused body is drained, not cut off: closing a socket with unread bytes in the kernel sends RST, and clients then
report a broken pipe instead of the response that was on its way to them.

A connection has no timers: the site calls L{Channel.check_timeouts} once a second.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http_headers import Headers

from pkgrepo.http.answering.prepared import Repeater
from pkgrepo.http.answering.send import render_head
from pkgrepo.http.limits import ConnectionTimeouts
from pkgrepo.http.reading.body import Body, BodyFraming, BodyLost, MalformedChunks
from pkgrepo.http.reading.head import (
    BadHead,
    FieldBlock,
    check_part_of_head,
    check_version,
    parse_fields,
    parse_request_line,
)
from pkgrepo.http.reading.read_scheduling import USUAL_READ, ReadScheduler
from pkgrepo.http.responses import error_response

from .connection import Connection, Server
from .request import Request

BUFFER_LIMIT = 64 * 1024  # bytes of later requests while one is answered; reading stops above it
REQUESTS_PER_TURN = 50  # requests of one connection in one turn of the reactor; a read may bring a thousand
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class State(Enum):
    """The states of the table of this module."""

    HEAD = 1
    BODY = 2
    ANSWERING = 3
    BROKEN = 4
    DRAIN = 5
    CLOSED = 6


HEAD, BODY, ANSWERING, BROKEN, DRAIN, CLOSED = State


class Channel(Connection):
    """The server's side of one connection."""

    def __init__(self, site: Server) -> None:
        super().__init__()
        self.site = self.factory = site
        self.state = HEAD
        self.request: Request | None = None
        self.repeater: Repeater | None = None
        self.persistent = True
        self._buffer = b""
        self._fields: FieldBlock | None = None
        # reading
        self._framing: BodyFraming | None = None  # of the present body; None without one, or when it is unknown
        self._expects = False
        self._body_paused = False
        self._reading = True
        self._timeouts = ConnectionTimeouts(site.limits)
        self._reads = ReadScheduler(site.read_queue, self._update_reading)

    # The connection

    def connectionMade(self) -> None:
        """Join the site."""
        super().connectionMade()
        if not self.secure:
            self.repeater = Repeater(self, self._timeouts)
        self._timeouts.start_wait(self.site.seconds())
        if not self.site.make_room():
            self.transport.abortConnection()
        self.site.channels.add(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Leave the site, and tell the request that is being answered."""
        self.state = CLOSED
        self._buffer = b""
        self.site.forget(self)
        request, self.request = self.request, None
        if request is not None:
            request.gone = True  # before its producer is stopped
        self.stopProducing()
        if request is not None:
            request.connectionLost(reason)

    def loseConnection(self) -> None:
        """Close when everything that was written is sent."""
        if self.state is CLOSED:
            return
        self.state = CLOSED
        self._timeouts.start_wait(self.site.seconds())
        self._buffer = b""
        transport: Any = self.transport
        transport.unregisterProducer()
        transport.loseConnection()

    @property
    def waiting_since(self) -> float | None:
        """Since when the connection waits for a request or the rest of its head; None while one is answered."""
        return self._timeouts.started_at if self.state is HEAD and not self._blocked else None

    def close_idle(self) -> None:
        """Close while no request is being answered, to make room for another connection."""
        if self.secure:  # a TLS shutdown would take a while
            self.transport.abortConnection()
        else:
            self.loseConnection()

    # Input

    def dataReceived(self, data: bytes) -> None:
        """Take bytes from the client."""
        state = self.state
        if state is HEAD and not self._buffer and not self._blocked:
            self._process(data)
        elif state is BODY or state is DRAIN or state is BROKEN:
            rest = self._take_body(data)
            if len(data) >= USUAL_READ and self.state is BODY:
                self._reads.note_read(len(data), self.socket)
            if rest:
                self._process(rest)
        elif state is not CLOSED:
            self._buffer += data
            if state is HEAD and not self._blocked:
                self._process_buffer()
            self._update_reading()

    def _process_buffer(self) -> None:
        data, self._buffer = self._buffer, b""
        self._process(data)

    def _process(self, data: bytes) -> None:
        """Begin the requests in ``data``, as long as each is answered at once; buffer the rest."""
        at = begun = 0
        while at < len(data) and self.state is HEAD and not self._blocked:
            if begun == REQUESTS_PER_TURN:
                self.site.reactor.callLater(0, self._resume_input)
                break
            begun += 1
            end = data.find(b"\r\n\r\n", at)
            try:
                if end < 0 or end - at > self.site.limits.header_bytes:
                    check_part_of_head(data, at, end, self.site.limits)
                    self._timeouts.start_head(self.site.seconds())
                    break
                if self.repeater is None or not self.repeater.answer(data, at, end):
                    self._begin_request(data, at, end)
            except BadHead as bad:
                self.refuse(bad.status, str(bad))
                break
            at = end + 4
            if at < len(data) and (self.state is BODY or self.state is DRAIN):
                data, at = self._take_body(data[at:]), 0
        if self.state is HEAD or self.state is ANSWERING:
            self._buffer = data[at:]
        self._update_reading()

    def _resume_input(self) -> None:
        if self.state is HEAD and self._buffer and not self._blocked:
            self._process_buffer()

    def _begin_request(self, data: bytes, at: int, end: int) -> None:
        """Parse the head ``data[at:end]`` and process its request."""
        if data.startswith(b"\r\n", at):  # RFC 9112 section 2.2: one empty line before a request is ignored
            at += 2
        line_end = data.find(b"\r\n", at, end + 2)
        if line_end < 0:
            raise BadHead(400, "there is no request line")
        line = parse_request_line(data[at:line_end])
        raw = data[line_end + 2 : end + 2]
        fields = self._fields
        if fields is None or fields.raw != raw:  # clients repeat their fields on a kept connection
            fields = self._fields = parse_fields(raw, self.site.limits)
        check_version(line, fields)
        self._timeouts.end_head()
        self.persistent = line.is_http_1_1 and not fields.close
        request: Any = self.site.request_class(self, *self.site.take_credentials(line, fields))
        self.request = request
        if fields.chunked or fields.length:
            self._begin_body(request, fields)
        else:
            self.state = ANSWERING
        request.process()

    def _begin_body(self, request: Request, fields: FieldBlock) -> None:
        request.__dict__["body"] = Body(self, fields.length)
        self._framing = BodyFraming(fields.length, self._feed)
        self._expects = fields.expects and request.clientproto == b"HTTP/1.1"
        self._timeouts.start_body()
        self.state = BODY

    def _take_body(self, data: bytes) -> bytes:
        """Feed ``data`` to the present body; returns what is beyond its end."""
        framing = self._framing
        if framing is None:
            self._feed(data)
            return b""
        try:
            rest = framing.take(data)
        except MalformedChunks as error:
            self._fail_body(400, f"the chunks of the request body are malformed: {error}")
            return b""
        if framing.ended:
            self._framing = None
            self._end_body()
        return rest

    def _feed(self, data: bytes) -> None:
        self._timeouts.count_bytes(len(data))
        if self.state is BODY and self.request is not None:
            self.request.body.feed(data)
        elif self.state is DRAIN and self._timeouts.drained_too_much():
            self.loseConnection()

    def _end_body(self) -> None:
        self._reads.end_body()
        if self.state is BODY and self.request is not None:
            self.state = ANSWERING
            self.request.body.end()
        elif self.state is DRAIN:
            self._next()

    def _fail_body(self, status: int, sentence: str) -> None:
        """Fail the body: its rest will not come, or its end is unknown."""
        self._framing = None
        self.persistent = False
        if self.state is BODY and self.request is not None:
            self.state = BROKEN
            self.request.body.fail(BodyLost(sentence, status))
        else:
            self.loseConnection()

    def refuse(self, status: int, sentence: str) -> None:
        """Answer a malformed head, and close."""
        answer = error_response(sentence, status)
        self.persistent = False
        self.site.log_refused(self, status, sentence)
        head = render_head(answer, status, 0, answer.size)
        self.send(b"%s%sConnection: close\r\n\r\n%s" % (head, self.site.common_lines(), answer.body))
        self._framing = None
        self._drain()

    def pause_body(self) -> None:
        """Stop reading: the body's reader is behind."""
        self._body_paused = True
        self._update_reading()

    def resume_body(self) -> None:
        """Read again: the body's reader has caught up."""
        self._body_paused = False
        self._update_reading()

    def send_continue(self) -> None:
        """Send ``100 Continue`` if the client waits for it and has no response yet."""
        if self._expects and self.request is not None and not self.request.startedWriting:
            self._expects = False
            self.send(CONTINUE)

    def _update_reading(self) -> None:
        """Pause or resume reading from the socket, as the state demands."""
        if self.state is CLOSED:
            return
        full = len(self._buffer) > BUFFER_LIMIT or (self._blocked and self.state in (HEAD, ANSWERING))
        reading = not (self._body_paused or self._reads.paused or full)
        if reading != self._reading:
            self._reading = reading
            transport: Any = self.transport
            if reading:
                transport.resumeProducing()
            else:
                transport.pauseProducing()

    # Output

    def common_fields(self, request_id: bytes) -> bytes:
        """The header fields of every response, and the empty line; decides whether the connection is kept."""
        if self.persistent and (self.site.draining or not self._worth_draining()):
            self.persistent = False
        close = b"" if self.persistent else b"Connection: close\r\n"
        return b"%sX-Request-Id: %s\r\n%s\r\n" % (self.site.common_lines(), request_id, close)

    def _worth_draining(self) -> bool:
        """Whether the rest of the body is short enough to read it and keep the connection."""
        if self.state is not BODY:
            return True
        remaining = self._framing.remaining if self._framing is not None else None
        return not self._expects and remaining is not None and remaining <= self.site.limits.drain_keep_bytes

    def writeHeaders(self, _version: bytes, code: bytes, reason: bytes, headers: Headers) -> None:
        """Write the head of a response that a plain Twisted resource gives."""
        assert self.request is not None
        if b"close" in b",".join(headers.getRawHeaders(b"connection", [])).lower():
            self.persistent = False
        headers.removeHeader(b"connection")
        lines = [b"%s: %s\r\n" % (name, value) for name, values in headers.getAllRawHeaders() for value in values]
        common = self.common_fields(self.request.raw_request_id)
        self.write(b"HTTP/1.1 %s %s\r\n%s%s" % (code, reason, b"".join(lines), common))

    def requestDone(self, request: Request) -> None:
        """End the request: its response is written."""
        self.request = None
        if self.state is BODY or self.state is BROKEN:
            request.body.fail(BodyLost("the request has been answered before the end of its body"))
            self._drain()
        elif self.state is ANSWERING:
            self._next()

    def _next(self) -> None:
        if not self.persistent:
            self.loseConnection()
            return
        self.state = HEAD
        self._timeouts.start_wait(self.site.seconds())
        if self._buffer:
            self._process_buffer()

    def _drain(self) -> None:
        self.state = DRAIN
        self._timeouts.start_drain(self.site.seconds())
        self._body_paused = False
        self._update_reading()

    # Producers

    def pauseProducing(self) -> None:
        """Pause the producer, and reading: the transport's write buffer is full."""
        super().pauseProducing()
        self._update_reading()

    def resumeProducing(self) -> None:
        """Resume the producer, and reading: the transport's write buffer is empty."""
        super().resumeProducing()
        self._resume_input()
        self._update_reading()

    # Time

    def check_timeouts(self, now: float, tick: float) -> None:
        """Close or refuse what is too slow; called about once a second, ``tick`` seconds after the last call."""
        timeouts, state = self._timeouts, self.state
        progress = self._progress()
        if timeouts.write_stalled(tick, progress):
            self.transport.abortConnection()
        elif state is HEAD and not self._blocked:
            self._check_head_timeouts(now)
        elif state is BODY and not self._body_paused and not self._expects:
            if timeouts.body_too_slow(tick):
                self._fail_body(408, "the request body arrives too slowly")
        elif state is DRAIN:
            if timeouts.drain_timed_out(now):
                self.loseConnection()
        elif state is CLOSED and progress is None and timeouts.close_timed_out(now):
            # TLS is shut down by both ends, and some clients never do it.
            self.transport.abortConnection()

    def _check_head_timeouts(self, now: float) -> None:
        if self._buffer:
            if self._timeouts.head_timed_out(now):
                self.refuse(408, f"the request head took longer than {self.site.limits.header_deadline_s} seconds")
        elif self._timeouts.idle_timed_out(now, draining=self.site.draining):
            self.loseConnection()

    def _progress(self) -> tuple[int, int] | None:
        """A value that changes when the client reads something; None when nothing waits to be read."""
        unsent = self.unsent()
        if not unsent and not self._blocked and (self.transfer is None or not self.transfer.waits_for_client):
            return None
        return self.request.sentLength if self.request is not None else 0, unsent
