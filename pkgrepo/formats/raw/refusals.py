"""Refusals as curl and wget print them: one line of text; a field of JSON for clients that ask for it."""

from __future__ import annotations

from pkgrepo.gateway.refusals import REALM, STATUSES, refusal_headers
from pkgrepo.http.answering.dispatch import ErrorTable
from pkgrepo.http.answering.negotiation import names_media_type
from pkgrepo.http.request import Request
from pkgrepo.http.responses import JSON, NO_STORE, Refusal, Response, json_response, text_response


def render_refusal(request: Request, refusal: Refusal) -> Response:
    """A refusal. curl prints the body and ends without an error, so the text says that an upload failed."""
    headers = (*refusal_headers(refusal, REALM), *NO_STORE)
    if names_media_type(request.header(b"accept"), JSON):
        return json_response({"error": refusal.sentence}, refusal.status, headers=headers)
    failed = "error: nothing was stored: " if request.method in (b"PUT", b"POST") else "error: "
    return text_response(f"{failed}{refusal.sentence}\n", refusal.status, headers=headers)


ERRORS = ErrorTable(STATUSES, render_refusal)
