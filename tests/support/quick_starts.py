"""
Servers of the tests start and log people in for a third of the processor time.

Passwords are hashed with the lowest cost (a real hash takes 0.16 s of processor time, at the start of each server and
at each login). Files of the console are read and its templates compiled once, and a new SQLite catalog is a copy of the
first one of the process. Programs that begin with an interpreter of their own, such as workers, are as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import MagicMock, patch

import apsw
import argon2

if TYPE_CHECKING:
    from pkgrepo.storage.catalog.engine.schema import Schema

FAST = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
_catalogs: list[bytes] = []  # at most one: the file of a new catalog


def quicken() -> None:
    """Apply this to the servers that this process and its forks start from now on."""
    from pkgrepo.auth.login import passwords
    from pkgrepo.storage.catalog.engine import schema, sqlite
    from pkgrepo.web import app

    passwords.PasswordHasher = lambda: FAST  # type: ignore[assignment,misc]
    if sqlite.upgrade is schema.upgrade:
        sqlite.load_schema = cache(schema.load_schema)
        sqlite.upgrade = partial(_copy_once_made, schema.upgrade)
        app.Assets = cache(app.Assets)  # type: ignore[misc]
        app.PageRenderer = cache(app.PageRenderer)  # type: ignore[misc]


def compile_routes() -> None:
    """Compile the routes of the API and of the console, for forks of this process."""
    from pkgrepo.management.app import ManagementApp
    from pkgrepo.web.app import WebApp

    ManagementApp(MagicMock()).branches()  # no handler is called
    WebApp(MagicMock(), MagicMock(), MagicMock(), {}).branches()


def make_catalog(folder: Path) -> None:
    """Make a catalog, whose copies are those of forks of this process; they log that, and not this."""
    from pkgrepo.storage.catalog.engine import schema
    from pkgrepo.storage.catalog.engine.connections import open_writer
    from pkgrepo.storage.catalog.engine.sqlite import load_schema, upgrade

    with patch.object(schema, "log_upgrade"), closing(open_writer(folder / "pkgrepo.db")) as connection:
        upgrade(connection, folder / "pkgrepo.db", load_schema())


def _copy_once_made(
    upgrade: Callable[[apsw.Connection, Path, Schema], None], connection: apsw.Connection, path: Path, schema: Schema
) -> None:
    """Make the tables of a new catalog, which takes 7 ms, or copy those that this process has made before."""
    from pkgrepo.storage.catalog.engine.schema import log_upgrade
    from pkgrepo.storage.catalog.engine.sqlite import load_schema

    new = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").get is None
    if not new or schema is not load_schema():
        upgrade(connection, path, schema)
    elif not _catalogs:
        upgrade(connection, path, schema)
        image = bytearray(connection.serialize("main"))
        image[18:20] = b"\1\1"  # https://www.sqlite.org/fileformat2.html 1.3.3: without a write-ahead log
        _catalogs.append(bytes(image))
    else:
        with closing(apsw.Connection(":memory:")) as made:
            made.deserialize("main", _catalogs[0])
            with connection.backup("main", made, "main") as copy:
                copy.step()
        log_upgrade(0, schema.version)
