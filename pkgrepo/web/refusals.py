"""Errors as pages."""

from __future__ import annotations

import re
from typing import Final

from pkgrepo import errors
from pkgrepo.gateway.refusals import STATUSES
from pkgrepo.http.answering.dispatch import ErrorTable
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.web.rendering.languages import marked
from pkgrepo.web.visits import Form, Visit

TITLES: Final = {
    400: marked("This request cannot be understood"),
    401: marked("You need to log in"),
    403: marked("You may not do this"),
    404: marked("Nothing is here"),
    405: marked("This address takes no such request"),
    409: marked("This contradicts what is there"),
    413: marked("Too much was sent"),
    415: marked("This is no form"),
    422: marked("A value is wrong"),
    429: marked("Too many attempts"),
    503: marked("Not available now"),
}
PARSED: Final = {  # what the parser of bodies says, and what people are told
    r"^Expected `str` of length >= 1$": "give a text",
    r"^Expected `str` of length <= (\d+)$": r"give \1 characters at most",
    r"^Expected `str` of length >= (\d+)$": r"give at least \1 characters",
    r"^Expected `int` <= (-?\d+)$": r"give \1 at most",
    r"^Expected `int` >= (-?\d+)$": r"give at least \1",
    r"^(?:the o|O)bject(?: is)? missing required field `[^`]*`$": "this is required",
    "^Invalid RFC3339 encoded datetime$": "give a date with a time, such as 2026-01-31T12:00:00Z",
}
KINDS: Final = {  # of JSON
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "nothing",
}


def sentence_of(error: Exception) -> str:
    """What a page says of a refusal: what the parser of a body says begins with the name of the field."""
    text = str(error)
    if not isinstance(error, errors.Invalid) or not error.pointer:
        return text
    said = text
    for pattern, words in PARSED.items():
        said = re.sub(pattern, words, said)
    for kind, words in KINDS.items():
        said = said.replace(f"`{kind}`", words)
    if said == text and not text.startswith("Expected "):
        return text
    return f"{error.pointer.rpartition('/')[2].replace('_', ' ')}: {said[0].lower()}{said[1:]}"


def field_of(error: Exception, form: Form) -> str:
    """Which field of a form a refusal is about, as a JSON pointer or its name; empty if it is not known."""
    if isinstance(error, errors.AlreadyExists | errors.NotFound):
        return next((name for name, values in form.fields.items() if values[:1] == [error.name]), "")
    return getattr(error, "pointer", "")


def error_table(visit: Visit) -> ErrorTable:
    """The statuses of domain errors, which are answered by a page."""

    def render(_request: Request, refusal: Refusal) -> Response:
        title = TITLES.get(
            refusal.status, marked("Something went wrong") if refusal.status >= 500 else marked("This was refused")
        )
        return visit.refusal(refusal, title)

    return ErrorTable({**STATUSES, errors.Invalid: (422, "invalid")}, render)
