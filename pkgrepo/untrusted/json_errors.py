"""Messages about malformed JSON that do not depend on the parser or the interpreter's version."""

from __future__ import annotations

import json
import re

import msgspec

BOM = b"\xef\xbb\xbf"

# What parsers raise; the errors of msgspec, json and Unicode decoding are ValueErrors.
ERRORS = (ValueError, RecursionError)

_BYTE = re.compile(r"\(byte (\d+)\)")


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


def describe(text: bytes, error: Exception) -> str:
    """The same as one clause, without a subject and a full stop."""
    why, at = explain(text, error)
    return why if at is None else f"{why} near byte {at}"


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
