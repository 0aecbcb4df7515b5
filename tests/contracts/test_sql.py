"""The SQL of the program on both engines: every statement is prepared on each, and both have the same schema."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import apsw
import apsw.ext
import psycopg
import pytest
from psycopg.pq import ExecStatus

import pkgrepo
from pkgrepo.storage.catalog.engine.dialect import FUNCTIONS, schema_to_postgresql, to_postgresql
from pkgrepo.storage.catalog.engine.schema import load_schema
from tests.support.catalog import MemoryCatalog
from tests.support.postgresql_catalogs import Databases
from tests.support.sql_statements import Statement, find_statements, load_sources

CATALOG = f"{pkgrepo.__name__}.storage.catalog."
ENGINES = (f"{CATALOG}engine.", f"{CATALOG}postgresql.")  # the SQL of each is for itself alone
PACKAGING = f"{pkgrepo.__name__}.packaging"  # has no SQL, and needs what a release needs
LEDGER = "pkgrepo.repositories.backup.ledger"  # of backups: a temporary database of its own

# Name, type, whether NULL is refused, and place in the primary key (0: none) of every column.
SQLITE_COLUMNS = """
    SELECT t.name, c.name, CASE c.type WHEN 'INTEGER' THEN 'bigint' WHEN 'BLOB' THEN 'bytea' ELSE lower(c.type) END,
        c."notnull" OR c.pk > 0, c.dflt_value, c.pk
    FROM pragma_table_list t JOIN pragma_table_info(t.name) c
    WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite%'
"""
POSTGRESQL_COLUMNS = """
    SELECT c.table_name, c.column_name, c.data_type, (c.is_nullable = 'NO')::int, c.column_default,
        COALESCE(k.ordinal_position, 0)
    FROM information_schema.columns c
    JOIN information_schema.tables t
        ON t.table_name = c.table_name AND t.table_schema = c.table_schema AND t.table_type = 'BASE TABLE'
    LEFT JOIN information_schema.table_constraints p
        ON p.table_name = c.table_name AND p.constraint_type = 'PRIMARY KEY' AND p.table_schema = c.table_schema
    LEFT JOIN information_schema.key_column_usage k
        ON k.constraint_name = p.constraint_name AND k.table_name = c.table_name AND k.column_name = c.column_name
    WHERE c.table_schema = 'public' AND c.column_name <> 'rowid'  -- which tables of SQLite have without being asked
"""
# Table, whether values are unique, whether it is partial, and columns of every index.
SQLITE_INDEXES = """
    SELECT t.name, i."unique", i.partial, (SELECT group_concat(x.name, ',') FROM pragma_index_info(i.name) x)
    FROM pragma_table_list t JOIN pragma_index_list(t.name) i
    WHERE t.schema = 'main' AND t.type = 'table' AND i.origin <> 'pk'
"""
POSTGRESQL_INDEXES = """
    SELECT i.indrelid::regclass::text, i.indisunique::int, (i.indpred IS NOT NULL)::int, (
        SELECT string_agg(a.attname, ',' ORDER BY k.place) FROM unnest(i.indkey) WITH ORDINALITY k (number, place)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
    )
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'public' AND NOT i.indisprimary
"""
# Table and column of every foreign key, the referenced table, and the action on delete.
SQLITE_REFERENCES = """
    SELECT t.name, f."from", f."table", f.on_delete
    FROM pragma_table_list t JOIN pragma_foreign_key_list(t.name) f WHERE t.schema = 'main' AND t.type = 'table'
"""
POSTGRESQL_REFERENCES = """
    SELECT c.conrelid::regclass::text, a.attname, c.confrelid::regclass::text,
        CASE c.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' ELSE 'NO ACTION' END
    FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] WHERE c.contype = 'f'
