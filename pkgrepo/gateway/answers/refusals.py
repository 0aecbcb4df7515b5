"""Refusals outside of any repository."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from pkgrepo.http.answering.dispatch import ErrorTable
from pkgrepo.http.answers import NO_STORE, TEXT, Answer, Refusal, error_answer
from pkgrepo.http.request import Request

from .statuses import STATUSES, refusal_headers

# npm asks for a new login where Bearer is named. The resolver of sbt takes the last line, and wants Basic alone there.
REALM: Final = b'Basic realm="pkgrepo"'
BEARER: Final = (b"WWW-Authenticate", b"Bearer")


# RubyGems prints the body of an answer as it is.
_PRINTS_BODY: Final = (b"Ruby", b"RubyGems")


def render_refusal(request: Request, refusal: Refusal) -> Answer:
    """The answer to a request that is refused."""
    answer = refusal_answer(refusal)
    if (request.header(b"user-agent") or b"").startswith(_PRINTS_BODY):
        return evolve(answer, body=refusal.sentence.encode("utf-8", "replace"), content_type=TEXT)
    return answer


def refusal_answer(refusal: Refusal) -> Answer:
    """The response to a request that is refused, as most clients get it."""
    headers = (*refusal_headers(refusal, REALM), *NO_STORE)
    if refusal.status == 401:
        headers = (BEARER, *headers)
    return error_answer(refusal.sentence, refusal.status, headers)


ERRORS = ErrorTable(STATUSES, render_refusal)
