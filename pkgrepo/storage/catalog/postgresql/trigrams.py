"""
The index of trigrams behind searches for parts of names.

It needs the extension pg_trgm, which the owner of a database may create where the server's packages include it. It is
tried at each start, so that the index is made once the extension is there. Without it, searches read every name.
"""

from __future__ import annotations

from typing import Final

from psycopg import errors
from twisted.logger import Logger

from .failures import first_line
from .sessions import Session

log = Logger()

INDEX: Final = "package_trigrams"
_REFUSALS: Final = (
    errors.InsufficientPrivilege,
    errors.FeatureNotSupported,  # the server does not have the extension
    errors.UndefinedFile,  # the same, before PostgreSQL 15
    errors.UndefinedObject,  # it is in a schema that is not searched
)


def ensure_trigram_index(session: Session) -> bool:
    """
    Make the index unless it is there. Returns whether it is.

    :raises psycopg.Error: the server fails otherwise
    """
    if session.execute("SELECT to_regclass($1)", (INDEX,)).fetchone() != (None,):
        return True
    try:
        with session.transaction():
            session.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            session.execute(f"CREATE INDEX {INDEX} ON package USING gin (key gin_trgm_ops)")
    except _REFUSALS as error:
        log.warn(
            "searches for parts of names read every package, since the extension pg_trgm cannot be used ({reason});"
            " have it created in the database, and start again",
            reason=first_line(error),
        )
        return False
    log.info("the names of packages are indexed by trigrams")
    return True
