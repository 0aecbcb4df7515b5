"""
The indexes of trigrams behind searches for parts of names, and of what packages say of themselves.

It needs the extension pg_trgm, which the owner of a database may create where the server's packages include it. It is
tried at each start, so that the indexes are made once the extension is there. Without it, searches read every name.
"""

from __future__ import annotations

from typing import Final

from psycopg import errors
from twisted.logger import Logger

from .failures import first_line
from .sessions import Session

log = Logger()

# The indexes by name, with their tables and columns.
INDEXES: Final = {"package_trigrams": ("package", "key"), "about_trigrams": ("package_about", "text")}
_REFUSALS: Final = (
    errors.InsufficientPrivilege,
    errors.FeatureNotSupported,  # the server does not have the extension
    errors.UndefinedFile,  # the same, before PostgreSQL 15
    errors.UndefinedObject,  # it is in a schema that is not searched
)


def ensure_trigram_index(session: Session) -> bool:
    """
    Make the indexes unless they are there. Returns whether they are.

    :raises psycopg.Error: the server fails otherwise
    """
    missing = {
        name: place
        for name, place in INDEXES.items()
        if session.execute("SELECT to_regclass($1)", (name,)).fetchone() == (None,)
    }
    if not missing:
        return True
    try:
        with session.transaction():
            session.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            for name, (table, column) in missing.items():
                session.execute(f"CREATE INDEX {name} ON {table} USING gin ({column} gin_trgm_ops)")
    except _REFUSALS as error:
        log.warn(
            "searches for parts of names read every package, since the extension pg_trgm cannot be used ({reason});"
            " have it created in the database, and start again",
            reason=first_line(error),
        )
        return False
    log.info("the names of packages, and what these say of themselves, are indexed by trigrams")
    return True
