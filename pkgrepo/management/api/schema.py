"""
The structs of requests and responses: ``Body`` and ``Record``, the reading of bodies into them, and their ETags.

Errors of bodies have the JSON pointer of the wrong part. An ETag has two parts: a hash of the fields that people set,
and a hash of the fields that the server measures (sizes, counts, times of use). A GET is answered with 304 when both
parts match. If-Match compares only the first part: otherwise a record could not be edited while its measured fields
change with every download.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self, TypeVar

import msgspec
from msgspec import UNSET, Meta

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Refusal
from pkgrepo.management.api.problems import PreconditionFailed
from pkgrepo.model.repositories import NAME
from pkgrepo.model.structs import from_attributes
from pkgrepo.untrusted.patterns import in_words, pattern
from pkgrepo.untrusted.strict_json import ERRORS, describe
from pkgrepo.untrusted.text import END, ONE_LINE

NAME_PATTERN = f"^{NAME}{END}"
LARGEST = 2**63 - 1  # the largest integer of the catalog

Name = Annotated[
    str,
    Meta(
        pattern=pattern(
            NAME_PATTERN, "1 to 64 letters, digits, dots, dashes and underscores, first a letter or a digit"
        ),
        description="The name: 1 to 64 letters, digits, dots, dashes and underscores; first a letter or a digit.",
    ),
]
Text = Annotated[str, Meta(max_length=10_000)]
Line = Annotated[str, Meta(max_length=200, pattern=ONE_LINE)]
Word = Annotated[str, Meta(min_length=1, max_length=200, pattern=ONE_LINE)]
_TAG = re.compile(rb'"([^"]*)"')
BODY_LIMIT = 1024 * 1024  # bytes; the largest bodies are configurations with a description in Markdown
T = TypeVar("T")
_FIELD = re.compile(r"(?:unknown|required) field `([^`]*)`")


class Body(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of a request."""

    def given(self, *names: str) -> dict[str, Any]:
        """The fields among ``names`` that the request sets, with their values."""
        return {name: value for name in names if (value := getattr(self, name)) is not UNSET}


class Record(msgspec.Struct, kw_only=True):
    """
    A value in the form in which the API returns it.

    ``measured`` are the fields that change without an edit of the object: sizes, counts, times of use.
    """

    measured: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def from_attributes(cls, value: object, **others: Any) -> Self:
        """A record with the attributes of ``value`` that are named like its fields, and with ``others``."""
        return from_attributes(cls, value, **others)


def tag_of(value: object) -> bytes:
    """The strong ETag of a value, made from its JSON form."""
    built = msgspec.to_builtins(value)
    measured = value.measured if isinstance(value, Record) else frozenset[str]()
    if not measured:
        return b'"%s"' % _hash(built, 32)
    set_by_people = {key: field for key, field in built.items() if key not in measured}
    rest = {key: field for key, field in built.items() if key in measured}
    return b'"%s-%s"' % (_hash(set_by_people, 24), _hash(rest, 8))


def check_unchanged(if_match: bytes | None, current: object) -> None:
    """
    Compare If-Match with the ETag of the ``current`` value (RFC 9110 section 13.1.1).

    :raises PreconditionFailed: no ETag in it matches; without If-Match, and with ``*``, everything matches
    """
    if if_match is None or if_match.strip() == b"*":
        return
    tag = tag_of(current)
    if edited_part(tag) not in map(edited_part, _TAG.findall(if_match)):
        raise PreconditionFailed(tag.decode("ascii"))


def edited_part(tag: bytes) -> str:
    """The part of an ETag that changes only if people change something."""
    return tag.strip(b'"').partition(b"-")[0].decode("latin-1")


def _hash(value: object, digits: int) -> bytes:
    encoded = msgspec.json.encode(value, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:digits].encode("ascii")


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
    message = in_words(message).replace("Object missing", "the object is missing").replace("Object", "the object")
    return Invalid(message, "".join(f"/{escape(step)}" for step in steps))


def escape(step: str) -> str:
    """One step of a JSON pointer, escaped."""
    return step.replace("~", "~0").replace("/", "~1")
