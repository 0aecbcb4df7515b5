"""The catalog that the configuration names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import apsw

from pkgrepo.config import Config
from pkgrepo.errors import Conflict
from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.engine.connections import CatalogUnusable, SqliteReader, open_reader
from pkgrepo.storage.catalog.engine.online_copy import copy_online, seal
from pkgrepo.storage.catalog.engine.sqlite import SqliteCatalog

if TYPE_CHECKING:
    from pkgrepo.storage.catalog.postgresql import Address, PostgresCatalog

AnyCatalog: TypeAlias = "SqliteCatalog | PostgresCatalog"
NO_DRIVER = 'the database is PostgreSQL, and psycopg is not installed: pip install "WHEEL[postgresql]"'


def make_catalog(config: Config, reactor: Any) -> AnyCatalog:
    """
    Return the catalog, which is not started.

    :raises CatalogUnusable: the library for it is not installed
    """
    path = config.database_path
    if path is not None:
        return SqliteCatalog(path, reactor=reactor)
    replica = config.database.replica_url
    catalog: PostgresCatalog = _postgresql().PostgresCatalog(
        _address(config, config.database.url),
        replica=None if replica is None else _address(config, replica),
        reactor=reactor,
    )
    return catalog


@contextmanager
def reading(config: Config) -> Iterator[Reader | None]:
    """
    Return a context manager that reads the catalog without a start; None if there is none yet.

    Its block ends early, without an error, if the schema is an older one, which the start upgrades.

    :raises CatalogUnusable: it cannot be read
    """
    path = config.database_path
    if path is None:
        with _postgresql().reading_once(_address(config, config.database.url)) as reader:
            yield reader
    elif not path.exists() or not path.stat().st_size:
        yield None
    else:
        with _reading_file(path) as reader:
            yield reader


def copy_catalog(source: Config, target: Config, report: Callable[[str, int], object]) -> None:
    """
    Copy the catalog from a file to PostgreSQL, or back; ``report`` is told each table with its number of rows.

    :raises CatalogUnusable: the target is not empty, or one of them cannot be used
    :raises Conflict: both are files, or neither is
    """
    old, new = source.database_path, target.database_path
    if old is not None and new is None:
        _postgresql().copy_to_postgresql(old, _address(target, target.database.url), report)
    elif old is None and new is not None:
        _postgresql().copy_to_sqlite(_address(source, source.database.url), new, report)
    else:
        raise Conflict("a catalog is copied from a file to PostgreSQL, or from PostgreSQL to a file")


def copy_to_file(config: Config, target: Path, goes_on: Callable[[], bool]) -> None:
    """
    Copy one snapshot of the catalog, whichever its engine, to a new SQLite file, while servers use it. Blocks.

    The copy of PostgreSQL is made of its tables in one read-only transaction (repeatable read).

    :raises PkgrepoError: the catalog cannot be read, or the file not be written
    """
    if config.database_path is not None:
        copy_online(config.database_path, target, goes_on)
        return
    _postgresql().copy_to_sqlite(_address(config, config.database.url), target, lambda _table, _count: None)
    seal(target)


def fill_database(config: Config, source: Path) -> None:
    """Copy a catalog from a file into the empty PostgreSQL database of ``config``. Blocks. :raises CatalogUnusable:"""
    _postgresql().copy_to_postgresql(source, _address(config, config.database.url), lambda _table, _count: None)


def check_empty(config: Config) -> None:
    """Check that the PostgreSQL database of ``config`` has no tables. Blocks. :raises CatalogUnusable: it has"""
    _postgresql().check_empty(_address(config, config.database.url))


@contextmanager
def _reading_file(path: Path) -> Iterator[Reader]:
    try:
        connection = open_reader(path)
        try:
            with SqliteReader(connection) as reader, suppress(apsw.SQLError):
                yield reader
        finally:
            connection.close()
    except apsw.Error as error:
        raise CatalogUnusable(f"{path} cannot be read: {error}") from error


def _address(config: Config, url: str) -> Address:
    password = config.database.password
    address: Address = _postgresql().Address(url, password.reveal() if password else None)
    return address


def _postgresql() -> Any:
    """Import the engine; its library is optional, and takes a tenth of a second to import."""
    try:
        return import_module("pkgrepo.storage.catalog.postgresql")
    except ImportError as error:
        raise CatalogUnusable(NO_DRIVER) from error
