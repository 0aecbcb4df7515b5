"""Strict JSON from clients: texts that two parsers might read differently are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from pkgrepo.errors import Invalid

from .json_errors import ERRORS, describe, explain
from .json_tokens import STRING
from .quoting import quoted

T = TypeVar("T")


def decode_json(text: bytes, place: Callable[[int], int] = lambda at: at) -> Any:
    """
    The value of a JSON text without duplicate keys.

    Of two members with one key some parsers take the first and some the last, so such a text is refused. ``place`` maps
    an offset in the text to the one in the message.

    :raises Invalid: it is malformed, not UTF-8, nested too deeply, or has a key twice in one object
    """
    value = decode_as(text, object, place)
    # Outside of strings each colon belongs to one member.
    if STRING.sub(b"", text).count(b":") != _count_members(value):
        raise Invalid(f"the body has the key {quoted(_find_duplicate(text))} twice in one object")
    return value


def decode_as(text: bytes, type_: type[T], place: Callable[[int], int] = lambda at: at, *, what: str = "the body") -> T:
    """
    A JSON text as a value of ``type_``; ``what`` names the text in the message.

    :raises Invalid: it is malformed, not UTF-8, nested too deeply, or of another type
    """
    try:
        return msgspec.json.decode(text, type=type_)
    except ERRORS as error:
        why, at = explain(text, error)
        where = "" if at is None else f" near byte {place(at)}"
        verdict = "is not what it should be" if isinstance(error, msgspec.ValidationError) else "is not JSON"
        raise Invalid(f"{what} {verdict}: {why}{where}") from None


def decode_typed(text: bytes, type_: type[T], complaint: str, pointer: str = "") -> T:
    """A JSON text as a value of ``type_``. :raises Invalid: it is not one; the reason follows ``complaint``"""
    try:
        return msgspec.json.decode(text, type=type_)
    except ERRORS as error:
        raise Invalid(f"{complaint}: {describe(text, error)}", pointer) from None


def _count_members(value: Any) -> int:
    count = 0
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if type(each) is dict:
            count += len(each)
            waiting += [child for child in each.values() if type(child) in (dict, list)]
        elif type(each) is list:
            waiting += [child for child in each if type(child) in (dict, list)]
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
