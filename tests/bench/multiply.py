"""
Multiplies a filled catalog inside PostgreSQL: ``python -m tests.bench.multiply ADDRESS REPOSITORY TIMES``.

It copies what L{fill} published of the kind ``wheel`` with numbers from L{BASE} on: each copy has numbers of its own in
all names, digests of its own, and rows in the same tables. Filling ten million by the publishing command would take
hours; the copies take about a quarter of one. Nothing else may use the database meanwhile, and a crash loses it, for it
is not flushed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeAlias

import psycopg

from pkgrepo.storage.catalog.server.layout_pending import CURSOR, MARK

from .packages.filler import BASE

Session: TypeAlias = "psycopg.Connection[Any]"
THREADS: Final = 2
UNSAFE: Final = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "max_wal_size": "8GB"}

_DIGEST = "sha256(b.digest || int4send(c.k))"
_HEX = f"encode({_DIGEST}, 'hex')"


def _named(text: str) -> str:
    """With the number of the copy in front: those of the base begin with 1."""
    return f"replace(replace({text}, 'filler-1', 'filler-' || c.k), 'filler_1', 'filler_' || c.k)"


def _hashed(text: str) -> str:
    return f"replace({_named(text)}, encode(b.digest, 'hex'), {_HEX})"


def _shifted(*columns: str) -> Mapping[str, str]:
    return {each: f"b.{each} + (c.k - 1) * {BASE}" for each in columns}


_OF_PACKAGE = "f.package_id = t.package_id"
_BODY = "convert_to(" + _hashed("convert_from(b.body, 'UTF8')") + ", 'UTF8')"
# By table: how its rows are joined with their file f, and what differs in copy c.k of row b.
COPIES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "fragment": (_OF_PACKAGE, {**_shifted("package_id"), "key": _named("b.key"), "body": _BODY}),
    "package": (
        "f.package_id = t.id",
        {**_shifted("id", "serial"), "key": _named("b.key"), "name": _named("b.name")},
    ),
    "package_about": (_OF_PACKAGE, {**_shifted("package_id"), "text": _named("b.text")}),
    "event": (
        _OF_PACKAGE,
        {**_shifted("seq", "package_id"), "package_key": _named("b.package_key"), "data": _hashed("b.data")},
    ),
    "file": (
        "f.id = t.id",
        {**_shifted("id", "package_id", "version_id"), "path": _named("b.path"), "sha256": _DIGEST},
    ),
    "version": ("f.version_id = t.id", _shifted("id", "package_id")),
    "blob": ("f.sha256 = t.sha256", {"sha256": _DIGEST, "locator": f"left({_HEX}, 2) || '/' || {_HEX} || '.0'"}),
}


def multiply(address: str, repository: str, times: int) -> None:
    """Make ``times`` times as many releases of those of this repository ("storage/name"), which are the only ones."""
    with _session(address) as session:
        indexes = _drop_indexes(session)
        for name, value in UNSAFE.items():
            session.execute(f"ALTER SYSTEM SET {name} = '{value}'")
        session.execute("SELECT pg_reload_conf()")
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda table: _copy(address, table, times), COPIES))
            list(pool.map(lambda statement: _run(address, statement), indexes))
            list(pool.map(lambda table: _run(address, f"VACUUM (ANALYZE) {table}"), COPIES))
        with _session(address) as session:
            _count(session, repository, times)
    finally:
        with _session(address) as session:
            for name in UNSAFE:
                session.execute(f"ALTER SYSTEM RESET {name}")
            session.execute("SELECT pg_reload_conf()")
            session.execute("CHECKPOINT")


def _drop_indexes(session: Session) -> Sequence[str]:
    """Drop those that no constraint needs, and that of blobs, which are in no order; what makes them again."""
    found = session.execute(
        "SELECT 'DROP INDEX ' || indexname, indexdef FROM pg_indexes WHERE tablename = ANY (%s)"
        " AND NOT EXISTS (SELECT FROM pg_constraint WHERE conname = indexname)",
        (list(COPIES),),
    ).fetchall()
    for drop, _ in found:
        session.execute(drop)
    session.execute("ALTER TABLE blob DROP CONSTRAINT blob_pkey")
    # The slowest ones first.
    made = sorted((made for _, made in found), key=lambda made: "gin" not in made)
    return [made[0], "ALTER TABLE blob ADD PRIMARY KEY (storage_id, sha256)", *made[1:]]


def _copy(address: str, table: str, times: int) -> None:
    join, changes = COPIES[table]
    with _session(address) as session:
        rows = session.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema()"
            " AND table_name = %s ORDER BY ordinal_position",
            (table,),
        ).fetchall()
        columns = [column for (column,) in rows]
        values = ", ".join(changes.get(column, f"b.{column}") for column in columns)
        base = f"SELECT t.*, f.sha256 AS digest FROM {table} t JOIN file f ON {join}"
        session.execute(f"CREATE TEMP TABLE base AS {base}")
        session.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values}"
            f" FROM generate_series(2, {times}) AS c (k) CROSS JOIN base b"
        )
    _say(f"{table} is copied")


def _count(session: Session, repository: str, times: int) -> None:
    """Move what counts rows on: the sequences, the counts of the repository, and the cursors of its followers."""
    for table, column in (("package", "id"), ("version", "id"), ("file", "id"), ("event", "seq")):
        session.execute(f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), max({column})) FROM {table}")
    session.execute("UPDATE setting SET value = (SELECT max(seq) FROM event) WHERE key = ANY(%s)", ([CURSOR, MARK],))
    session.execute("UPDATE followed_wheels SET seq = (SELECT max(seq) FROM event)")
    session.execute(
        "UPDATE repository SET serial = serial * %(times)s, bytes_used = bytes_used * %(times)s,"
        " package_count = package_count * %(times)s WHERE key = %(key)s",
        {"times": times, "key": repository.partition("/")[2]},
    )


def _session(address: str) -> Session:
    session = psycopg.connect(address, autocommit=True)
    session.execute("SET synchronous_commit = off")
    session.execute("SET maintenance_work_mem = '1GB'")
    session.execute("SET session_replication_role = replica")  # checks no foreign key
    return session


def _run(address: str, statement: str) -> None:
    with _session(address) as session:
        session.execute(statement)
    _say(statement)


def _say(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, flush=True)


if __name__ == "__main__":
    multiply(sys.argv[1], sys.argv[2], int(sys.argv[3]))
