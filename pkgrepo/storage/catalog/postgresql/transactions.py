"""The ``Reader`` and the ``Transaction`` of queries and commands, over a PostgreSQL connection."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import TracebackType
from typing import Self

from psycopg.pq import TransactionStatus

from pkgrepo.interfaces import Row, Value
from pkgrepo.storage.catalog.engine.dialect import to_postgresql

from .sessions import Session

_translated = cache(to_postgresql)  # the statements of the program, which are constants


class PostgresReader:
    """A ``Reader`` over a connection; as a context manager it is one transaction, hence one snapshot."""

    def __init__(self, connection: Session) -> None:
        self.connection = connection
        self._cursor = connection.cursor()

    def one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """Return the first row, or None."""
        rows = self.all(sql, parameters)
        return rows[0] if rows else None

    def all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Return all rows; the caller limits them in SQL."""
        return self._cursor.execute(_translated(sql), parameters).fetchall()

    def __enter__(self) -> Self:
        self._cursor.execute("BEGIN")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self.connection.closed and self.connection.pgconn.transaction_status != TransactionStatus.IDLE:
            self._cursor.execute("ROLLBACK")


class PostgresTransaction(PostgresReader):
    """A ``Transaction`` over a connection; the writer begins and ends it."""

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one statement. Returns the number of rows that it changed."""
        return self._cursor.execute(_translated(sql), parameters).rowcount

    def insert(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one INSERT with a RETURNING clause for the new row's integer key. Returns that key."""
        row = self.one(sql, parameters)
        assert row is not None
        return int(row[0])
