"""
The ``Reader`` and the ``Transaction`` of queries and commands, over a PostgreSQL connection.

Each trip to the server takes longer than most statements, and while a command runs all other writers wait for its
transaction. So two kinds of trips are saved:

- statements without a result wait for the next one that has one, and travel with it in one pipeline
- a query of one statement has a snapshot without BEGIN and ROLLBACK, see L{Snapshots}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from psycopg import RawCursor
from psycopg.pq import TransactionStatus

from pkgrepo.interfaces import Reader, Row, Value
from pkgrepo.storage.catalog.engine.dialect import to_postgresql

from .sessions import Session

T = TypeVar("T")

_translated = cache(to_postgresql)  # the statements of the program, which are constants

MOST_WAITING: Final = 16  # statements; each may have a document among its parameters
SAVEPOINT: Final[tuple[str, Sequence[Value]]] = ("SAVEPOINT command", ())
UNDO: Final = "ROLLBACK TO SAVEPOINT command; RELEASE SAVEPOINT command"


class PostgresReader:
    """A ``Reader`` over a connection; as a context manager it is one transaction, hence one snapshot."""

    def __init__(self, connection: Session) -> None:
        self.connection = connection
        self._cursor: RawCursor[tuple[Any, ...]] = RawCursor(connection)

    def one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """Return the first row, or None."""
        rows = self.all(sql, parameters)
        return rows[0] if rows else None

    def all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Return all rows; the caller limits them in SQL."""
        return self._run(sql, parameters).fetchall()

    def __enter__(self) -> Self:
        self._cursor.execute("BEGIN")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self.connection.closed and self.connection.pgconn.transaction_status != TransactionStatus.IDLE:
            self._cursor.execute("ROLLBACK")

    def _run(self, sql: str, parameters: Sequence[Value]) -> RawCursor[tuple[Any, ...]]:
        text = _translated(sql)
        return self._cursor.execute(text, parameters, prepare=_is_prepared(text))


@cache
def _is_prepared(text: str) -> bool | None:
    """
    False for statements with patterns, None for others, which are prepared after ``PREPARED_AFTER`` executions.

    PostgreSQL plans a prepared statement without its parameters after five executions. It then takes each pattern for
    one that a few rows in a hundred match, and may read all of a table for a word that one row has.
    """
    return False if "LIKE" in text else None


class AnotherStatement(BaseException):
    """A query that was run without a transaction needs one; not for its own handlers of exceptions."""


class OneStatement:
    """A ``Reader`` for a query of one statement, without a transaction. :raises AnotherStatement: it runs more"""

    def __init__(self, reader: PostgresReader) -> None:
        self._reader: PostgresReader | None = reader

    def one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """Return the first row, or None."""
        return self._only().one(sql, parameters)

    def all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Return all rows."""
        return self._only().all(sql, parameters)

    def _only(self) -> PostgresReader:
        reader, self._reader = self._reader, None
        if reader is None:
            raise AnotherStatement
        return reader


class Snapshots:
    """
    Runs each query in one snapshot, and learns which ones need a transaction for that.

    A function is run without one at first. At its second statement it is abandoned, and run again in a transaction, as
    it is from then on. ``code`` stands for the function: what is defined once in the source has one.
    """

    def __init__(self) -> None:
        self._longer: set[object] = set()

    def run(self, reader: PostgresReader, code: object, query: Callable[[Reader], T]) -> T:
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


class PostgresTransaction(PostgresReader):
    """A ``Transaction`` over a connection; the writer begins and ends it."""

    def __init__(self, connection: Session) -> None:
        super().__init__(connection)
        self._waiting: list[tuple[str, Sequence[Value]]] = []

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one statement. Returns the number of rows that it changed."""
        return self._run(sql, parameters).rowcount

    def send(self, sql: str, parameters: Sequence[Value] = ()) -> None:
        """Run one statement together with the next that has a result."""
        self._waiting.append((sql, parameters))
        if len(self._waiting) >= MOST_WAITING:
            self._run(*self._waiting.pop())

    def insert(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one INSERT with a RETURNING clause for the new row's integer key. Returns that key."""
        ((key,),) = self.all(sql, parameters)
        return int(key)

    def begin_command(self) -> None:
        """Set the savepoint, together with the first statement."""
        self._waiting = [SAVEPOINT]

    def end_command(self) -> None:
        """Run all that was sent, and release the savepoint."""
        if self._waiting == [SAVEPOINT]:
            self._waiting = []
        else:
            self.execute("RELEASE SAVEPOINT command")

    def undo_command(self) -> None:
        """Undo what the command did, without running what waits, and release the savepoint."""
        waiting, self._waiting = self._waiting, []
        if SAVEPOINT not in waiting:
            self.execute(UNDO)

    def _run(self, sql: str, parameters: Sequence[Value]) -> RawCursor[tuple[Any, ...]]:
        """
        Run the statements that wait, and this one.

        :raises psycopg.Error: that of the first one that failed; those after it were not run
        """
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return super()._run(sql, parameters)
        with self.connection.pipeline():
            for each in (*waiting, (sql, parameters)):
                self._cursor.execute(_translated(each[0]), each[1])
        return self._cursor
