"""Texts from outside: quoting, parts of paths, patterns that Python and JSON Schema share, durations and sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote_to_bytes

END: Final = r"$(?!\n)"  # in Python, the dollar alone also matches before a line feed at the end
ONE_LINE: Final = r"^[^\x00-\x1f\x7f]*" + END  # no control characters

SECONDS: Mapping[str, float] = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
BYTES = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGT]i?)?B?")


def quoted(text: str) -> str:
    """A text in quotes, cut to 80 characters, with control and non-ASCII characters escaped."""
    return ascii(text if len(text) <= 80 else text[:77] + "...")


LONGEST_PART: Final = 512  # characters of a part of a path


def decode_parts(raw_path: bytes) -> list[bytes]:
    """The decoded parts of a path as on the wire, which is split first, so that ``%2f`` is no separator."""
    parts = raw_path.split(b"/")
    return [unquote_to_bytes(part) for part in parts] if b"%" in raw_path else parts


def split_path(raw_path: bytes) -> list[str] | None:
    """The decoded parts of a path as on the wire, None if one of them is no text or could be another path."""
    try:
        parts = [part.decode() for part in decode_parts(raw_path) if part]
    except UnicodeDecodeError:
        return None
    return parts if all(map(_is_part, parts)) else None


def _is_part(part: str) -> bool:
    return len(part) <= LONGEST_PART and part.isprintable() and part.strip(".") != "" and not set(part) & {"/", "\\"}


def seconds_of(value: object) -> float | None:
    """A duration such as ``5m`` or ``12h`` in seconds; a bare number is seconds. None if it is malformed."""
    return _amount(value, _DURATION, SECONDS)


def bytes_of(value: object) -> float | None:
    """A size such as ``64KiB`` or ``500MB`` in bytes; a bare number is bytes. None if it is malformed."""
    return _amount(value, _SIZE, BYTES)


def _amount(value: object, grammar: re.Pattern[str], units: Mapping[str, float]) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value if 0 <= value < float("inf") else None
    if not isinstance(value, str):
        return None
    match = grammar.fullmatch(value.strip())
    if match is None:
        return None
    number, unit = match.groups()
    amount = float(number) if "." in number else int(number)
    return amount * units.get(unit or "", 1)


def time_ms(text: object) -> int | None:
    """A time in ISO 8601, in ms since the epoch; one without an offset is in UTC. None if the text is no time."""
    try:
        time = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if time is None or time.year < 1970:
        return None
    return round((time.replace(tzinfo=UTC) if time.tzinfo is None else time).timestamp() * 1000)
