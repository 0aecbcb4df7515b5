"""The reserve file beside the database."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from pkgrepo.storage.catalog.engine import sqlite as module
from pkgrepo.storage.catalog.engine.connections import SqliteTransaction
from pkgrepo.storage.catalog.engine.sqlite import SIZE, DiskReserve, renew_statistics


def test_the_reserve_is_allocated_and_released_once(tmp_path):
    reserve = DiskReserve(tmp_path / "pkgrepo.db")
    reserve.allocate()
    reserve.allocate()
    (file,) = tmp_path.iterdir()
    assert (file.name, file.stat().st_size, file.stat().st_mode & 0o077) == ("pkgrepo.db-reserve", SIZE, 0)
    assert file.stat().st_blocks * 512 >= SIZE  # not a hole
    assert reserve.release()
    assert not reserve.release()
    assert list(tmp_path.iterdir()) == []


def test_a_reserve_that_does_not_fit_leaves_no_file(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "no space")

    monkeypatch.setattr(module.os, "posix_fallocate", refuse)
    DiskReserve(tmp_path / "pkgrepo.db").allocate()
    assert list(tmp_path.iterdir()) == []


def rows(connection: apsw.Connection, sql: str) -> list[Any]:
    return connection.execute(sql).fetchall()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "catalog.db"
    connection = apsw.Connection(str(path))
    rows(connection, "PRAGMA journal_mode = WAL")
    rows(connection, "CREATE TABLE thing (id INTEGER PRIMARY KEY, kind INTEGER, name INTEGER)")
    rows(connection, "CREATE INDEX thing_kind ON thing (kind)")
    rows(connection, "CREATE INDEX thing_name ON thing (name)")
    # Such a table is analysed again each time while it is empty.
    rows(connection, "CREATE TABLE other (id INTEGER PRIMARY KEY, name TEXT)")
    rows(connection, "CREATE INDEX other_name ON other (name) WHERE name <> ''")
    connection.close()
    return path


def add(connection: apsw.Connection, count: int) -> None:
    """Add rows of one kind, each with another name."""
    rows(
        connection,
        f"""
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
        INSERT INTO thing (kind, name) SELECT 1, i FROM n
        """,
    )


def renew(connection: apsw.Connection) -> bool:
    with connection:
        return renew_statistics(SqliteTransaction(connection))


def counted(connection: apsw.Connection) -> list[str]:
    return sorted(row[0].split()[0] for row in rows(connection, "SELECT stat FROM sqlite_stat1"))


def test_they_are_renewed_when_a_table_has_grown_tenfold_and_not_before(path: Path) -> None:
    connection = apsw.Connection(str(path))
    add(connection, 1000)
    assert renew(connection)
    assert counted(connection) == ["1000", "1000"]
    add(connection, 1000)
    assert not renew(connection)
    add(connection, 20_000)
    assert renew(connection)
    assert counted(connection) == ["22000", "22000"]
    assert not renew(connection)
    tables = rows(connection, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    assert tables == [("thing",), ("other",)]
    connection.close()


def test_other_connections_plan_with_the_new_ones(path: Path) -> None:
    writer, other = apsw.Connection(str(path)), apsw.Connection(str(path))
    plan = "EXPLAIN QUERY PLAN SELECT id FROM thing WHERE kind = 1 AND name BETWEEN 5 AND 6"
    add(writer, 100)
    assert renew(writer)
    before = rows(other, "PRAGMA schema_version")
    add(writer, 20_000)
    assert renew(writer)
    assert rows(other, "PRAGMA schema_version") != before
    assert "thing_name" in rows(other, plan)[0][3]
    for each in (writer, other):
        each.close()
