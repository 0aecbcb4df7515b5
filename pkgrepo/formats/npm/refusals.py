"""
Errors for npm's clients: one JSON object.

npm prints the reason phrase and the ``error`` of the object, yarn 1 the ``error`` alone, pnpm and yarn 4 the reason
phrase alone. So the sentence is in both, except for npm, which would print it twice.
"""

from __future__ import annotations

from pkgrepo import errors
from pkgrepo.gateway.refusals import STATUSES, refusal_headers
from pkgrepo.http.answering.dispatch import ErrorTable
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response

LOGIN_FAILED = "login_failed"
REGISTRY = "the registry to publish to is {}/"  # for L{misplaced_upload}
REALM = b'Bearer, Basic realm="pkgrepo"'


def render_refusal(request: Request, refusal: Refusal) -> Response:
    """The response of a refusal, always JSON: npm prints HTML unchanged."""
    body = {"error": refusal.sentence}
    if refusal.code == "not_found":
        # The public registry answers so; tools recognise a missing package by these words.
        body = {"error": "not_found", "reason": "document not found", "message": refusal.sentence}
    # A failed login gets no refusal_headers: npm would print a guess of its own instead of the sentence.
    asked = refusal.headers if refusal.code == LOGIN_FAILED else refusal_headers(refusal, REALM)
    is_npm = (request.header(b"user-agent") or b"").startswith(b"npm/")
    reason = None if is_npm else refusal.sentence.partition("\n")[0]
    return json_response(body, refusal.status, headers=(*asked, *NO_STORE), reason=reason)


ERRORS = ErrorTable(
    {
        **STATUSES,
        errors.QuotaExceeded: (403, "quota_exceeded"),  # npm tries 5xx again
        errors.FileExists: (403, "version_exists"),
        errors.FileBurned: (403, "version_exists"),
        # Logins are PUTs, and npm repeats a PUT after 429.
        errors.TooManyAttempts: (403, "too_many_attempts"),
    },
    render_refusal,
)


def version_taken(version_text: str) -> errors.Forbidden:
    """The refusal of a version that exists or was removed. Clients look for exactly this sentence."""
    return errors.Forbidden(f"You cannot publish over the previously published versions: {version_text}.")


def user_not_found(username: str) -> Refusal:
    """The refusal for an unknown user; not ``not_found``, which clients show as a missing package."""
    return Refusal(404, f"user {username!r} does not exist", "user_not_found")


def version_not_found(selector: str) -> Refusal:
    """The refusal for an unknown version or tag."""
    return Refusal(404, f"version not found: {selector}", "version_not_found")
