"""The collection of SQL statements is complete: where it cannot evaluate one, it reports an error."""

from __future__ import annotations

import sys
from textwrap import dedent, indent

import pytest

from tests.support.sql_statements import find_statements, load_sources

HEAD = """
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import placeholders, optional_conditions
from pkgrepo.storage.catalog.rows import insert, number, put
COLUMNS = "a, b"
BY = {"a": "SELECT 1", "b": "SELECT 2"}
CONDITIONS = ("a = ?", "b = ?")
"""


@pytest.fixture
def found(tmp_path, monkeypatch):
    def find(body):
        package = tmp_path / "pkgrepo_sample"
        package.mkdir()
        (package / "__init__.py").write_text(HEAD + dedent(body))
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "pkgrepo_sample", raising=False)
        statements, errors = find_statements(load_sources(package))
        return [each.sql for each in statements], errors

    return find


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('r.one("SELECT 1")', ["SELECT 1"]),
        ('r.all(f"SELECT {COLUMNS} FROM x")', ["SELECT a, b FROM x"]),
        ('r.all("SELECT " + COLUMNS)', ["SELECT a, b"]),
        ("r.one(BY[which])", ["SELECT 1", "SELECT 2"]),
        ("r.one(f\"SELECT 1 {'LIMIT 1' if which else ''}\")", ["SELECT 1 LIMIT 1", "SELECT 1 "]),
        ('r.all(f"{1 and placeholders(len(which))}")', None),
        ('r.all(f"SELECT {placeholders(len(which))}")', ["SELECT ?", "SELECT ?, ?, ?"]),
        (
            'r.all(f"SELECT 1 WHERE {optional_conditions(CONDITIONS, which)}")',
            ["SELECT 1 WHERE " + each for each in ("1 = 1", "b = ?", "a = ?", "a = ? AND b = ?")],
        ),
        ('number(r, "SELECT 3")', ["SELECT 3"]),
        ('for sql in ("SELECT 1", "SELECT 2"):\n    r.one(sql)', ["SELECT 1", "SELECT 2"]),
        ('[r.one(sql) for sql in ("SELECT 1", "SELECT 2")]', ["SELECT 1", "SELECT 2"]),
        ('sql = "SELECT 1"\nif which:\n    sql = "SELECT 2"\nr.one(sql)', ["SELECT 1", "SELECT 2"]),
        ('end = "A" if which else "B"\nr.one(f"{end}{end}")', ["AA", "BB"]),
        ('sql = "SELECT 1"\nsql += which\nr.one(sql)', None),
        ("r.one(which)", None),
        ('r.one("SELECT {}".format(which))', None),
        ("run = r.one\nrun('SELECT 1')", None),
        ("reader = r\nreader.one('SELECT 1')", None),
        ("which.one('SELECT 1')", None),
        ("which.tx.execute(BY['a'])", None),
        ('insert(tx, "x", a=1, b=which)', ["INSERT INTO x (a, b) VALUES (?, ?) RETURNING id"]),
        ('put(tx, "x", a=which)', ["INSERT INTO x (a) VALUES (?)"]),
        (
            'put(tx, "x", "a, b", a=1, b=2, c=which)',
            ["INSERT INTO x (a, b, c) VALUES (?, ?, ?) ON CONFLICT (a, b) DO UPDATE SET c = excluded.c"],
        ),
        ("put(tx, which, a=1)", None),
        ('put(tx, "x", which, a=1)', None),
        ('insert(tx, "x", **which)', None),
    ],
)
def test_sql_is_worked_out_or_reported(found, body, expected):
    statements, errors = found("def query(r: Reader, which):\n" + indent(body, "    "))
    assert statements == (expected or [])
    assert bool(errors) == (expected is None)


def test_what_callers_give_is_followed(found):
    body = """
    def first(r: Reader):
        return _count(r, "x")

    def second(tx: Transaction):
        return _count(tx, table="y")

    def _count(r: Reader, table: str):
        return r.one(f"SELECT COUNT(*) FROM {table}")
    """
    assert found(body) == (["SELECT COUNT(*) FROM x", "SELECT COUNT(*) FROM y"], [])


def test_an_error_names_the_place(found):
    _, (error,) = found("def query(r: Reader, which):\n    r.one(which())\n")
    assert error.startswith("pkgrepo_sample/__init__.py:9: ")
