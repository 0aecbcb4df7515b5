"""A catalog of the oldest version keeps its rows and gets the schema of a new one, on both engines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import apsw
import psycopg
import pytest

from pkgrepo.storage.catalog.engine.connections import open_writer as open_sqlite
from pkgrepo.storage.catalog.engine.dialect import FUNCTIONS, schema_to_postgresql, schema_to_sqlite
from pkgrepo.storage.catalog.engine.schema import APPLICATION_ID, load_schema, upgrade
from pkgrepo.storage.catalog.postgresql.schema import STATE_TABLE
from pkgrepo.storage.catalog.postgresql.schema import upgrade as upgrade_postgresql
from pkgrepo.storage.catalog.postgresql.sessions import Address, Session, open_writer
from tests.support.postgresql_catalogs import Databases

OLDEST: Final = 34
OLD_SCHEMA: Final = (Path(__file__).parents[1] / "data" / "catalog" / f"schema_{OLDEST}.sql").read_text()
SCHEMA: Final = load_schema()
UNUSED: Final = {"blob_ref", "outbox", "lease", "idempotency"}  # tables that no version wrote to
ANEW: Final = {"package_about"}  # what it has is made of the rest, and is made anew while the server runs
RENAMED: Final = {"promise": "push_lease"}
SUMMED: Final = {"download"}  # its rows are in the download log, see below
GROWN: Final = {"layout_pending"}  # see below
UNUSED_COLUMNS: Final = {("repository", "quota"), ("project", "quota")}

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
    """A catalog of the oldest version, with a row in each table."""
    connection = open_sqlite(tmp_path / "pkgrepo.db")
    connection.execute(schema_to_sqlite(OLD_SCHEMA))
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", OLDEST)
    for table, row in rows_for(connection).items():
        connection.execute(insertion(table, row, "?"), tuple(row.values()))
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
        columns = [name for name in row if (table, name) not in UNUSED_COLUMNS]
        if table not in UNUSED | ANEW | SUMMED | GROWN:
            yield RENAMED.get(table, table), columns, tuple(row[name] for name in columns)


LOGGED: Final = """
    SELECT i.kind, i.item_id, i.path, c.user_id, c.token_id, l.day, l.first_at, l.count
    FROM download_log l JOIN download_item i ON i.id = l.item_id JOIN download_client c ON c.id = l.client_id
"""
# The row that was there, and a retired name, which is to be shown.
PENDING: Final = "SELECT repository_id, package_key, version_key FROM layout_pending ORDER BY version_key"
SHOWN: Final = [(1, "some package_key", each) for each in ("", "some version_key")]


def drawn(connection: apsw.Connection) -> set[tuple[str, str]]:
    """Every table, index and trigger with its SQL, without comments, and with blanks and quotes only where needed."""
    found = set()
    for name, sql in connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall():
        text = re.sub(r"--[^\n]*|\"", " ", sql)
        found.add((name, re.sub(r"\s*([(),;])\s*", r"\1", " ".join(text.split()))))
    return found


def test_migrations_are_numbered_one_after_the_other() -> None:
    numbers = [each.number for each in SCHEMA.migrations]
    assert numbers == list(range(OLDEST + 1, OLDEST + 1 + len(numbers)))


def test_sqlite_keeps_all_rows(old: apsw.Connection, tmp_path: Path) -> None:
    rows = rows_for(old)
    upgrade(old, tmp_path / "pkgrepo.db", SCHEMA)
    assert len(rows) > 40
    for table, columns, row in kept(rows):
        assert old.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall() == [row], table
    assert old.execute(LOGGED).fetchall() == [("some kind", 1, "some path", 1, 1, 0, len("at"), 1)]
    assert old.execute(PENDING).fetchall() == SHOWN
    assert old.execute("SELECT rowid FROM package_text WHERE key LIKE '%ome k%'").fetchall() == [(1,)]
    assert old.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert old.execute("PRAGMA user_version").fetchall() == [(SCHEMA.version,)]


def test_sqlite_gets_the_schema_of_a_new_catalog(old: apsw.Connection, tmp_path: Path) -> None:
    upgrade(old, tmp_path / "pkgrepo.db", SCHEMA)
    new = open_sqlite(tmp_path / "new.db")
    upgrade(new, tmp_path / "new.db", SCHEMA)
    assert drawn(old) == drawn(new)


def test_postgresql_keeps_all_rows_and_gets_the_schema_of_a_new_catalog(
    databases: Databases, old: apsw.Connection
) -> None:
    rows = rows_for(old)
    with databases.another(empty=True) as url, databases.another() as new_url:
        with psycopg.connect(url) as connection:
            connection.execute(FUNCTIONS + STATE_TABLE + schema_to_postgresql(OLD_SCHEMA))
            connection.execute("UPDATE catalog_state SET version = %s", (OLDEST,))
            for table, row in rows.items():
                connection.execute(insertion(table, row, "%s"), tuple(row.values()))
        with open_writer(Address(url)) as session, open_writer(Address(new_url)) as new:
            upgrade_postgresql(session, SCHEMA)
            assert session.execute("SELECT version FROM catalog_state").fetchall() == [(SCHEMA.version,)]
            for table, columns, row in kept(rows):
                assert session.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall() == [row], table
            assert session.execute(LOGGED).fetchall() == [("some kind", 1, "some path", 1, 1, 0, len("at"), 1)]
            assert session.execute(PENDING).fetchall() == SHOWN
            for query in POSTGRESQL:
                assert found_by(session, query) == found_by(new, query)


def found_by(session: Session, query: str) -> set[tuple[Any, ...]]:
    found = session.execute(query).fetchall()
    assert found
    return set(found)
