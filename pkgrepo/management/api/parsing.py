"""Parses JSON bodies into values; errors have the JSON pointer of the wrong part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.http.answers import Refusal
from pkgrepo.untrusted.strict_json import ERRORS, describe

BODY_LIMIT = 1024 * 1024  # bytes; the largest bodies are configurations with a description in Markdown

T = TypeVar("T")

_FIELD = re.compile(r"(?:unknown|required) field `([^`]*)`")


def parse_json(data: bytes, kind: type[T] | Any) -> T:
    """
    A body as a value of type ``kind``; an empty body is an empty object.

    :raises Refusal: 400, the body is not JSON
    :raises Invalid: the value is not of that type
    """
    try:
        value: T = msgspec.json.decode(data.strip() or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise invalid_from(error) from None
    except ERRORS as error:
        raise Refusal(400, f"the body is not JSON: {describe(data.strip(), error)}", "malformed") from None
    return value


def parse_fields(fields: Mapping[str, Any], kind: type[T] | Any) -> T:
    """
    An object that was made of the fields of a form, as a value of type ``kind``.

    :raises Invalid: the value is not of that type
    """
    try:
        value: T = msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise invalid_from(error) from None
    return value


def invalid_from(error: msgspec.ValidationError) -> Invalid:
    """The parser's message as L{Invalid} with a JSON pointer (RFC 6901)."""
    message, _, place = str(error).partition(" - at `")
    steps = [step for step in re.split(r"[.\[\]]+", place.rstrip("`").removeprefix("$")) if step]
    named = _FIELD.search(message)
    if named:
        steps.append(named[1])
    return Invalid(message.replace("Object", "the object"), "".join(f"/{escape(step)}" for step in steps))


def escape(step: str) -> str:
    """One step of a JSON pointer, escaped."""
    return step.replace("~", "~0").replace("/", "~1")
