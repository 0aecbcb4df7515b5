"""Refusals outside of any repository."""

from __future__ import annotations

from typing import Final

from pkgrepo.http.answering.errors import ErrorTable
from pkgrepo.http.answers import NO_STORE, Answer, Refusal, error_answer
from pkgrepo.http.request import Request

from .statuses import STATUSES, refusal_headers

# npm asks for a new login where Bearer is named. The resolver of sbt takes the last line, and wants Basic alone there.
REALM: Final = b'Basic realm="pkgrepo"'
BEARER: Final = (b"WWW-Authenticate", b"Bearer")


def render_refusal(_request: Request, refusal: Refusal) -> Answer:
    """The answer to a request that is refused."""
    return refusal_answer(refusal)


def refusal_answer(refusal: Refusal) -> Answer:
    """The same, which is so for every request."""
    headers = (*refusal_headers(refusal, REALM), *NO_STORE)
    if refusal.status == 401:
        headers = (BEARER, *headers)
    return error_answer(refusal.sentence, refusal.status, headers)


ERRORS = ErrorTable(STATUSES, render_refusal)
