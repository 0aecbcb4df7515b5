"""A catalog in memory, for tests of code that uses one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw
from twisted.internet.defer import Deferred
from zope.interface import implementer

from pkgrepo.interfaces import ICatalog, Row, Transaction, Value
from pkgrepo.storage.catalog.engine.dialect import schema_to_sqlite
from pkgrepo.storage.catalog.engine.schema import load_schema


class MemoryTransaction:
    """A ``Reader`` and a ``Transaction`` over one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.statements = 0

    def one(self, sql: str, parameters: Sequence[Value] = ()) -> Row | None:
        self.statements += 1
        return self.connection.execute(sql, tuple(parameters)).fetchone()

    def all(self, sql: str, parameters: Sequence[Value] = ()) -> list[Row]:
        self.statements += 1
        return self.connection.execute(sql, tuple(parameters)).fetchall()

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        self.connection.execute(sql, tuple(parameters))
        return self.connection.changes()

    def send(self, sql: str, parameters: Sequence[Value] = ()) -> None:
        self.execute(sql, parameters)

    def insert(self, sql: str, parameters: Sequence[Value] = ()) -> int:
        return self.connection.execute(sql, tuple(parameters)).fetchall()[0][0]


@implementer(ICatalog)
class MemoryCatalog:
    """The real schema without files and threads; every command is its own commit."""

    def __init__(self) -> None:
        connection = apsw.Connection(":memory:")
        connection.pragma("foreign_keys", True)
        connection.execute(schema_to_sqlite(load_schema().sql))
        self.tx = MemoryTransaction(connection)
        self.commits = 0

    def generation(self) -> int:
        return self.commits

    @contextmanager
    def pinned(self) -> Iterator[int]:
        yield self.commits

    async def look(self, query: Any, /, *args: Any, **kwargs: Any) -> Any:
        return query(self.tx, *args, **kwargs)

    def peek(self, query: Any, /, *args: Any, **kwargs: Any) -> Any:
        return query(self.tx, *args, **kwargs)

    async def scan(self, query: Any, /, *args: Any, **kwargs: Any) -> Any:
        return query(self.tx, *args, **kwargs)

    async def write(self, command: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self.do(command, *args, **kwargs)

    async def renew_statistics(self) -> bool:
        return False

    def do(self, command: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run a command without waiting."""
        with self.tx.connection:
            result = command(self.tx, *args, **kwargs)
        self.commits += 1
        return result


class HeldCatalog(MemoryCatalog):
    """A catalog that delays the results of writes while ``holds`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = False
        self._held: list[Deferred[None]] = []

    async def write(self, command: Any, /, *args: Any, **kwargs: Any) -> Any:
        result = await super().write(command, *args, **kwargs)
        if self.holds:
            answer: Deferred[None] = Deferred()
            self._held.append(answer)
            await answer
        return result

    def release(self) -> None:
        """Deliver the results of the delayed writes, and stop delaying."""
        held, self._held, self.holds = self._held, [], False
        for each in held:
            each.callback(None)


def add_repository(catalog: MemoryCatalog, repository_id: int, *, format: str = "python") -> None:
    """Insert the storage and repository rows that grants and bindings refer to."""
    catalog.do(insert_repository, repository_id, format)


def insert_repository(tx: Transaction, repository_id: int, format: str) -> None:
    """The same as a write command, for any catalog."""
    tx.execute(
        """
        INSERT INTO storage (id, uid, name, key, kind, created_at, updated_at)
        VALUES (1, 's1', 'main', 'main', 'Local', 0, 0)
        ON CONFLICT DO NOTHING
        """
    )
    name = f"r{repository_id}"
    tx.execute(
        """
        INSERT INTO repository (id, uid, storage_id, name, key, format, type, visibility, config, created_at,
                                updated_at)
        VALUES (?, ?, 1, ?, ?, ?, 'Hosted', 'public', '{}', 0, 0)
        """,
        (repository_id, f"u{repository_id}", name, name, format),
    )