"""


@pytest.fixture(scope="module")
def found() -> tuple[list[Statement], list[str]]:
    sources = load_sources(Path(pkgrepo.__file__).parent)
    return find_statements([source for source in sources if not source.name.startswith((*ENGINES, PACKAGING, LEDGER))])


@pytest.fixture(scope="module")
def statements(found: tuple[list[Statement], list[str]]) -> list[Statement]:
    return found[0]


@pytest.fixture(scope="module")
def sqlite() -> apsw.Connection:
    return MemoryCatalog().tx.connection


@pytest.fixture(scope="module")
def postgres(databases: Databases) -> Iterator[psycopg.Connection]:
    with databases.another(empty=True) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(FUNCTIONS)
        connection.execute(schema_to_postgresql(load_schema().sql))
        yield connection


def test_every_sql_statement_is_found_in_the_source(
    found: tuple[list[Statement], list[str]],
) -> None:
    statements, unclear = found
    assert not unclear, "\n".join(unclear)
    assert len({statement.place for statement in statements}) > 300


def test_sqlite_prepares_every_statement(statements: list[Statement], sqlite: apsw.Connection) -> None:
    wrong = []
    for statement in statements:
        try:
            apsw.ext.query_info(sqlite, statement.sql)
        except apsw.SQLError as error:
            wrong.append(f"{statement.place}: {error}")
    assert not wrong, "\n".join(dict.fromkeys(wrong))


def test_no_join_begins_with_all_blobs_of_a_storage(statements: list[Statement], sqlite: apsw.Connection) -> None:
    """Nor with all tombstones of a repository. SQLite has no statistics until a restart after the catalog has grown."""
    wrong = []
    for statement in statements:
        if not re.search(r"JOIN\s+blob|\bpackage_key = \?", statement.sql):
            continue
        plan = list(sqlite.execute(f"EXPLAIN QUERY PLAN {statement.sql}", (1,) * statement.sql.count("?")))
        steps = Counter(parent for _, parent, *_ in plan)
        for _, parent, _, detail in plan:
            begins = re.search(r"SEARCH (b|blob|tombstone) USING PRIMARY KEY \(\w+=\?\)", str(detail))
            if begins and (begins[1] != "blob" or steps[parent] > 1):  # else it is one side of EXCEPT or INTERSECT
                wrong.append(statement.place)
    assert wrong == []


def test_postgresql_prepares_every_statement(statements: list[Statement], postgres: psycopg.Connection) -> None:
    wrong = []
    for statement in statements:
        result = postgres.pgconn.prepare(b"", to_postgresql(statement.sql).encode())
        if result.status != ExecStatus.COMMAND_OK:
            wrong.append(f"{statement.place}: {result.error_message.decode().strip()}")
    assert not wrong, "\n".join(dict.fromkeys(wrong))


def test_an_insert_that_gives_a_key_returns_it(statements: list[Statement]) -> None:
    inserts = [each for each in statements if each.runner == "insert"]
    assert inserts
    assert [each.place for each in inserts if not re.search(r"RETURNING id\s*\Z", each.sql)] == []


@pytest.mark.parametrize(
    ("of_sqlite", "of_postgresql"),
    [
        (SQLITE_COLUMNS, POSTGRESQL_COLUMNS),
        (SQLITE_INDEXES, POSTGRESQL_INDEXES),
        (SQLITE_REFERENCES, POSTGRESQL_REFERENCES),
    ],
    ids=["columns", "indexes", "references"],
)
def test_both_engines_have_the_same_schema(
    sqlite: apsw.Connection, postgres: psycopg.Connection, of_sqlite: str, of_postgresql: str
) -> None:
    expected = {tuple(row) for row in sqlite.execute(of_sqlite)}
    actual = {tuple(_plain(value) for value in row) for row in postgres.execute(of_postgresql)}
    assert expected
    assert actual == expected


def test_postgresql_compares_every_text_bytewise(postgres: psycopg.Connection) -> None:
    rows = postgres.execute(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'"
    )
    assert rows.fetchall() == []


def _plain(value: object) -> object:
    return re.sub(r"::text\Z", "", value) if isinstance(value, str) else value
