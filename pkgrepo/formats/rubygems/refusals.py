"""Refusals as ``gem`` and Bundler print them: plain text, which is all that people see of a response."""

from __future__ import annotations

from typing import Final

from pkgrepo.gateway.refusals import STATUSES, refusal_headers
from pkgrepo.http.answering.dispatch import ErrorTable
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, text_response

REALM: Final = b'Basic realm="pkgrepo"'

REPUSH: Final = (
    "Repushing of gem versions is not allowed.\n"
    "Please bump the version number and push a new different release.\n"
    "See also `gem yank` if you want to unpublish the bad release."
)
YANKED: Final = (
    "A yanked version already exists ({version}).\n"
    "Repushing of gem versions is not allowed. Please use a new version and retry"
)
CASE: Final = (
    "Unable to change case of gem name with indexed versions\nPlease delete all versions first with `gem yank`."
)
UNREADABLE: Final = (
    "Cannot process this gem.\n"
    "Please try rebuilding it and installing it locally to make sure it's valid.\n"
    "Error:\n{why}"
)
UNSAVED: Final = "There was a problem saving your gem: {why}"
UNATTESTED: Final = "Attestation verification failed:\n{why}"
NO_GEM: Final = "This gem could not be found"

# Prefixes that make ``gem`` ask for a second factor or for another login; no other refusal may begin so.
_STEERING: Final = ("You have enabled multifactor authentication", "The API key doesn't have access")


def render_refusal(_request: Request, refusal: Refusal) -> Response:
    """Render as text; the reason phrase has its first line, which some tools print instead."""
    sentence = refusal.sentence
    if refusal.status == 401 and not sentence.startswith(_STEERING[0]):
        sentence = f"Access Denied. {sentence}"
    elif refusal.status != 401 and sentence.startswith(_STEERING):
        sentence = f"Refused: {sentence}"
    headers = (*refusal_headers(refusal, REALM), *NO_STORE)
    return text_response(sentence, refusal.status, headers=headers, reason=sentence.partition("\n")[0])


ERRORS = ErrorTable(STATUSES, render_refusal)


def gem_not_found() -> Refusal:
    """404: no such gem."""
    return Refusal(404, NO_GEM, "not_found")


def version_not_found(number: str, platform: str) -> Refusal:
    """404: no such version; ``platform`` is empty if the client named none."""
    which = f"{number} ({platform})" if platform else number
    return Refusal(404, f"The version {which} does not exist.", "not_found")
