"""The fields of a form that a browser has sent."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qs

from pkgrepo.errors import Invalid
from pkgrepo.http.answers import Refusal
from pkgrepo.http.request import Request

FORM_LIMIT: Final = 256 * 1024  # bytes; the largest field is a configuration
MOST_FIELDS: Final = 500  # the largest form has a field for each action in some dozen repositories
URLENCODED: Final = b"application/x-www-form-urlencoded"


class Form:
    """The fields by name; a field may be there several times."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def text(self, name: str, default: str = "") -> str:
        """The first value of a field, without spaces around it; ``default`` if it is absent."""
        values = self._fields.get(name)
        return values[0].strip() if values else default

    def secret(self, name: str) -> str:
        """The first value of a field as it was typed."""
        values = self._fields.get(name)
        return values[0] if values else ""

    def all(self, name: str) -> list[str]:
        """Every value of a field that is not empty, such as those of checked boxes."""
        return [value for value in self._fields.get(name, []) if value]

    def flag(self, name: str) -> bool:
        """Whether a box is checked."""
        return bool(self.text(name))

    def lines(self, name: str) -> list[str]:
        """The lines of a field that are not empty."""
        return [line for each in self.text(name).splitlines() if (line := each.strip())]


async def read_form(request: Request) -> Form:
    """
    The form in the body of a request.

    :raises Refusal: 415, the body is no form; :raises Invalid: it has too many fields
    :raises TooLarge: it is longer than ``FORM_LIMIT``
    """
    kind = (request.header(b"content-type") or b"").partition(b";")[0].strip().lower()
    if kind != URLENCODED:
        raise Refusal(415, "a form is sent as application/x-www-form-urlencoded", "malformed")
    body = await request.body.read_all(FORM_LIMIT)
    try:
        text = body.decode("utf-8", "replace")
        return Form(parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise Invalid(f"the form has more than {MOST_FIELDS} fields") from None
