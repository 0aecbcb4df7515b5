"""A copied release is in the catalog as a published one is."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from tests.bench.contestants.server import ROOT
from tests.bench.multiply import multiply
from tests.bench.packages.filler import BASE
from tests.support.postgresql_catalogs import Databases
from tests.support.timeouts import TIMEOUT_S

COPY = 2 * BASE  # the number of the first one of the first copy
REPOSITORY = """
INSERT INTO storage (uid, name, key, kind, created_at, updated_at) VALUES ('s', 'main', 'main', 'Local', 1, 1);
INSERT INTO repository (uid, storage_id, name, key, format, type, visibility, config, created_at, updated_at)
VALUES ('r', 1, 'py', 'py', 'python', 'Hosted', 'public', '{"type":"Hosted"}', 1, 1)
"""
UPLOADED = re.compile(r'"upload-time":"[^"]*"')
# Numbers of rows and moments; all else is the same in both.
DIFFERING = re.compile(r"(\A|_)(id|seq|serial|at)\Z|\Amodified_s\Z")


@pytest.fixture(scope="module")
def urls(databases: Databases) -> Iterator[tuple[str, str]]:
    """Two releases with their copies, and the first one of the copies as it is published."""
    with databases.another() as copied, databases.another() as published:
        for url in (copied, published):
            with psycopg.connect(url) as session:
                session.execute(REPOSITORY)
        fill(copied, 2, BASE)
        multiply(copied, "main/py", 3)
        fill(published, 1, COPY)
        yield copied, published


def fill(url: str, count: int, first: int) -> None:
    parts = conninfo_to_dict(url)
    address = f"postgresql:///?host={parts['host']}&user={parts['user']}&dbname={parts['dbname']}"
    command = [sys.executable, "-m", "tests.bench.fill", address, "main/py", str(count), "python", str(first)]
    subprocess.run(command, cwd=ROOT, timeout=TIMEOUT_S, check=True)


def rows_of(url: str, package: str) -> Mapping[str, list[Mapping[str, Any]]]:
    """What every table has of a package, by the table, with ``#`` for its digest."""
    found = {}
    with psycopg.connect(url, row_factory=dict_row) as session:
        (file,) = session.execute("SELECT * FROM file WHERE path LIKE %s", (f"packages/{package}/%",)).fetchall()
        keys = {"package_id": file["package_id"], "version_id": file["version_id"], "sha256": file["sha256"]}
        tables = session.execute(
            "SELECT table_name, array_agg(column_name::text) AS columns FROM information_schema.columns"
            " JOIN information_schema.tables USING (table_schema, table_name)"
            " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
            " AND (column_name <> 'sha256' OR data_type = 'bytea') GROUP BY table_name"
        ).fetchall()
        for table, columns in ((each["table_name"], each["columns"]) for each in tables):
            owned = {name: value for name, value in keys.items() if name in columns}
            if table in {"package", "version"}:
                owned = {"id": keys[f"{table}_id"]}
            if owned:
                where = " OR ".join(f"{name} = %({name})s" for name in owned)
                rows = session.execute(f"SELECT * FROM {table} WHERE {where}", owned).fetchall()
                found[table] = [plain(row, file["sha256"]) for row in rows]
    return {table: sorted(rows, key=str) for table, rows in found.items() if rows}


def plain(row: Mapping[str, Any], digest: bytes) -> Mapping[str, Any]:
    values = {name: bytes(value) if isinstance(value, memoryview) else value for name, value in row.items()}
    kept = {name: value for name, value in values.items() if not DIFFERING.search(name)}
    digests = (f"{digest.hex()[:2]}/{digest.hex()}", digest.hex(), str(digest)[2:-1])  # of a locator, in texts, in rows
    texts = {name: UPLOADED.sub("", str(value)) for name, value in kept.items()}
    return {name: reduce(lambda text, each: text.replace(each, "#"), digests, text) for name, text in texts.items()}


def test_a_copy_has_the_rows_of_a_published_release(urls: tuple[str, str]) -> None:
    copied, published = urls
    expected = rows_of(published, f"filler-{COPY}")
    assert set(expected) == {"package", "version", "file", "event", "fragment", "blob"}
    found = rows_of(copied, f"filler-{COPY}")
    assert found == expected


def test_what_counts_rows_and_the_indexes_are_as_after_publishing(urls: tuple[str, str]) -> None:
    made = []
    for url in urls:
        with psycopg.connect(url) as session:
            made.append(session.execute("SELECT indexname, indexdef FROM pg_indexes ORDER BY indexname").fetchall())
    assert made[0] == made[1]
    fill(urls[0], 1, 5 * BASE)  # the sequences have moved on
    with psycopg.connect(urls[0]) as session:
        counts = session.execute("SELECT package_count, serial, bytes_used FROM repository").fetchone()
        size = session.execute("SELECT count(*), count(*), sum(size) FROM file").fetchone()
        assert counts == size == (7, 7, size[2] if size else None)
        cursor = session.execute("SELECT value FROM setting WHERE key = 'readable_layout_cursor'").fetchone()
        assert cursor == session.execute("SELECT max(seq)::text FROM event").fetchone()
