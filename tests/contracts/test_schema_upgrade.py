"""A catalog keeps its rows and gets the schema of the next version, which is made up here, on both engines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import apsw
import psycopg
import pytest

from pkgrepo.storage.catalog.engine.connections import open_writer as open_sqlite
from pkgrepo.storage.catalog.engine.dialect import schema_to_sqlite
from pkgrepo.storage.catalog.engine.schema import APPLICATION_ID, upgrade
from pkgrepo.storage.catalog.postgresql.schema import upgrade as upgrade_postgresql
from pkgrepo.storage.catalog.postgresql.sessions import Address, Session, open_writer
from tests.support.next_schema import LAST_STEP, NEXT, PRESENT
from tests.support.postgresql_catalogs import Databases
from tests.support.release_data import RELEASES, unpack

REMOVED: Final = {"login_unlock"}  # by the made-up steps, like the column
REMOVED_COLUMNS: Final = {("project", "description")}
SHADES: Final = "SELECT colour FROM shade ORDER BY id"

# What PostgreSQL has, apart from the order of columns.
POSTGRESQL: Final = (
    "SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default, is_identity"
    " FROM information_schema.columns WHERE table_schema = 'public'",
    "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    " WHERE connamespace = 'public'::regnamespace",
    "SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'",
    "SELECT sequencename, data_type::text FROM pg_sequences WHERE schemaname = 'public'",
)


@pytest.fixture
def old(tmp_path: Path) -> apsw.Connection:
    """A catalog of the present version, with a row in each table."""
    connection = catalog_of(PRESENT.version, PRESENT.sql, tmp_path / "pkgrepo.db")
    for table, row in rows_for(connection).items():
        connection.execute(insertion(table, row, "?"), tuple(row.values()))
    return connection


def catalog_of(version: int, schema: str, path: Path) -> apsw.Connection:
    """A catalog as a version has made it."""
    connection = open_sqlite(path)
    connection.create_scalar_function("wait_within", lambda: None, 0)
    connection.execute(schema_to_sqlite(schema))
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", version)
    return connection


def rows_for(connection: apsw.Connection) -> Mapping[str, Mapping[str, Any]]:
    """A row for each table. The first row of each has the key 1, to which all others refer."""
    tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%' AND NOT name LIKE ?"
    found = {}
    for (table,) in connection.execute(tables, ("sqlite%",)).fetchall():
        if "_text_" not in table:  # which belongs to an index
            columns = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
            found[table] = {name: sample(name, kind) for name, kind in columns}
    return found


def sample(name: str, kind: str) -> Any:
    if kind == "INTEGER":
        return 1 if name == "id" or name.endswith("_id") else len(name)
    return name.encode() if kind == "BLOB" else f"some {name}"


def insertion(table: str, row: Mapping[str, Any], mark: str) -> str:
    marks = ", ".join([mark] * len(row))
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"


def kept(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Sequence[str], tuple[Any, ...]]]:
    """The tables that the upgraded catalog has, with the columns and the row of each."""
    for table, row in rows.items():
        columns = [name for name in row if (table, name) not in REMOVED_COLUMNS]
        if table not in REMOVED:
            yield table, columns, tuple(row[name] for name in columns)


def drawn(connection: apsw.Connection) -> set[tuple[str, str]]:
    """Every table, index and trigger with its SQL, without comments, and with blanks and quotes only where needed."""
    found = set()
    own = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'"
    for name, sql in connection.execute(own).fetchall():
        text = re.sub(r"--[^\n]*|\"", " ", sql)
        found.add((name, re.sub(r"\s*([(),;])\s*", r"\1", " ".join(text.split()))))
    return found


def test_sqlite_keeps_all_rows(old: apsw.Connection, tmp_path: Path) -> None:
    rows = rows_for(old)
    upgrade(old, tmp_path / "pkgrepo.db", NEXT)
    assert len(rows) > 40
    for table, columns, row in kept(rows):
        assert old.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall() == [row], table
    assert old.execute(SHADES).fetchall() == [("green",), ("blue",), ("red",)]
    assert old.execute("SELECT rowid FROM package_text WHERE key LIKE '%ome k%'").fetchall() == [(1,)]
    assert old.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert old.execute("PRAGMA user_version").fetchall() == [(LAST_STEP,)]


def test_sqlite_gets_the_schema_of_a_new_catalog(old: apsw.Connection, tmp_path: Path) -> None:
    upgrade(old, tmp_path / "pkgrepo.db", NEXT)
    new = open_sqlite(tmp_path / "new.db")
    upgrade(new, tmp_path / "new.db", NEXT)
    assert drawn(old) == drawn(new)


def test_postgresql_keeps_all_rows_and_gets_the_schema_of_a_new_catalog(
    databases: Databases, old: apsw.Connection
) -> None:
    rows = rows_for(old)
    with databases.another() as url, databases.another(empty=True) as new_url:
        with psycopg.connect(url) as connection:
            for table, row in rows.items():
                connection.execute(insertion(table, row, "%s"), tuple(row.values()))
        with open_writer(Address(url)) as session, open_writer(Address(new_url)) as new:
            upgrade_postgresql(session, NEXT)
            upgrade_postgresql(new, NEXT)
            assert session.execute("SELECT version FROM catalog_state").fetchall() == [(LAST_STEP,)]
            for table, columns, row in kept(rows):
                assert session.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall() == [row], table
            assert session.execute(SHADES).fetchall() == [("green",), ("blue",), ("red",)]
            assert_alike(session, new)


@pytest.mark.parametrize("release", RELEASES)
def test_the_catalog_of_each_release_gets_the_schema_of_a_new_one_in_sqlite(release: str, tmp_path: Path) -> None:
    found = unpack(release, tmp_path)
    stored = apsw.Connection(str(found.database))
    upgrade(stored, found.database, PRESENT)
    new = open_sqlite(tmp_path / "new.db")
    upgrade(new, tmp_path / "new.db", PRESENT)
    assert drawn(stored) == drawn(new)


@pytest.mark.parametrize("release", RELEASES)
def test_the_catalog_of_each_release_gets_the_schema_of_a_new_one_in_postgresql(
    release: str, databases: Databases, tmp_path: Path
) -> None:
    with databases.another(empty=True) as url, databases.another() as new_url:
        unpack(release, tmp_path).copy_to_postgresql(url)
        with open_writer(Address(url)) as session, open_writer(Address(new_url)) as new:
            upgrade_postgresql(session, PRESENT)
            assert_alike(session, new)


def assert_alike(one: Session, other: Session) -> None:
    for query in POSTGRESQL:
        assert found_by(one, query) == found_by(other, query)


def found_by(session: Session, query: str) -> set[tuple[Any, ...]]:
    found = session.execute(query).fetchall()
    assert found
    return set(found)
