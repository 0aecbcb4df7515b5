"""Answers that are sent many times: their heads are rendered once."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from pkgrepo.http.answers import Answer
from pkgrepo.http.repeats import Reply
from pkgrepo.http.request import Request

from .head import render_head
from .memory_transfer import PIECE
from .send import respond, send_whole

ENTRY_OVERHEAD = 512  # bytes of Python objects around an entry, roughly


class PreparedAnswer:
    """
    An answer with its rendered head.

    Fields that differ between requests (date, request id, whether the connection is kept) are added when it is sent.
    ``size`` is its size in memory, in bytes.
    """

    __slots__ = ("_headers_only", "_unchanged", "_whole", "answer", "size")

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        status, body = answer.status, answer.body
        head = render_head(answer, status, 0, answer.size)
        self._unchanged = Reply(304, render_head(answer, 304, 0, 0) if status == 200 else b"", b"")
        self._whole = Reply(status, head, body) if isinstance(body, bytes) and status != 304 else None
        self._headers_only = Reply(status, head, b"")
        self.size = len(head) + len(self._unchanged.head) + ENTRY_OVERHEAD
        if self._whole is not None:
            self.size += len(self._whole.body)

    def serve(self, request: Request) -> Deferred[None] | None:
        """
        Answer a GET or HEAD; conditions and ranges other than a matching ETag go through L{respond}.

        Returns what L{respond} does.
        """
        reply = self._choose(request)
        if reply is None:
            return respond(request, self.answer)
        repeater = request.channel.repeater
        under_way = send_whole(request, reply.status, reply.head, reply.body)
        if repeater is not None and len(reply.body) <= PIECE:
            repeater.keep(request, reply)
        return under_way

    def _choose(self, request: Request) -> Reply | None:
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
