"""
The ``Reader`` and the ``Transaction`` of queries and commands, over a PostgreSQL connection.

Each trip to the server takes longer than most statements, and while a command runs all other writers wait for its
transaction. So two kinds of trips are saved:

- statements without a result wait for the next one that has one, and travel with it in one pipeline
- a query of one statement has a snapshot without BEGIN and ROLLBACK, see ``snapshots``
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import TracebackType
from typing import Any, Final, Self

from psycopg import RawCursor
from psycopg.pq import TransactionStatus

from pkgrepo.interfaces import Row, Value
from pkgrepo.storage.catalog.engine.dialect import to_postgresql

from .sessions import Session

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
