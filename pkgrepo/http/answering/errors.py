"""Exceptions to answers: statuses and codes by type of exception, in one table for each format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.failure_log import TOO_MANY_OPEN_FILES, is_out_of_descriptors
from pkgrepo.http.answers import Answer, Fields, Refusal
from pkgrepo.http.request import Request

Render = Callable[[Request, Refusal], Answer]

_log = Logger()


def too_many_files() -> Refusal:
    """The refusal while the process has no file descriptor left; formats render it in their own shape."""
    return Refusal(503, TOO_MANY_OPEN_FILES, "unavailable", headers=((b"Retry-After", b"5"),))


class ErrorTable:
    """
    Statuses and codes by type of exception, and how a format renders refusals.

    The most specific type wins, along the exception's ancestors. ``str(exception)`` becomes the sentence, and must hold
    nothing that the client may not know. Its ``retry_after_s``, if it has one, becomes Retry-After of a 429 or 503 (RFC
    9110 section 10.2.3), and its ``header_reason`` C{X-Pkgrepo-Reason}.
    """

    def __init__(self, statuses: Mapping[type[Exception], tuple[int, str]], render: Render) -> None:
        self._statuses = dict(statuses)
        self._render = render

    def answer(self, request: Request, error: BaseException) -> Answer:
        """
        The answer to ``request`` after ``error``.

        An exception that is neither a L{Refusal} nor in the table is logged with its traceback; the client gets 500
        and the request's id, nothing else. Being out of file descriptors is 503.
        """
        return self._render(request, self._refusal(request, error))

    def _refusal(self, request: Request, error: BaseException) -> Refusal:
        if isinstance(error, Refusal):
            return error
        for ancestor in type(error).__mro__:
            known = self._statuses.get(ancestor)
            if known is not None:
                status, code = known
                return Refusal(status, str(error), code, headers=(*_retry_after(error, status), *_reason(error)))
        if is_out_of_descriptors(error):
            return too_many_files()
        _log.failure("request {request_id} failed", failure=Failure(error), request_id=request.request_id)
        return Refusal(500, f"internal error, request id {request.request_id}", "INTERNAL_ERROR")


def _retry_after(error: BaseException, status: int) -> Fields:
    seconds: int | None = getattr(error, "retry_after_s", None)
    return ((b"Retry-After", b"%d" % seconds),) if seconds is not None and status in (429, 503) else ()


def _reason(error: BaseException) -> Fields:
    reason: str | None = getattr(error, "header_reason", None)
    if reason is None:
        return ()
    printable = "".join(each if each.isprintable() else "?" for each in reason)
    return ((b"X-Pkgrepo-Reason", printable.encode("ascii", "backslashreplace")),)
