"""Errors as pages."""

from __future__ import annotations

import re
from typing import Final

from pkgrepo import errors
from pkgrepo.gateway.refusals import STATUSES
from pkgrepo.http.answering.dispatch import ErrorTable
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.web.rendering.languages import marked, said
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
    r"Expected `str` of length >= 1": marked("give a text"),
    r"Expected `str` of length <= (?P<number>\d+)": marked("give %(number)s characters at most"),
    r"Expected `str` of length >= (?P<number>\d+)": marked("give at least %(number)s characters"),
    r"Expected `int` <= (?P<number>-?\d+)": marked("give %(number)s at most"),
    r"Expected `int` >= (?P<number>-?\d+)": marked("give at least %(number)s"),
    r"(?:The o|O)bject(?: is)? missing required field `[^`]*`": marked("this is required"),
    "Invalid RFC3339 encoded datetime": marked("give a date with a time, such as 2026-01-31T12:00:00Z"),
}
KINDS: Final = {  # of JSON
    "str": marked("a text"),
    "int": marked("a whole number"),
    "float": marked("a number"),
    "bool": marked("true or false"),
    "array": marked("a list"),
    "object": marked("an object"),
    "null": marked("nothing"),
}
_OTHER_KIND: Final = re.compile(r"Expected `(\w+)`, got `(\w+)`")


def sentence_of(error: Exception) -> str:
    """What a page says of a refusal: what the parser of a body says begins with the name of the field."""
    text = str(error)
    if not isinstance(error, errors.Invalid) or not error.pointer or (what := _parsed(text)) is None:
        return text
    return said("%(field)s: %(what)s", field=error.pointer.rpartition("/")[2].replace("_", " "), what=what)


def _parsed(text: str) -> str | None:
    """What people are told of a sentence of the parser; None of another sentence."""
    for pattern, message in PARSED.items():
        if found := re.fullmatch(pattern, text, re.IGNORECASE):
            return said(message, **found.groupdict())
    found = _OTHER_KIND.fullmatch(text)
    if found and found[1] in KINDS and found[2] in KINDS:
        return said("expected %(wanted)s, got %(given)s", wanted=said(KINDS[found[1]]), given=said(KINDS[found[2]]))
    words = text
    for kind, word in KINDS.items():
        words = words.replace(f"`{kind}`", word)
    return words[0].lower() + words[1:] if words != text or text.startswith("Expected ") else None


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
