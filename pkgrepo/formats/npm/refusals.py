"""Errors as npm's clients show them: one JSON object, whose ``error`` is printed behind the status."""

from __future__ import annotations

from pkgrepo import errors
from pkgrepo.gateway.statuses import STATUSES, challenge
from pkgrepo.http.answering.errors import ErrorTable
from pkgrepo.http.answers import Answer, Refusal, json_answer
from pkgrepo.http.request import Request

from .rendering import NO_STORE

LOGIN_FAILED = "login_failed"
REALM = b'Bearer, Basic realm="pkgrepo"'


def render_refusal(_request: Request, refusal: Refusal) -> Answer:
    """A refusal; never HTML, which npm prints as it is."""
    body = {"error": refusal.sentence}
    if refusal.code == "not_found":
        # The two words of the public registry, by which tools tell a missing package.
        body = {"error": "not_found", "reason": "document not found", "message": refusal.sentence}
    # A login is no protected resource, and npm prints guesses of its own in place of the sentence beside a challenge.
    asked = refusal.headers if refusal.code == LOGIN_FAILED else challenge(refusal, REALM)
    return json_answer(body, refusal.status, headers=(*asked, *NO_STORE))


ERRORS = ErrorTable(
    {
        **STATUSES,
        errors.FileExists: (403, "version_exists"),
        errors.FileBurned: (403, "version_exists"),
        # npm sends a PUT again after 429, and would be sent away again: logins are PUTs.
        errors.TooManyAttempts: (403, "too_many_attempts"),
    },
    render_refusal,
)


def version_taken(version_text: str) -> errors.Forbidden:
    """The refusal of a version that exists, or did: clients look for this very sentence."""
    return errors.Forbidden(f"You cannot publish over the previously published versions: {version_text}.")


def user_not_found(username: str) -> Refusal:
    """There is nobody of this name; in a sentence, since the public registry's words are those of a package."""
    return Refusal(404, f"user {username!r} does not exist", "user_not_found")


def version_not_found(selector: str) -> Refusal:
    """There is no such version, and no such tag."""
    return Refusal(404, f"version not found: {selector}", "version_not_found")
