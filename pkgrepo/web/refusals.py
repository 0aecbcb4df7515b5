"""Errors as pages."""

from __future__ import annotations

from typing import Final

from pkgrepo import errors
from pkgrepo.gateway.refusals import STATUSES
from pkgrepo.http.answering.dispatch import ErrorTable
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.web.visits import Visit

TITLES: Final = {
    400: "This request cannot be understood",
    401: "You need to log in",
    403: "You may not do this",
    404: "Nothing is here",
    405: "This address takes no such request",
    409: "This contradicts what is there",
    413: "Too much was sent",
    415: "This is no form",
    422: "A value is wrong",
    429: "Too many attempts",
    503: "Not available now",
}


def sentence_of(error: Exception) -> str:
    """What a page says of a refusal: what the parser of a body says begins with the name of the field."""
    text = str(error)
    if not isinstance(error, errors.Invalid) or not error.pointer or not text.startswith("Expected `"):
        return text
    said = text.replace("`str`", "a text").replace(" matching regex ", " that matches ").replace(r"(?!\\n)", "")
    return f"{error.pointer.rpartition('/')[2].replace('_', ' ')}: {said[0].lower()}{said[1:]}"


def error_table(visit: Visit) -> ErrorTable:
    """The statuses of domain errors, which are answered by a page."""

    def render(_request: Request, refusal: Refusal) -> Response:
        title = TITLES.get(refusal.status, "Something went wrong" if refusal.status >= 500 else "This was refused")
        return visit.refusal(refusal, title)

    return ErrorTable({**STATUSES, errors.Invalid: (422, "invalid")}, render)
