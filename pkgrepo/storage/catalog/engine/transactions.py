"""The ``Reader`` and the ``Transaction`` of queries and commands, over an SQLite connection."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import apsw

from pkgrepo.interfaces import Row, Value


class SqliteReader:
    """
    A ``Reader`` over a connection; as a context manager it is one read transaction, hence one snapshot.

    All rows of a statement are always fetched: an unfinished statement would keep its snapshot open, and the next query
    would not see later commits.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        # One cursor for all statements: creating one costs as much as a look-up.
        self._execute = connection.cursor().execute

    def one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        """Return the first row, or None."""
        rows = self._execute(sql, parameters).fetchall()
        return rows[0] if rows else None

    def all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Return all rows; the caller limits them in SQL."""
        return self._execute(sql, parameters).fetchall()

    def __enter__(self) -> Self:
        self._execute("BEGIN")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.connection.in_transaction:
            self._execute("COMMIT")


class SqliteTransaction(SqliteReader):
    """A ``Transaction`` over a connection; the writer begins and ends it."""

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one statement. Returns the number of rows that it changed."""
        self._execute(sql, parameters).fetchall()
        return self.connection.changes()

    def send(self, sql: str, parameters: Sequence[Value] = ()) -> None:
        """Run one statement that has no result."""
        self._execute(sql, parameters).fetchall()

    def insert(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        """Run one INSERT with a RETURNING clause for the new row's integer key. Returns that key."""
        row = self.one(sql, parameters)
        assert row is not None
        return int(row[0])

    def begin_command(self) -> None:
        """Set the savepoint."""
        self._execute("SAVEPOINT command")

    def end_command(self) -> None:
        """Release the savepoint."""
        self._execute("RELEASE SAVEPOINT command")

    def undo_command(self) -> None:
        """Undo what the command did, and release the savepoint."""
        self._execute("ROLLBACK TO SAVEPOINT command")
        self._execute("RELEASE SAVEPOINT command")
