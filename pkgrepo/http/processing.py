"""Processing of a complete head: early responses, the resource tree, and 500 for errors that neither handles."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.failure_log import is_out_of_descriptors
from pkgrepo.http.answering.dispatch import too_many_files
from pkgrepo.http.answering.send import respond

from .answers import Answer, Refusal, error_answer
from .request import Request

_log = Logger()


class ProcessedRequest(Request):
    """A request with the methods that answer it; handlers use it as a L{Request}."""

    def process(self) -> None:
        """Answer with what ``site.early`` returns, else through the resource tree; all within ``site.moment``."""
        site = self.site
        try:
            with site.moment():
                if self.method in (b"GET", b"HEAD") and site.early is not None and self.body_is_empty:
                    try:
                        prepared = site.early(self)
                        if prepared is not None:
                            under_way = prepared.serve(self)
                            if under_way is not None:
                                under_way.addErrback(self._render_instead)
                            return
                    except Exception as error:
                        if self.startedWriting or not isinstance(error.__cause__ or error, OSError):
                            raise
                        # A file that cannot be opened: the resource tree answers in the client's format.
                self._render()
        except Exception:  # noqa: BLE001 - the outermost place
            self.processingFailed(Failure())

    def _render_instead(self, failure: Failure) -> None:
        """Nothing of an early response was sent, since its bytes are not there: the resource tree says so."""
        if self.startedWriting:
            _log.failure("an early answer failed, request {request_id}", failure, request_id=self.request_id)
            return
        try:
            with self.site.moment():
                self._render()
        except Exception:  # noqa: BLE001 - the outermost place
            self.processingFailed(Failure())

    def _render(self) -> None:
        if self.path == b"*":
            respond(self, Answer())
            return
        self.prepath = []
        self.postpath = [unquote_to_bytes(part) for part in self.path[1:].split(b"/")]
        if not _is_utf8(self.postpath):  # Klein would log this as an error of ours
            respond(self, error_answer("the address is not UTF-8", 400))
            return
        untyped: Any = self
        untyped.render(self.site.getResourceFor(self))

    def processingFailed(self, reason: Failure) -> Failure:
        """Answer 500 with the request's id, under which the error is logged."""
        refusal = Refusal(500, f"internal error, request id {self.request_id}")
        if is_out_of_descriptors(reason.value):
            refusal = too_many_files()
        else:
            _log.failure("request {request_id} failed", failure=reason, request_id=self.request_id)
        if self.startedWriting and not self.finished:
            self.abort()
        elif not self.startedWriting:
            respond(self, error_answer(refusal.sentence, refusal.status, refusal.headers))
        return reason


def _is_utf8(parts: list[bytes]) -> bool:
    try:
        b"/".join(parts).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
