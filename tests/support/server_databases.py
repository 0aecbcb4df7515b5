"""Runs servers on PostgreSQL: each data folder has a database of its own, which outlives the server's process."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors

from pkgrepo.storage.catalog.postgresql import Address, PostgresCatalog
from tests.support.postgresql import as_url, postgresql_server
from tests.support.postgresql_catalogs import TEMPLATE, Databases


@contextmanager
def databases_with_schema() -> Iterator[str]:
    """Run a server with a template that has the present schema; yields its connection string."""
    with postgresql_server() as server, Databases(server.address):
        yield server.address


SERVER: list[str] = []  # the connection string of the server in use, if any


def use_postgresql(server: str) -> None:
    """Patch this process so that every server made from now on uses a database on this server."""
    from pkgrepo.composition import core

    SERVER[:] = [server]

    def make(config: Any, reactor: Any) -> PostgresCatalog:
        return PostgresCatalog(Address(database_of(server, config.data.dir)), reactor=reactor)

    core.make_catalog = make  # type: ignore[assignment]


def database_of(server: str, folder: Path) -> str:
    """Create the database of a data folder, unless it exists. Returns its connection string."""
    name = _name(folder)
    with psycopg.connect(server, autocommit=True) as connection, suppress(errors.DuplicateDatabase):
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} STRATEGY FILE_COPY")
    return server.replace("dbname=postgres", f"dbname={name}")


def url_of(server: str, folder: Path) -> str:
    """Return the address of that database, as ``database.url`` has it."""
    return as_url(database_of(server, folder))


def drop_database(server: str, folder: Path) -> None:
    """Drop the database of a data folder."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {_name(folder)} WITH (FORCE)")


def _name(folder: Path) -> str:
    return f"pkgrepo_{hashlib.sha256(str(folder.absolute()).encode()).hexdigest()[:16]}"
