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
from typing import TYPE_CHECKING, Any

from twisted.internet.interfaces import IPushProducer, ISSLTransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.http_headers import Headers
from zope.interface import implementer

from pkgrepo.http._twisted import ChunkedDecoder, MalformedChunks, PullToPush, is_plain_tcp, socket_of, unsent
from pkgrepo.http.answer_head import status_line
from pkgrepo.http.body import Body, BodyLost
from pkgrepo.http.head import BadHead, FieldBlock, check_version, parse_fields, parse_request_line
from pkgrepo.http.request import Request

if TYPE_CHECKING:
    from pkgrepo.http.site import Site
    from pkgrepo.http.transfer import SendFile

HELD_LIMIT = 64 * 1024  # bytes of later requests kept while one is answered; reading stops above it
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


@implementer(IPushProducer)
class Channel(Protocol):
    """The server's side of one connection."""

    def __init__(self, site: Site) -> None:
        self.site = self.factory = site
        self.state = HEAD
        self.request: Request | None = None
        self.transfer: SendFile | None = None
        self.persistent = True
        self.secure = False
        self.socket: Any = None  # the TCP transport, also below TLS
        self.direct = False  # whether bytes reach the socket as we write them
        self._held = b""
        self._running = False
        self._fields: FieldBlock | None = None
        self._producer: Any = None
        self._producer_streams = True
        # reading
        self._decoder: Any = None  # of a chunked body
        self._remaining: int | None = 0  # of a body with a length; None when that is unknown
        self._leftover = b""
        self._expects = False
        self._body_paused = False
        self._blocked = False  # the transport's write buffer is full
        self._reading = True
        # clocks; see sweep
        self._since = 0.0
        self._fresh = True
        self._held_partial = False
        self._waited = 0.0
        self._window = 0
        self._drained = 0
        self._quiet = 0.0
        self._stalled = 0.0
        self._progress = (0, 0)

    # The connection

    def connectionMade(self) -> None:
        """Join the site."""
        transport: Any = self.transport
        self.socket = socket_of(transport)
        self.direct = is_plain_tcp(transport)
        self.secure = ISSLTransport(transport, None) is not None
        if self.socket is not None:
            self.socket.setTcpNoDelay(True)
            self.socket.setTcpKeepAlive(True)
        self._since = self.site.seconds()
        transport.registerProducer(self, True)
        self.site.channels.add(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Leave the site, and tell the request in hand."""
        self.state = CLOSED
        self._held = b""
        self.site.forget(self)
        self.stopProducing()
        request, self.request = self.request, None
        if request is not None:
            request.connectionLost(reason)

    def getPeer(self) -> Any:
        """The address of the other end."""
        return self.transport.getPeer()  # type: ignore[union-attr]

    def getHost(self) -> Any:
        """The address of our end."""
        return self.transport.getHost()  # type: ignore[union-attr]

    def loseConnection(self) -> None:
        """Close when everything written has gone out."""
        if self.state is CLOSED:
            return
        self.state = CLOSED
        self._held = b""
        transport: Any = self.transport
        transport.unregisterProducer()
        transport.loseConnection()

    # Input

    def dataReceived(self, data: bytes) -> None:
        """Bytes from the client."""
        state = self.state
        if state is HEAD and not self._held and not self._blocked:
            self._run(data)
        elif state is BODY or state is DRAIN or state is DEAF:
            rest = self._take_body(data)
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
        self._running = True
        at = 0
        while at < len(data) and self.state is HEAD and not self._blocked:
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
        self._running = False
        if self.state is HEAD or self.state is HELD:
            self._held = data[at:]
        self._steer()

    def _judge_part(self, data: bytes, at: int, end: int) -> None:
        """Refuse a head that is too long, or that has gone wrong before its end."""
        if (len(data) if end < 0 else end) - at > self.site.limits.header_bytes:
            self.refuse(431, f"the request head is longer than {self.site.limits.header_bytes} bytes")
        elif data.count(b"\n", at) != data.count(b"\r\n", at):
            self.refuse(400, "a header line does not end with CR LF")
        elif not self._held_partial:
            self._held_partial = True
            self._since = self.site.seconds()

    def _begin(self, data: bytes, at: int, end: int) -> None:
        """Handle the request whose head is ``data[at:end]``."""
        if data.startswith(b"\r\n", at):  # RFC 9112 section 2.2: one empty line before a request is forgiven
            at += 2
        line_end = data.find(b"\r\n", at, end + 2)
        line = parse_request_line(data[at:line_end])
        raw = data[line_end + 2 : end + 2]
        fields = self._fields
        if fields is None or fields.raw != raw:  # a client repeats its fields on a kept connection
            fields = self._fields = parse_fields(raw, self.site.limits)
        check_version(line, fields)
        self._fresh = self._held_partial = False
        self.persistent = line.modern and not fields.close
        request = self.request = Request(self, line, fields)
        if fields.chunked or fields.length:
            self._begin_body(request, fields)
        else:
            self.state = HELD
        request.process()

    def _begin_body(self, request: Request, fields: FieldBlock) -> None:
        request.__dict__["body"] = Body(self, fields.length)
        self._decoder = ChunkedDecoder(self._feed, self._end_chunks) if fields.chunked else None
        self._remaining = fields.length
        self._expects = fields.expects and request.clientproto == b"HTTP/1.1"
        self._waited, self._window = 0.0, 0
        self.state = BODY

    def _take_body(self, data: bytes) -> bytes:
        """Use ``data`` for the body at hand; what is beyond its end comes back."""
        if self._decoder is not None:
            try:
                self._decoder.dataReceived(data)
            except MalformedChunks as error:
                self._break_body(400, f"the chunks of the request body are malformed: {error}")
            rest, self._leftover = self._leftover, b""
            return rest
        remaining = self._remaining
        if remaining is None or len(data) < remaining:
            if remaining is not None:
                self._remaining = remaining - len(data)
            self._feed(data)
            return b""
        self._remaining = 0
        if remaining:
            self._feed(data if len(data) == remaining else data[:remaining])
        self._end_body()
        return data[remaining:]

    def _feed(self, data: bytes) -> None:
        self._window += len(data)
        if self.state is BODY and self.request is not None:
            self.request.body.feed(data)
        elif self.state is DRAIN:
            self._drained += len(data)
            if self._drained > self.site.limits.drain_bytes:
                self.loseConnection()

    def _end_chunks(self, rest: bytes) -> None:
        self._decoder, self._remaining = None, 0
        self._leftover = rest
        self._end_body()

    def _end_body(self) -> None:
        if self.state is BODY and self.request is not None:
            self.state = HELD
            self.request.body.end()
        elif self.state is DRAIN:
            self._next()

    def _break_body(self, status: int, sentence: str) -> None:
        """The rest of the body will not come, or cannot be told apart from the next request."""
        self._decoder, self._remaining = None, None
        self.persistent = False
        if self.state is BODY and self.request is not None:
            self.state = DEAF
            self.request.body.fail(BodyLost(sentence, status))
        else:
            self.loseConnection()

    def refuse(self, status: int, sentence: str) -> None:
        """Answer a head that makes no request, and close."""
        text = sentence.encode("utf-8") + b"\n"
        self.persistent = False
        self.site.log_refused(self, status, sentence)
        self.send(
            b"%sContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n%sConnection: close\r\n\r\n%s"
            % (status_line(status), len(text), self.site.stamp(), text)
        )
        self._decoder, self._remaining = None, None
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
        reading = not (
            self._body_paused or len(self._held) > HELD_LIMIT or (self._blocked and self.state in (HEAD, HELD))
        )
        if reading != self._reading:
            self._reading = reading
            transport: Any = self.transport
            if reading:
                transport.resumeProducing()
            else:
                transport.pauseProducing()

    # Output

    def send(self, data: bytes) -> None:
        """
        Write, at once if the kernel takes it.

        Going through the reactor would cost two changes of its interest in the socket and one more turn.
        """
        if self.direct and not unsent(self.socket) and self.socket.connected:
            sent = self.socket.writeSomeData(data)
            if isinstance(sent, int):  # else the transport finds the same error again, and acts on it
                if sent == len(data):
                    return
                data = data[sent:]
        self.transport.write(data)  # type: ignore[union-attr]

    def write(self, data: bytes) -> None:
        """Write when the socket is ready."""
        self.transport.write(data)  # type: ignore[union-attr]

    def writeSequence(self, data: list[bytes]) -> None:
        """Write when the socket is ready."""
        self.transport.writeSequence(data)  # type: ignore[union-attr]

    def common_fields(self, request: Request) -> bytes:
        """The fields that every answer has, and the empty line; decides whether the connection outlives it."""
        if self.persistent and (self.site.draining or not self._outlives_body()):
            self.persistent = False
        close = b"" if self.persistent else b"Connection: close\r\n"
        return b"%sX-Request-Id: %s\r\n%s\r\n" % (self.site.stamp(), request.rid, close)

    def _outlives_body(self) -> bool:
        """Whether what is left of the body is worth reading to keep the connection."""
        if self.state is not BODY:
            return True
        remaining = self._remaining
        return not self._expects and remaining is not None and remaining <= self.site.limits.drain_keep_bytes

    def writeHeaders(self, _version: bytes, code: bytes, reason: bytes, headers: Headers) -> None:
        """The head of an answer that is written the old way, by a Resource."""
        assert self.request is not None
        if b"close" in b",".join(headers.getRawHeaders(b"connection", [])).lower():
            self.persistent = False
        headers.removeHeader(b"connection")
        lines = [b"%s: %s\r\n" % (name, value) for name, values in headers.getAllRawHeaders() for value in values]
        self.write(b"HTTP/1.1 %s %s\r\n%s%s" % (code, reason, b"".join(lines), self.common_fields(self.request)))

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
        self._since = self.site.seconds()
        if self._held and not self._running:
            self._continue()

    def _drain(self) -> None:
        self.state = DRAIN
        self._since = self.site.seconds()
        self._drained, self._quiet, self._window = 0, 0.0, 0
        self._body_paused = False
        self._steer()

    # Producers

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Let ``producer`` write the answer as fast as the client reads it."""
        if self._producer is not None:
            raise RuntimeError("this connection has a producer already")
        self._producer_streams = streaming
        self._producer = producer if streaming else PullToPush(producer, self)
        if not streaming:
            self._producer.startStreaming()
        elif self._blocked:
            producer.pauseProducing()

    def unregisterProducer(self) -> None:
        """The producer has written everything."""
        producer, self._producer = self._producer, None
        if producer is not None and not self._producer_streams:
            producer.stopStreaming()

    def pauseProducing(self) -> None:
        """The transport holds enough unsent bytes."""
        self._blocked = True
        if self._producer is not None:
            self._producer.pauseProducing()
        self._steer()

    def resumeProducing(self) -> None:
        """The transport has sent what it held."""
        self._blocked = False
        if self._producer is not None:
            self._producer.resumeProducing()
        if self.state is HEAD and self._held and not self._running:
            self._continue()
        self._steer()

    def stopProducing(self) -> None:
        """The connection is gone."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.stopProducing()

    # Time

    def sweep(self, now: float, tick: float) -> None:
        """Hold the connection to the limits; called about once a second, ``tick`` seconds after the last time."""
        limits = self.site.limits
        if self._stalls(tick) >= limits.write_stall_s:
            self.transport.abortConnection()  # type: ignore[union-attr]
        elif self.state is HEAD:
            self._sweep_head(now)
        elif self.state is BODY and not self._body_paused and not self._expects:
            self._waited += tick
            if self._waited >= limits.body_window_s:
                if self._window < limits.min_body_rate * self._waited:
                    self._break_body(408, "the request body arrives too slowly")
                self._waited, self._window = 0.0, 0
        elif self.state is DRAIN:
            self._quiet = 0.0 if self._window else self._quiet + tick
            self._window = 0
            if self._quiet >= limits.drain_idle_s or now - self._since >= limits.drain_s:
                self.loseConnection()

    def _sweep_head(self, now: float) -> None:
        limits = self.site.limits
        waited = now - self._since
        if self._blocked:
            return
        if self._held:
            if waited >= limits.header_deadline_s:
                self.refuse(408, f"the request head took longer than {limits.header_deadline_s} seconds")
        elif waited >= (limits.header_deadline_s if self._fresh else limits.idle_timeout_s) or (
            self.site.draining and waited >= 1
        ):
            self.loseConnection()

    def _stalls(self, tick: float) -> float:
        """For how many seconds the client has taken nothing although something waits for it."""
        held = unsent(self.socket) if self.socket is not None else 0
        if not held and not self._blocked and (self.transfer is None or not self.transfer.waits_for_client):
            self._stalled = 0.0
            return 0.0
        progress = (self.request.sentLength if self.request is not None else 0, held)
        self._stalled = self._stalled + tick if progress == self._progress else 0.0
        self._progress = progress
        return self._stalled
