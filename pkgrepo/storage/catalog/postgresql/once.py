"""Reads the catalog without starting it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from psycopg import errors

from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.engine.connections import CatalogUnusable

from .failures import SERVER_ERRORS, first_line
from .schema import is_empty
from .sessions import Address, open_reader
from .transactions import PostgresReader


@contextmanager
def reading_once(address: Address) -> Iterator[Reader | None]:
    """
    Return a context manager that reads one snapshot; None if the database is empty.

    Its block ends early, without an error, if a table or a column that it needs is missing: the start upgrades.

    :raises CatalogUnusable: the server cannot be reached
    """
    try:
        with open_reader(address) as session:
            if is_empty(session):
                yield None
                return
            with PostgresReader(session) as reader, suppress(errors.UndefinedTable, errors.UndefinedColumn):
                yield reader
    except SERVER_ERRORS as error:
        raise CatalogUnusable(f"the database cannot be read: {first_line(error)}") from error
