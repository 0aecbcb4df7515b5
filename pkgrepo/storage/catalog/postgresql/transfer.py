"""
Copies a whole catalog from SQLite to PostgreSQL, and back.

Both have the same tables. A copy is made from one snapshot into an empty database, in one transaction: after a failure
there is none. Numbers that were given out once are not given out again by the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from graphlib import TopologicalSorter
from itertools import count
from pathlib import Path
from typing import Any, Final

import apsw
import psycopg
from attrs import frozen
from psycopg import RawServerCursor, sql

from pkgrepo.storage.catalog.engine import connections as sqlite
from pkgrepo.storage.catalog.engine.connections import CatalogUnusable
from pkgrepo.storage.catalog.engine.schema import load_schema
from pkgrepo.storage.catalog.engine.schema import upgrade as upgrade_sqlite
from pkgrepo.storage.catalog.postgresql.sessions import first_line

from .schema import is_empty, upgrade
from .sessions import Address, Session, open_reader, open_writer

FETCHED: Final = 2000  # rows at a time
Report = Callable[[str, int], object]  # a table, and how many rows of it were copied


@frozen
class _Table:
    name: str
    columns: tuple[str, ...]
    key: str | None  # the column that the database numbers


def copy_to_postgresql(path: Path, address: Address, report: Report) -> None:
    """
    Copy the catalog in a file into an empty database.

    :raises CatalogUnusable: the file has another version, the database has tables, or one of them fails
    """
    try:
        with closing(sqlite.open_reader(path)) as source, open_writer(address) as target:
            source.execute("BEGIN")
            if source.pragma("user_version") != load_schema().version:
                raise CatalogUnusable(f"{path} is from another version; start this one on it once")
            if not is_empty(target):
                raise CatalogUnusable("the database that is to have the copy has tables already")
            upgrade(target, load_schema())
            with target.transaction():
                for table in _tables(source):
                    rows = source.execute(_selection(table))
                    report(table.name, _load(target, table, rows))
                    _continue_numbers(source, target, table)
    except psycopg.Error as error:
        raise CatalogUnusable(f"the database cannot be used: {first_line(error)}") from error
    except apsw.Error as error:
        raise CatalogUnusable(f"{path} cannot be read: {error}") from error


def check_empty(address: Address) -> None:
    """:raises CatalogUnusable: the database has tables, or fails"""
    try:
        with open_reader(address) as session:
            if not is_empty(session):
                raise CatalogUnusable("the database that is to have the copy has tables already")
    except psycopg.Error as error:
        raise CatalogUnusable(f"the database cannot be used: {first_line(error)}") from error


def copy_to_sqlite(address: Address, path: Path, report: Report) -> None:
    """
    Copy the catalog in a database into a new file.

    :raises CatalogUnusable: the database has another version, the file exists, or one of them fails
    """
    if path.exists():
        raise CatalogUnusable(f"{path} exists already")
    try:
        with open_reader(address) as source, closing(sqlite.open_writer(path)) as target:
            source.execute("BEGIN")
            if is_empty(source) or _version_of(source) != load_schema().version:
                raise CatalogUnusable("the database is from another version; start this one on it once")
            upgrade_sqlite(target, path, load_schema())
            target.pragma("foreign_keys", False)
            target.execute("BEGIN IMMEDIATE")
            for table in _tables(target):
                report(table.name, _insert(target, table, _rows(source, table)))
                _keep_numbers(source, target, table)
            target.execute("COMMIT")
            if target.execute("PRAGMA foreign_key_check").fetchall():
                raise CatalogUnusable("the copy has rows that refer to nothing")
    except psycopg.Error as error:
        raise CatalogUnusable(f"the database cannot be used: {first_line(error)}") from error
    except apsw.Error as error:
        raise CatalogUnusable(f"{path} cannot be written: {error}") from error


def _tables(connection: apsw.Connection) -> Sequence[_Table]:
    """Every table with rows of its own, after those that it refers to."""
    found = connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite%'"
    )
    order: TopologicalSorter[str] = TopologicalSorter()
    for (name,) in found.fetchall():
        referred = connection.execute('SELECT "table" FROM pragma_foreign_key_list(?)', (name,)).fetchall()
        order.add(str(name), *(str(other) for (other,) in referred if other != name))
    return [_table(connection, name) for name in order.static_order()]


def _table(connection: apsw.Connection, name: str) -> _Table:
    found = connection.execute("SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid", (name,)).fetchall()
    keys = [(str(column), kind) for column, kind, place in found if place]
    key = keys[0][0] if len(keys) == 1 and keys[0] in (("id", "INTEGER"), ("seq", "INTEGER")) else None
    return _Table(name, tuple(str(column) for column, _, _ in found), key)


def _selection(table: _Table) -> str:
    columns = ", ".join(f'"{column}"' for column in table.columns)
    return f'SELECT {columns} FROM "{table.name}"'


def _load(target: Session, table: _Table, rows: Iterator[tuple[Any, ...]]) -> int:
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table.name), sql.SQL(", ").join(map(sql.Identifier, table.columns))
    )
    count = 0
    with psycopg.Cursor(target) as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)
            count += 1
    return count


def _rows(source: Session, table: _Table) -> Iterator[tuple[Any, ...]]:
    with RawServerCursor(source, f"copy_{table.name}") as cursor:
        cursor.itersize = FETCHED
        yield from cursor.execute(_selection(table))


def _insert(target: apsw.Connection, table: _Table, rows: Iterator[tuple[Any, ...]]) -> int:
    places = ", ".join("?" for _ in table.columns)
    columns = ", ".join(f'"{column}"' for column in table.columns)
    target.execute(f'DELETE FROM "{table.name}"')
    counted = count()
    target.executemany(
        f'INSERT INTO "{table.name}" ({columns}) VALUES ({places})',
        (row for row, _ in zip(rows, counted, strict=False)),
    )
    return next(counted)


def _continue_numbers(source: apsw.Connection, target: Session, table: _Table) -> None:
    """Let the copy number new rows after those that the original ever had."""
    if table.key is None:
        return
    given = source.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table.name,)).get
    most = source.execute(f'SELECT MAX("{table.key}") FROM "{table.name}"').get
    last = max(given or 0, most or 0)
    if last:
        target.execute("SELECT setval(pg_get_serial_sequence($1, $2), $3::bigint)", (table.name, table.key, last))


def _keep_numbers(source: Session, target: apsw.Connection, table: _Table) -> None:
    if table.key is None or not _is_numbered_for_ever(target, table):
        return
    ((sequence,),) = source.execute("SELECT pg_get_serial_sequence($1, $2)", (table.name, table.key)).fetchall()
    sql = f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}"
    ((last,),) = source.execute(sql).fetchall()
    target.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table.name,))
    if last:
        target.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table.name, last))


def _is_numbered_for_ever(target: apsw.Connection, table: _Table) -> bool:
    written = target.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table.name,)).get
    return "AUTOINCREMENT" in str(written)


def _version_of(source: Session) -> int:
    (version,) = source.execute("SELECT version FROM catalog_state").fetchone() or (0,)
    return int(version)
