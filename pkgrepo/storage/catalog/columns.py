"""Conversion of values to and from columns (times, sets of words, JSON), and the operand of LIKE."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from pkgrepo.model import Action

LIKE = r"LIKE ? ESCAPE '\'"  # its parameter comes from L{like}
LAST_CHARACTER = "\U0010ffff"  # the greatest code point: texts that begin with X are between X and X + this


def at(value: int) -> datetime:
    """The aware UTC datetime of a time in milliseconds since the epoch."""
    return datetime.fromtimestamp(value / 1000, UTC)


def at_or_none(value: int | None) -> datetime | None:
    """The same as ``at``; None for NULL."""
    return None if value is None else at(value)


def to_ms(value: datetime | None) -> int | None:
    """An aware datetime in milliseconds since the epoch; None for None."""
    return None if value is None else round(value.timestamp() * 1000)


def dump(value: Any) -> str:
    """JSON text for a column."""
    return msgspec.json.encode(value).decode()


def dump_words(words: Iterable[str]) -> str:
    """A set of words as a sorted JSON array, so equal sets give equal text."""
    return dump(sorted(words))


def load(text: str) -> Any:
    """The value of a JSON column."""
    return msgspec.json.decode(text)


def load_actions(text: str) -> frozenset[Action]:
    """The actions of a JSON array column."""
    return frozenset(map(Action, load(text)))


def like(text: str) -> str:
    """The parameter of ``LIKE`` that matches texts that contain ``text``; ASCII case does not matter."""
    escaped = text.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")
    return f"%{escaped}%"
