"""Lists that are whole in memory: sorted by a column, a page at a time, as the query of the page says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from attrs import frozen

from .visits import Visit

T = TypeVar("T")

Columns = Mapping[str, Callable[[T], Any]]  # what a column is sorted by, by its name


@frozen
class Rows(Generic[T]):
    """The rows of one page of a list, in an order: the name of a column, with a dash before it if descending."""

    items: list[T]
    order: str
    page: int
    pages: int


def sorted_rows(visit: Visit, every: Iterable[T], columns: Columns[T], default: str) -> list[T]:
    """All rows in the order that the query asks for by ``sort``; in ``default`` if it names no column."""
    order = order_of(visit, columns, default)
    return sorted(every, key=columns[order.removeprefix("-")], reverse=order.startswith("-"))


def order_of(visit: Visit, columns: Columns[T], default: str) -> str:
    """The order that the query asks for."""
    return visit.query("sort") if visit.query("sort").removeprefix("-") in columns else default


def page_of_rows(visit: Visit, every: Iterable[T], columns: Columns[T], default: str, size: int) -> Rows[T]:
    """The page of the sorted rows that the query asks for by ``page``, the last one if there are fewer."""
    rows = sorted_rows(visit, every, columns, default)
    pages = max(1, -(-len(rows) // size))
    page = min(visit.number("page", 1), pages)
    return Rows(rows[(page - 1) * size : page * size], order_of(visit, columns, default), page, pages)
