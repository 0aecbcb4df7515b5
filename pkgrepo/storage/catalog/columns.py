"""How values are spelled in columns: times, sets of words, JSON; and how text is looked for in them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from pkgrepo.model import Action

LIKE = r"LIKE ? ESCAPE '\'"  # the parameter is made by L{like}
LAST = "\U0010ffff"  # what begins with a text is from that text up to before it with this behind


def at(value: int) -> datetime:
    """The aware UTC datetime of a catalog time in milliseconds."""
    return datetime.fromtimestamp(value / 1000, UTC)


def at_or_none(value: int | None) -> datetime | None:
    """The same where the column may be empty."""
    return None if value is None else at(value)


def to_ms(value: datetime | None) -> int | None:
    """Milliseconds since the epoch of an aware datetime."""
    return None if value is None else round(value.timestamp() * 1000)


def dump(value: Any) -> str:
    """JSON text for a column."""
    return msgspec.json.encode(value).decode()


def dump_words(words: Iterable[str]) -> str:
    """A set of words as a sorted JSON array, so that equal sets are equal text."""
    return dump(sorted(words))


def load(text: str) -> Any:
    """The value of a JSON column."""
    return msgspec.json.decode(text)


def load_actions(text: str) -> frozenset[Action]:
    """The actions of a JSON array column."""
    return frozenset(map(Action, load(text)))


def like(text: str) -> str:
    """The parameter for ``LIKE`` that finds ``text`` anywhere, whether small letters or capitals (of a to z)."""
    escaped = text.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")
    return f"%{escaped}%"
