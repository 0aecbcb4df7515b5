"""
Strict JSON from clients: texts that two parsers might read differently are refused, with messages that do not
depend on the parser or on the version of Python.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.text import quoted

BLANK: Final = re.compile(rb"[ \t\n\r]*")
STRING: Final = re.compile(rb"\"(?:[^\"\\]++|\\.)*+\"", re.DOTALL)
ATOM: Final = re.compile(rb"[^ \t\n\r,:\[\]{}\"]+")  # a number or a literal, of whatever characters
CLOSING: Final = {ord("{"): ord("}"), ord("["): ord("]")}  # brackets by those that open them

T = TypeVar("T")

BOM = b"\xef\xbb\xbf"
# Arrays and objects in each other. Python 3.11 reads at most 1,000, less its own frames; 3.14 reads tens of thousands,
# which code that follows such values, and servers with an older Python, cannot.
MOST_LEVELS: Final = 500
# What parsers raise; the errors of msgspec, json and Unicode decoding are ValueErrors.
ERRORS = (ValueError, RecursionError)
_BYTE = re.compile(r"\(byte (\d+)\)")


def decode_json(text: bytes, place: Callable[[int], int] = lambda at: at) -> Any:
    """
    The value of a JSON text without duplicate keys.

    Of two members with one key some parsers take the first and some the last, so such a text is refused. ``place`` maps
    an offset in the text to the one in the message.

    :raises Invalid: it is malformed, not UTF-8, nested too deeply, or has a key twice in one object
    """
    what = "the body"
    value = _parse(text, object, place, what)
    # Outside of strings each colon belongs to one member.
    if STRING.sub(b"", text).count(b":") != _count_members(value, what):
        raise Invalid(f"the body has the key {quoted(_find_duplicate(text))} twice in one object")
    return value


def decode_as(text: bytes, type_: type[T], place: Callable[[int], int] = lambda at: at, *, what: str = "the body") -> T:
    """
    A JSON text as a value of ``type_``; ``what`` names the text in the message.

    :raises Invalid: it is malformed, not UTF-8, nested too deeply, or of another type
    """
    value = _parse(text, type_, place, what)
    _count_members(value, what)  # refuses what has too many levels
    return value


def decode_typed(text: bytes, type_: type[T], complaint: str, pointer: str = "") -> T:
    """A JSON text as a value of ``type_``. :raises Invalid: it is not one; the reason follows ``complaint``"""
    try:
        return msgspec.json.decode(text, type=type_)
    except ERRORS as error:
        raise Invalid(f"{complaint}: {describe(text, error)}", pointer) from None


def check_value_count(text: bytes, most: int, what: str, pointer: str = "") -> None:
    """
    Check that a JSON text has at most ``most`` values; ``what`` names the text in the message.

    Commas and opening brackets are counted, also those in strings: an upper bound, at a nanosecond per byte.

    :raises Invalid: it has more
    """
    if text.count(b",") + text.count(b"[") + text.count(b"{") > most:
        raise Invalid(f"{what} has more than {most} values", pointer)


def describe(text: bytes, error: Exception) -> str:
    """The same as one clause, without a subject and a full stop."""
    why, at = explain(text, error)
    return why if at is None else f"{why} near byte {at}"


def explain(text: bytes, error: Exception) -> tuple[str, int | None]:  # noqa: PLR0911 - a table
    """
    Why a text is not JSON, or not of the expected type, and near which byte (None: unknown).

    ``error`` is one of ``ERRORS``, as ``msgspec.json.decode`` or ``json.loads`` raised it for this text.
    """
    if text.startswith(BOM):
        return "it begins with a byte order mark, which RFC 8259 does not allow", 0
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8", _not_utf8(text)
    if isinstance(error, RecursionError):
        return "it is nested too deeply", None
    if isinstance(error, msgspec.ValidationError):
        return str(error), None
    if isinstance(error, msgspec.MsgspecError):
        match = _BYTE.search(str(error))
        if match is not None:
            return str(error)[: match.start()].removeprefix("JSON is malformed: ").strip(), int(match[1])
        return _explain_early_end(text)
    if isinstance(error, json.JSONDecodeError):
        return error.msg[:1].lower() + error.msg[1:], error.pos
    return "it has a number that is too long", None


def _parse(text: bytes, type_: type[T], place: Callable[[int], int], what: str) -> T:
    try:
        return msgspec.json.decode(text, type=type_)
    except ERRORS as error:
        why, at = explain(text, error)
        where = "" if at is None else f" near byte {place(at)}"
        verdict = "is not what it should be" if isinstance(error, msgspec.ValidationError) else "is not JSON"
        raise Invalid(f"{what} {verdict}: {why}{where}") from None


def _count_members(value: Any, what: str) -> int:
    """The members of all objects in a value. :raises Invalid: it has more than ``MOST_LEVELS`` levels"""
    count = levels = 0
    waiting = [value]
    while waiting:
        found = []
        for each in waiting:
            if type(each) is dict:
                count += len(each)
                found += [child for child in each.values() if type(child) in (dict, list)]
            elif type(each) is list:
                found += [child for child in each if type(child) in (dict, list)]
        levels += 1
        if found and levels == MOST_LEVELS:
            raise Invalid(f"{what} is not JSON: it is nested too deeply")
        waiting = found
    return count


def _find_duplicate(text: bytes) -> str:
    found: list[str] = []

    def look(members: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for name, _ in members:
            if name in seen:
                found.append(name)
            seen.add(name)

    json.loads(text, object_pairs_hook=look)
    return found[0]


def _explain_early_end(text: bytes) -> tuple[str, int | None]:
    """Why a text ends too early for msgspec, whose error has no offset."""
    try:
        json.loads(text)
    except ERRORS as error:
        return explain(text, error)
    return "it has half of a surrogate pair", None


def _not_utf8(text: bytes) -> int:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return len(text)
