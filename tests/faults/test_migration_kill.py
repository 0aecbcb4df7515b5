"""
Starts that are killed within an upgrade of the catalog, and nodes that upgrade it at once, on both engines.

A made-up version follows the present one by two steps. What a killed one leaves is a whole catalog of one of the three
versions, with all its rows, and the next start goes on from there.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import apsw
import psycopg
import pytest

from pkgrepo.storage.catalog.engine.connections import open_writer as open_sqlite
from pkgrepo.storage.catalog.engine.schema import upgrade
from tests.support.next_schema import FIRST_STEP, LAST_STEP, PRESENT, WAIT
from tests.support.postgresql_catalogs import Databases
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.faults

ROOT: Final = Path(__file__).parents[2]
ROWS: Final = "SELECT key, value FROM setting ORDER BY key"
SHADES: Final = "SELECT colour FROM shade ORDER BY id"
FIRST_ROW: Final = "INSERT INTO setting (key, value) VALUES ('a', 'b')"
WAITING: Final = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


@contextmanager
def starting(place: object, held: str = "nowhere") -> Iterator[subprocess.Popen[str]]:
    """Run the start of a node with the next version, from its beginning on; it is killed at the end."""
    command = [sys.executable, "-m", "tests.support.migration_child", str(place), held]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert read(process) == "beginning"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT_S)


def read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def wait_until(found: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + TIMEOUT_S
    while not found():
        assert time.monotonic() < ends_at
        time.sleep(0.02)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A catalog of the present version in a file, with a row."""
    path = tmp_path / "pkgrepo.db"
    connection = open_sqlite(path)
    upgrade(connection, path, PRESENT)
    connection.execute(FIRST_ROW)
    connection.close()
    return path


@pytest.fixture
def address(databases: Databases) -> Iterator[str]:
    """A catalog of the present version in PostgreSQL, with a row."""
    with databases.another() as address:
        with psycopg.connect(address) as session:
            session.execute(FIRST_ROW)
        yield address


def in_file(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize(("held", "left"), [("copy", PRESENT.version), ("step", FIRST_STEP)])
def test_a_kill_leaves_a_file_of_one_version_whole_and_the_next_start_goes_on(path: Path, held: str, left: int) -> None:
    with starting(path, held) as process:
        assert read(process) == "within"
    assert in_file(path, "PRAGMA user_version") == [(left,)]
    assert in_file(path, "PRAGMA integrity_check") == [("ok",)]
    assert in_file(path, ROWS) == [("a", "b")]
    if left > PRESENT.version:
        assert in_file(path, SHADES) == [("green",)]
    with starting(path) as process:
        assert read(process) == "upgraded"
    assert in_file(path, "PRAGMA user_version") == [(LAST_STEP,)]
    assert in_file(path, "PRAGMA foreign_key_check") == []
    assert in_file(path, ROWS) == [("a", "b")]
    assert in_file(path, SHADES) == [("green",), ("blue",), ("red",)]
    assert in_file(path.with_name(f"{path.name}.v{PRESENT.version}"), ROWS) == [("a", "b")]
    assert not list(path.parent.glob("*.unfinished"))


def test_two_nodes_at_once_upgrade_a_file_once(path: Path) -> None:
    with starting(path, "step") as first:
        assert read(first) == "within"
        with starting(path) as second:
            go_on(first)
            assert (read(first), read(second)) == ("upgraded", "upgraded")
    assert in_file(path, "PRAGMA user_version") == [(LAST_STEP,)]
    assert in_file(path, SHADES) == [("green",), ("blue",), ("red",)]


def test_a_node_goes_on_where_another_one_is_killed_within_the_upgrade_of_a_file(path: Path) -> None:
    with starting(path, "step") as first:
        assert read(first) == "within"
        with starting(path) as second:
            first.kill()
            assert read(second) == "upgraded"
    assert in_file(path, SHADES) == [("green",), ("blue",), ("red",)]


def test_a_kill_leaves_a_database_of_one_version_whole_and_the_next_start_goes_on(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as session:
        session.execute("SELECT pg_advisory_lock(%s)", (WAIT,))
        with starting(address):
            wait_until(lambda: session.execute(WAITING).fetchone() == (1,))
        session.execute("SELECT pg_advisory_unlock(%s)", (WAIT,))
        others = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type LIKE 'client%'"
        )
        wait_until(lambda: session.execute(others).fetchone() == (1,))
        assert session.execute("SELECT version FROM catalog_state").fetchall() == [(FIRST_STEP,)]
        assert session.execute(SHADES).fetchall() == [("green",)]
        with starting(address) as process:
            assert read(process) == "upgraded"
        assert session.execute("SELECT version FROM catalog_state").fetchall() == [(LAST_STEP,)]
        assert session.execute(ROWS).fetchall() == [("a", "b")]
        assert session.execute(SHADES).fetchall() == [("green",), ("blue",), ("red",)]


def test_two_nodes_at_once_upgrade_a_database_once(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as session:
        session.execute("SELECT pg_advisory_lock(%s)", (WAIT,))
        with starting(address) as first, starting(address) as second:
            wait_until(lambda: session.execute(WAITING).fetchone() == (2,))  # one within its step, one for its turn
            session.execute("SELECT pg_advisory_unlock(%s)", (WAIT,))
            assert (read(first), read(second)) == ("upgraded", "upgraded")
        assert session.execute("SELECT version FROM catalog_state").fetchall() == [(LAST_STEP,)]
        assert session.execute(SHADES).fetchall() == [("green",), ("blue",), ("red",)]
