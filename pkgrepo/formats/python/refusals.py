"""
Error responses in the form that Python's tools print.

twine, hatch and poetry print the reason phrase, uv prints the body: the sentence goes into both.
"""

from __future__ import annotations

from pkgrepo import errors
from pkgrepo.gateway.bodies import misplaced_upload
from pkgrepo.gateway.refusals import REALM, STATUSES, refusal_headers, text_refusal
from pkgrepo.gateway.services import Context
from pkgrepo.http.answering.dispatch import ErrorTable
from pkgrepo.http.answering.negotiation import names_media_type
from pkgrepo.http.answering.send import usual_reason
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response

PROBLEM = b"application/problem+json"


def render_refusal(request: Request, refusal: Refusal) -> Response:
    """Render as problem+json for clients whose Accept names JSON (RFC 9457; uv does), else as one line of text."""
    if names_media_type(request.header(b"accept"), b"application/json"):
        headers = (*refusal_headers(refusal, REALM), *NO_STORE)
        title = usual_reason(refusal.status).decode("ascii")
        problem = {"type": "about:blank", "title": title, "status": refusal.status, "detail": refusal.sentence}
        return json_response(problem, refusal.status, content_type=PROBLEM, headers=headers, reason=refusal.sentence)
    return text_refusal(request, refusal)


# twine up to 6.1, poetry and pdm recognise a duplicate by 400 and "already exist"; only some accept 409.
ERRORS = ErrorTable(
    {
        **STATUSES,
        errors.QuotaExceeded: (403, "quota_exceeded"),  # twine tries 5xx again
        errors.FileExists: (400, "file_exists"),
        errors.FileBurned: (400, "file_exists"),
        errors.Conflict: (400, "conflict"),
    },
    render_refusal,
)


def misplaced(context: Context[object], request: Request, refusal: Refusal) -> Refusal:
    """A refusal that says where uploads go, if the request is one."""
    return misplaced_upload(context.services.base_url(request), request, refusal, "upload to {}/legacy/")
