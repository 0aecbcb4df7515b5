"""Refusals as conda's tools print them: the reason phrase of the status line, and the sentence as JSON or XML."""

from __future__ import annotations

from typing import Final
from xml.sax.saxutils import escape

from pkgrepo.gateway.refusals import STATUSES, refusal_headers
from pkgrepo.http.answering.dispatch import ErrorTable
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response, text_response

REALM: Final = b'Basic realm="pkgrepo"'


def render_refusal(_request: Request, refusal: Refusal) -> Response:
    """
    Render as JSON.

    rattler-build prints the whole body, quetz-client reads ``detail``, and conda and anaconda-client read ``error`` or
    ``message``.
    """
    sentence = refusal.sentence
    body = {"detail": sentence, "error": sentence, "message": sentence}
    headers = (*refusal_headers(refusal, REALM), *NO_STORE)
    return json_response(body, refusal.status, headers=headers, reason=sentence.partition("\n")[0])


def render_post_refusal(_request: Request, refusal: Refusal) -> Response:
    """
    Render as XML, like an object store: anaconda-client prints the body, and reads its ``Code``.

    ``InvalidDigest`` is a code that it has a sentence for.
    """
    sentence = refusal.sentence
    code = {"digest_mismatch": "InvalidDigest"}.get(refusal.code, refusal.code or "Refused")
    text = "".join(each if each.isprintable() else " " for each in sentence)
    body = f"<Error><Code>{escape(code)}</Code><Message>{escape(text)}</Message></Error>\n"
    headers = (*refusal_headers(refusal, REALM), *NO_STORE)
    reason = sentence.partition("\n")[0]
    return text_response(body, refusal.status, content_type=b"application/xml", headers=headers, reason=reason)


ERRORS = ErrorTable(STATUSES, render_refusal)
POST_ERRORS = ErrorTable(STATUSES, render_post_refusal)
