"""Answers that are sent many times: their heads are rendered once."""

from __future__ import annotations

from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request

from .head import render_head
from .send import respond, send_whole

ENTRY_OVERHEAD = 512  # bytes of Python objects around an entry, roughly
_log = Logger()


class PreparedAnswer:
    """
    An answer with its rendered head.

    Fields that differ between requests (date, request id, whether the connection is kept) are added when it is sent.
    ``size`` is its size in memory, in bytes.
    """

    __slots__ = ("_head", "_head_304", "_small", "answer", "size")

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self._head = render_head(answer, answer.status, 0, answer.size)
        self._head_304 = render_head(answer, 304, 0, 0) if answer.status == 200 else b""
        self._small = answer.body if isinstance(answer.body, bytes) and answer.status != 304 else None
        self.size = len(self._head) + len(self._head_304) + len(self._small or b"") + ENTRY_OVERHEAD

    def serve(self, request: Request) -> None:
        """Answer a GET or HEAD; conditions and ranges other than a matching ETag go through L{respond}."""
        fields = request.fields
        answer = self.answer
        if answer.status == 200 and b"if-match" not in fields and b"if-unmodified-since" not in fields:
            condition = fields.get(b"if-none-match")
            if condition is not None:
                if condition == answer.etag:
                    send_whole(request, 304, self._head_304, b"")
                    return
            elif b"range" not in fields and b"if-modified-since" not in fields and self._small is not None:
                send_whole(request, 200, self._head, self._small if request.method == b"GET" else b"")
                return
        elif self._small is not None and answer.status >= 400:
            send_whole(request, answer.status, self._head, self._small if request.method == b"GET" else b"")
            return
        under_way = respond(request, answer)
        if under_way is not None:
            under_way.addErrback(_report)


def _report(failure: Failure) -> None:
    _log.failure("sending a prepared answer failed", failure=failure)
