"""Parts of SQL statements that depend on the arguments of a query: placeholders and optional conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from pkgrepo.interfaces import Value

T = TypeVar("T")

BATCH = 100  # rows or values in one statement


def placeholders(count: int, mark: str = "?") -> str:
    """``count`` placeholders, separated by commas. ``count`` is at least 1, since SQL has no empty list."""
    return ", ".join([mark] * count)


def optional_conditions(conditions: Sequence[str], values: Sequence[Value]) -> str:
    """The conditions whose value is not None, joined by AND, or ``1 = 1``. Each condition has one placeholder."""
    return " AND ".join(each for each, value in zip(conditions, values, strict=True) if value is not None) or "1 = 1"


def non_null(values: Sequence[Value]) -> list[Value]:
    """The values that are not None: the parameters of ``optional_conditions``."""
    return [value for value in values if value is not None]


def batches(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the values in slices of at most ``BATCH``."""
    for begin in range(0, len(values), BATCH):
        yield values[begin : begin + BATCH]
