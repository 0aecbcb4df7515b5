"""Runs servers on PostgreSQL: each data folder has a database of its own, which outlives the server's process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import errors

from pkgrepo.storage.catalog.postgresql import Address, PostgresCatalog
from tests.support.postgresql import postgresql
from tests.support.postgresql_catalogs import TEMPLATE, Databases


@contextmanager
def databases_with_schema() -> Iterator[str]:
    """Run a server with a template that has the present schema; yields its connection string."""
    with postgresql() as server, Databases(server):
        yield server


def use_postgresql(server: str) -> None:
    """Patch this process so that every server made from now on uses a database on this server."""
    from pkgrepo.composition import core

    def make(config: Any, reactor: Any) -> PostgresCatalog:
        return PostgresCatalog(Address(_database(server, str(config.data.dir.absolute()))), reactor=reactor)

    core.make_catalog = make  # type: ignore[assignment]


def _database(server: str, folder: str) -> str:
    """Create the database of a data folder, unless it exists. Returns its connection string."""
    name = f"pkgrepo_{hashlib.sha256(folder.encode()).hexdigest()[:16]}"
    with psycopg.connect(server, autocommit=True) as connection, suppress(errors.DuplicateDatabase):
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    return server.replace("dbname=postgres", f"dbname={name}")
