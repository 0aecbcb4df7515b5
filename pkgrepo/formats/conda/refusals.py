"""Refusals as conda's tools print them: the reason phrase of the status line, and the sentence as JSON or text."""

from __future__ import annotations

from typing import Final

from pkgrepo.gateway.answers.statuses import STATUSES, refusal_headers
from pkgrepo.http.answering.errors import ErrorTable
from pkgrepo.http.answers import NO_STORE, Answer, Refusal, json_answer
from pkgrepo.http.request import Request

REALM: Final = b'Basic realm="pkgrepo"'


def render_refusal(_request: Request, refusal: Refusal) -> Answer:
    """
    Render as JSON.

    rattler-build prints the whole body, quetz-client reads ``detail``, and conda and anaconda-client read ``error`` or
    ``message``.
    """
    sentence = refusal.sentence
    body = {"detail": sentence, "error": sentence, "message": sentence}
    headers = (*refusal_headers(refusal, REALM), *NO_STORE)
    return json_answer(body, refusal.status, headers=headers, reason=sentence.partition("\n")[0])


ERRORS = ErrorTable(STATUSES, render_refusal)
