"""
Error responses in the form that Maven, Gradle, Ivy and sbt print.

Maven 3.8 and 3.9 print the status and the reason phrase only, Maven 4 the fields of problem+json (RFC 9457): the
sentence goes into both.
"""

from __future__ import annotations

from typing import Final

from pkgrepo.gateway.refusals import STATUSES, refusal_headers
from pkgrepo.http.answering.dispatch import ErrorTable
from pkgrepo.http.answering.negotiation import names_media_type
from pkgrepo.http.answering.send import usual_reason
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response, text_response

PROBLEM: Final = b"application/problem+json"
REALM: Final = b'Basic realm="pkgrepo"'  # Ivy and sbt choose credentials by it; they fail at further parameters
LONGEST_REASON: Final = 200  # characters, with room for an address


def reason_of(sentence: str) -> str:
    """A sentence as a reason phrase: printable ASCII, and short enough for one line of a build log."""
    line = "".join(each if " " <= each <= "~" else "?" for each in sentence)
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 3]}..."


def render_refusal(request: Request, refusal: Refusal) -> Response:
    """
    Render as problem+json for clients that read it, else as one line of text.

    Maven waits minutes for each file after 429 and then sends it again, so other methods than GET and HEAD get 403.
    """
    status = refusal.status
    if status == 429 and request.method not in (b"GET", b"HEAD"):
        status = 403
    headers = (*refusal_headers(refusal, REALM), *NO_STORE)
    reason = None if status == 404 else reason_of(refusal.sentence)
    if _reads_problems(request, status):
        title = usual_reason(status).decode("ascii")
        problem = {"type": "about:blank", "title": title, "status": status, "detail": refusal.sentence}
        if refusal.errors:
            problem["errors"] = list(refusal.errors)
        return json_response(problem, status, content_type=PROBLEM, headers=headers, reason=reason)
    return text_response(refusal.sentence + "\n", status, headers=headers, reason=reason)


def _reads_problems(request: Request, status: int) -> bool:
    accept = request.header(b"accept")
    if status == 404:
        # For the resolver 2.0.9 of Maven 4 problem+json is a failure whatever its status, so that no missing metadata
        # would let it deploy the first build of a snapshot.
        return names_media_type(accept, b"application/json")
    if accept is None:
        # Maven 4.0.0-rc-4 sends no Accept with uploads, and shows problem+json (by Apache's transport), but no reason.
        return (request.header(b"user-agent") or b"").startswith(b"Apache-Maven/4.")
    return any(names_media_type(accept, each) for each in (PROBLEM, b"application/json"))


ERRORS = ErrorTable(STATUSES, render_refusal)
