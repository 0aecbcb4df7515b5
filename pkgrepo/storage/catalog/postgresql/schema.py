"""
Creates and upgrades the schema.

The schema and the migrations are those of the embedded engine, translated. Each step runs in one transaction with the
change of the number in the table of the catalog's state, while a lock keeps other nodes from doing the same. No copy is
kept: the operator has the server's own backups.

The indexes of trigrams behind searches for parts of names and texts need the extension pg_trgm, which the owner of a
database may create where the server's packages include it. It is tried at each start, so that the indexes are made once
the extension is there. Without it, searches read every name.
"""

from __future__ import annotations

from typing import Final

from psycopg import errors
from twisted.logger import Logger

from pkgrepo.storage.catalog.engine.connections import CatalogUnusable
from pkgrepo.storage.catalog.engine.dialect import FUNCTIONS, schema_to_postgresql
from pkgrepo.storage.catalog.engine.schema import Schema, log_upgrade
from pkgrepo.storage.catalog.postgresql.sessions import Session, first_line

log = Logger()

# The indexes by name, with their tables and columns.
INDEXES: Final = {"package_trigrams": ("package", "key"), "about_trigrams": ("package_about", "text")}
_REFUSALS: Final = (
    errors.InsufficientPrivilege,
    errors.FeatureNotSupported,  # the server does not have the extension
    errors.UndefinedFile,  # the same, before PostgreSQL 15
    errors.UndefinedObject,  # it is in a schema that is not searched
)


LOCK: Final = 0x706B6772_6D696772  # "pkgrmigr": what upgrades of all nodes lock in turn
OLDEST_SERVER: Final = 140_000  # as the server gives its version; functions in standard SQL came with it
STATE_TABLE: Final = """
CREATE TABLE catalog_state (version INTEGER NOT NULL, commits BIGINT NOT NULL);
INSERT INTO catalog_state (version, commits) VALUES (0, 0);
"""


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


def upgrade(session: Session, schema: Schema) -> None:
    """
    Upgrade the database to the newest version; other nodes wait.

    :raises CatalogUnusable: the database has a newer version or tables of another program, or the server is too old
    :raises psycopg.Error: the server refuses
    """
    if session.info.server_version < OLDEST_SERVER:
        raise CatalogUnusable("PostgreSQL 14 or newer is needed")
    session.execute("SET statement_timeout = 0")
    session.execute("SELECT pg_advisory_lock($1)", (LOCK,))
    try:
        found = _version(session)
        steps = schema.steps_from(found, "the database")
        for step in steps:
            with session.transaction():
                session.execute(schema_to_postgresql(step.sql))
                session.execute("UPDATE catalog_state SET version = $1", (step.number,))
        if steps:
            log_upgrade(found, schema.version)
        ensure_trigram_index(session)
    finally:
        session.execute("SELECT pg_advisory_unlock($1)", (LOCK,))
        session.execute("RESET statement_timeout")


def is_empty(session: Session) -> bool:
    """Whether the database has no table."""
    return session.execute("SELECT 1 FROM pg_tables WHERE schemaname = current_schema() LIMIT 1").fetchone() is None


def _version(session: Session) -> int:
    """Return the version of the schema; an empty database gets what the schema needs, and has version 0."""
    if is_empty(session):
        with session.transaction():
            session.execute(FUNCTIONS + STATE_TABLE)
        return 0
    if session.execute("SELECT to_regclass('catalog_state')").fetchone() == (None,):
        raise CatalogUnusable("the database has tables of another program")
    ((version,),) = session.execute("SELECT version FROM catalog_state").fetchall()
    return int(version)
