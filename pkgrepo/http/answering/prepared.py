"""Responses that are sent many times: heads are rendered once, and requests that repeat others get them at once."""

from __future__ import annotations

from functools import partial
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pkgrepo.http.answering.send import render_head, respond, send_and_keep
from pkgrepo.http.limits import ConnectionTimeouts
from pkgrepo.http.repeats import ClientKind, RenderedResponse, Repeat
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response

ENTRY_OVERHEAD = 512  # bytes of Python objects around an entry, roughly

_log = Logger()


class PreparedResponse:
    """
    A response with its rendered head.

    Fields that differ between requests (date, request id, whether the connection is kept) are added when it is sent.
    ``size`` is its size in memory, in bytes.
    """

    __slots__ = ("_headers_only", "_unchanged", "_whole", "answer", "size")

    def __init__(self, answer: Response) -> None:
        self.answer = answer
        status, body = answer.status, answer.body
        head = render_head(answer, status, 0, answer.size)
        self._unchanged = RenderedResponse(304, render_head(answer, 304, 0, 0) if status == 200 else b"", b"")
        self._whole = RenderedResponse(status, head, body) if isinstance(body, bytes) and status != 304 else None
        self._headers_only = RenderedResponse(status, head, b"")
        self.size = len(head) + len(self._unchanged.head) + ENTRY_OVERHEAD
        if self._whole is not None:
            self.size += len(self._whole.body)

    def serve(self, request: Request) -> Deferred[None] | None:
        """
        Answer a GET or HEAD; conditions and ranges other than a matching ETag go through L{respond}.

        Returns what L{respond} does.
        """
        repeater = request.channel.repeater
        keep = None if repeater is None else partial(repeater.keep, request)
        reply = self._choose(request)
        return respond(request, self.answer, keep) if reply is None else send_and_keep(request, reply, keep)

    def _choose(self, request: Request) -> RenderedResponse | None:
        fields = request.fields
        answer = self.answer
        if answer.status == 200 and b"if-match" not in fields and b"if-unmodified-since" not in fields:
            condition = fields.get(b"if-none-match")
            if condition is not None:
                return self._unchanged if condition == answer.etag else None
            if b"range" in fields or b"if-modified-since" in fields:
                return None
        elif answer.status < 400:
            return None
        return self._whole if request.method == b"GET" or self._whole is None else self._headers_only


class Repeater:
    """The requests of one connection without TLS that are answered like an earlier one, of this or another client."""

    def __init__(self, channel: Any, timeouts: ConnectionTimeouts) -> None:
        self._channel = channel
        self._site = channel.site
        self._repeats = channel.site.repeats
        self._timeouts = timeouts
        self._peer: str = getattr(channel.getPeer(), "host", "")
        self._raw: bytes | None = None  # the last request's header fields, and
        self._line = b""  # its request line
        self._kind: ClientKind | None = None

    def answer(self, data: bytes, at: int, end: int) -> bool:
        """Answer the request whose head is ``data[at:end]``. False if it repeats none, and is not answered."""
        line_end = data.find(b"\r\n", at)
        line = self._line = data[at:line_end]
        raw = data[line_end + 2 : end + 2]
        if raw != self._raw:
            self._raw = raw
            self._kind = self._repeats.kind(raw, self._peer)
        kind, site = self._kind, self._site
        if kind is None or site.draining:
            return False
        now = site.seconds()
        repeat = self._repeats.find(kind, line, now)
        if repeat is None:
            return False
        reply, request_id = repeat.reply, site.next_request_id()
        self._timeouts.end_head()
        self._timeouts.start_wait(now)
        self._channel.send_both(
            b"".join((reply.head, site.common_lines(), b"X-Request-Id: ", request_id, b"\r\n\r\n")), reply.body
        )
        site.log_repeat(repeat, kind.client_address or self._peer, request_id, now)
        return True

    def keep(self, request: Request, reply: RenderedResponse) -> None:
        """Give the response that this request got also to those that repeat it."""
        kind, line, repeatable = self._kind, self._line, request.repeatable
        if (
            kind is None
            or repeatable is None
            or not self._channel.persistent
            or self._raw != request.raw_fields
            or line != b"%s %s HTTP/1.1" % (request.method, request.uri)  # not if it has a token in its address
            or b"x-request-id" in request.fields
            or not self._repeats.admit(kind, line)
        ):
            return
        if self._repeats.trusts(self._peer):
            kind.client_address = request.client_address
        allowed = repeatable()
        try:
            log = self._site.repeat_logger(request)
        except Exception:  # noqa: BLE001 - it is not kept then
            _log.failure("the access log failed")
            return
        until = self._site.seconds() + allowed.seconds
        self._repeats.keep(kind, line, Repeat(reply, self._repeats.seen, until, allowed.counts, log))
