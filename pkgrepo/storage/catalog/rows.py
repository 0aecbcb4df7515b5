"""Functions that run a query and convert its rows to a value or None, a list of values, a column or a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pkgrepo.interfaces import Reader, Row, Value

T = TypeVar("T")


def find(r: Reader, convert: Callable[[Row], T], sql: str, parameters: Sequence[Value] = ()) -> T | None:
    """The first row, converted; None if there is no row."""
    row = r.one(sql, parameters)
    return None if row is None else convert(row)


def every(r: Reader, convert: Callable[[Row], T], sql: str, parameters: Sequence[Value] = ()) -> list[T]:
    """All rows, converted."""
    return [convert(row) for row in r.all(sql, parameters)]


def column(r: Reader, sql: str, parameters: Sequence[Value] = ()) -> list[Any]:
    """The first column of all rows."""
    return [row[0] for row in r.all(sql, parameters)]


def number(r: Reader, sql: str, parameters: Sequence[Value] = ()) -> int:
    """The number in the first row, such as a count; 0 if it is NULL (MAX of no rows) or there is no row."""
    row = r.one(sql, parameters)
    return 0 if row is None else int(row[0] or 0)


def exists(r: Reader, sql: str, parameters: Sequence[Value] = ()) -> bool:
    """Whether the query finds any row."""
    return r.one(sql, parameters) is not None
