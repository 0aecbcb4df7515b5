"""Parts of statements that depend on the arguments of a query: placeholders and optional conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from pkgrepo.interfaces import Value

T = TypeVar("T")

AT_ONCE = 100  # rows or items of one statement


def marks(count: int, mark: str = "?") -> str:
    """Placeholders for a list of values, or of rows; ``count`` is at least 1, for there is no empty list."""
    return ", ".join([mark] * count)


def narrowed(conditions: Sequence[str], values: Sequence[Value]) -> str:
    """Those of the conditions whose value is given, which means that it is not None; each has one placeholder."""
    return " AND ".join(each for each, value in zip(conditions, values, strict=True) if value is not None) or "1 = 1"


def given(values: Sequence[Value]) -> list[Value]:
    """The parameters for ``narrowed``."""
    return [value for value in values if value is not None]


def pieces(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values, at most ``AT_ONCE`` at a time."""
    for begin in range(0, len(values), AT_ONCE):
        yield values[begin : begin + AT_ONCE]
