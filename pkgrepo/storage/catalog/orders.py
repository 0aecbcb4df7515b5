"""
Orders of lists that the database sorts, a page at a time.

A page begins after a position: the values that the columns of the order have in the last row of the page before. The
last column of an order differs in every row, so that no row is shown twice or left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from attrs import frozen

from pkgrepo.interfaces import Value
from pkgrepo.storage.catalog.rows import placeholders

T = TypeVar("T")

Column = tuple[str, type, Callable[[T], Value]]  # the SQL, the type of its values, and the value of an item


@frozen
class Order(Generic[T]):
    """
    One order of a list of items; a dash before its name means descending.

    ``beyond`` is the condition on what comes after a position, with a placeholder for each of its values, which are of
    the types ``kinds``. ``by`` is the list of ORDER BY. ``position`` is that of an item.
    """

    name: str
    beyond: str
    by: str
    kinds: Sequence[type]
    position: Callable[[T], tuple[Value, ...]]

    def place(self, item: T) -> tuple[Value, ...]:
        """The name of the order and the position of an item: what the cursor of the next page says."""
        return (self.name, *self.position(item))


def both_ways(columns: Mapping[str, Sequence[Column[T]]]) -> Mapping[str, Order[T]]:
    """The ascending and the descending order by each of these sequences of columns, by name."""
    found: dict[str, Order[T]] = {}
    for name, each in columns.items():
        found[name] = _order(name, each, ">", "")
        found[f"-{name}"] = _order(f"-{name}", each, "<", " DESC")
    return found


def _order(name: str, columns: Sequence[Column[T]], sign: str, direction: str) -> Order[T]:
    sql = [each[0] for each in columns]
    # a tuple of one column is none in SQL
    beyond = f"({', '.join(sql)}) {sign} ({placeholders(len(sql))})" if len(sql) > 1 else f"{sql[0]} {sign} ?"
    return Order(
        name=name,
        beyond=beyond,
        by=", ".join(f"{each}{direction}" for each in sql),
        kinds=[each[1] for each in columns],
        position=lambda item: tuple(each[2](item) for each in columns),
    )
