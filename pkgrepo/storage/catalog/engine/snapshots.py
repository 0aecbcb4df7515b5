"""
Queries with one snapshot each, and without a transaction where they need none.

A single statement reads one snapshot by itself: BEGIN and its end would be two more trips to a server, and two more
times at which the reactor's thread gives up the interpreter and waits for it. Which queries run more statements is
learnt: a function is run without a transaction at first, abandoned at its second statement, run again in a transaction,
and from then on at once in one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Protocol, TypeVar

from pkgrepo.interfaces import Reader, Row, Value

T = TypeVar("T")


class TransactionReader(Reader, Protocol):
    """A reader that is one transaction within a ``with`` block."""

    def __enter__(self) -> Reader:
        """Begin it."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None:
        """End it."""


class AnotherStatement(BaseException):
    """A query that was run without a transaction needs one; not for its own handlers of exceptions."""


class OneStatement:
    """A ``Reader`` for a query of one statement, without a transaction. :raises AnotherStatement: it runs more"""

    def __init__(self, reader: Reader) -> None:
        self._reader: Reader | None = reader

    def one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """Return the first row, or None."""
        return self._only().one(sql, parameters)

    def all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Return all rows."""
        return self._only().all(sql, parameters)

    def _only(self) -> Reader:
        reader, self._reader = self._reader, None
        if reader is None:
            raise AnotherStatement
        return reader


class Snapshots:
    """What is known of queries. ``code`` stands for a query: what is defined once in the source has one."""

    def __init__(self) -> None:
        self._longer: set[object] = set()

    def run(self, reader: TransactionReader, code: object, query: Callable[[Reader], T]) -> T:
        """Run a query."""
        if code not in self._longer:
            try:
                return query(OneStatement(reader))
            except AnotherStatement:
                self._longer.add(code)
        with reader:
            return query(reader)


def source_of(query: Callable[..., object]) -> object:
    """What stands in the source for a function, and for all closures and partial calls that are made of it."""
    while isinstance(query, partial):
        query = query.func
    return getattr(query, "__code__", type(query))
