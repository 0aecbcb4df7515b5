"""
Values in documents of others, as far as they are of the kinds that are expected: what is of another one is left out.

For documents whose odd parts must not take the others with them; ``strict_json`` refuses such documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urljoin, urlsplit

from pkgrepo.errors import Invalid

MOST_ITEMS: Final = 1000  # of a list or a mapping; the rest is left out

# What is a line end, or not allowed, in some formats of text, and does not come back from them as it was.
_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
Read = Callable[[Any], Any]  # of a value, what is taken of it; something false for nothing


def form_fields(text: str, most: int, *, keep_blank_values: bool = False) -> dict[str, list[str]]:
    """The fields of a form or of a query, by their names. :raises Invalid: they are more than ``most``"""
    try:
        return parse_qs(text, keep_blank_values=keep_blank_values, max_num_fields=most)
    except ValueError:
        raise Invalid(f"there are more than {most} fields") from None


def text_in(value: Any) -> str:
    """A text without control characters, or that of a number."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    return _UNPRINTABLE.sub("", str(value))


def flag_in(value: Any) -> bool:
    """Whether a value is true, also as YAML writes that."""
    return value is True or value in ("true", "True", "TRUE")


def list_of(read: Read) -> Read:
    """A reader of lists, of whose items ``read`` takes something."""

    def read_list(value: Any) -> list[Any]:
        some = value[:MOST_ITEMS] if isinstance(value, list) else []
        return [made for each in some if (made := read(each))]

    return read_list


def object_of(fields: Mapping[str, Read]) -> Read:
    """A reader of objects, whose fields are read by these."""

    def read_object(value: Any) -> dict[str, Any]:
        some = value if isinstance(value, dict) else {}
        return {key: made for key, read in fields.items() if key in some and (made := read(some[key]))}

    return read_object


def texts_in(value: Any) -> dict[str, str]:
    """The texts in an object, by key."""
    some = list(value.items())[:MOST_ITEMS] if isinstance(value, dict) else []
    return {key: text for key, each in some if key and text_in(key) == key and (text := text_in(each))}


def absolute_url(base: str, url: Any) -> str:
    """
    The URL that a document at ``base`` means. A colon in the name of a file begins no scheme.

    :raises Invalid: it is none of an HTTP server
    """
    try:
        relative = url if "://" in url or url.startswith("/") else f"./{url}"
        found = urljoin(base, relative)
        parts = urlsplit(found)
    except (AttributeError, TypeError, ValueError):
        raise Invalid("an address cannot be read") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid("an address is of no HTTP server")
    return str(found)
