"""
Upgrades the schema of the database by migrations.

Migrations are numbered SQL files, with a second one where PostgreSQL needs its own. ``PRAGMA user_version`` is the
number of the last one that ran. Each runs in one transaction with the change of that number, so a crash leaves the old
version or the new one.

=======================  =========================================================================
database found           action
=======================  =========================================================================
no file, or an empty one all migrations
an older version         a backup copy beside the file, then the missing migrations
this version             none
a newer version          refused: an older program must not write a schema that it does not know
another program's file   refused
=======================  =========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import apsw
from attrs import frozen
from twisted.logger import Logger

from pkgrepo.storage.durable_file import fsync_path
from pkgrepo.storage.private_files import ensure_private

from .connections import CatalogUnusable

log = Logger()

APPLICATION_ID = 0x706B6772  # "pkgr", in the file's header
_NAME = re.compile(r"(\d{4})_\w+\.sql")


@frozen
class Migration:
    """
    One step: ``sql`` upgrades version ``number - 1`` to ``number``.

    ``postgresql`` is what PostgreSQL runs, if that is more than a translation.
    """

    number: int
    name: str
    sql: str
    postgresql: str | None = None


def load_migrations() -> tuple[Migration, ...]:
    """Return the program's migrations, ordered by number."""
    texts = {entry.name: entry for entry in files(__package__).joinpath("migrations").iterdir()}
    found = []
    for name, entry in texts.items():
        if match := _NAME.fullmatch(name):
            other = texts.get(f"{name.removesuffix('.sql')}.postgresql.sql")
            other_sql = None if other is None else other.read_text("utf-8")
            found.append(Migration(int(match[1]), name, entry.read_text("utf-8"), other_sql))
    return tuple(sorted(found, key=lambda migration: migration.number))


def upgrade(connection: apsw.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    """
    Upgrade the database to the newest version. The caller must hold the write lock.

    :raises CatalogUnusable: the file has a newer version, or is no catalog
    """
    found = _version(connection, path)
    wanted = migrations[-1].number
    if found > wanted:
        raise CatalogUnusable(
            f"{path} was written by a newer pkgrepo (schema {found}, this one knows {wanted});"
            " install that one, or restore the copy that it kept when it upgraded"
        )
    if found == wanted:
        return
    if found:
        copy = keep_copy(connection, path, found)
        log.info("the catalog before the upgrade is kept in {copy}", copy=str(copy))
    for migration in migrations:
        if migration.number > found:
            _run(connection, migration)
    log_upgrade(found, wanted)


def log_upgrade(found: int, wanted: int) -> None:
    """Log one line about a catalog whose version was ``found`` and is ``wanted`` now; 0: there was none."""
    if found:
        log.info("the catalog was upgraded from schema {found} to {wanted}", found=found, wanted=wanted)
    else:
        log.info("the catalog was made, with schema {wanted}", wanted=wanted)


def keep_copy(connection: apsw.Connection, path: Path, version: int) -> Path:
    """Make a durable copy beside the database, named after its version, in place of an older one. Returns its path."""
    copy = path.with_name(f"{path.name}.v{version}")
    unfinished = path.with_name(f"{copy.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        ensure_private(unfinished)  # VACUUM INTO takes an empty file
        connection.execute("VACUUM INTO ?", (str(unfinished),))
        fsync_path(unfinished)
        unfinished.replace(copy)
    finally:
        unfinished.unlink(missing_ok=True)  # left when the disk was full
    fsync_path(path.parent)
    return copy


def _version(connection: apsw.Connection, path: Path) -> int:
    version = int(connection.execute("PRAGMA user_version").get)
    application = int(connection.execute("PRAGMA application_id").get)
    used = connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").get is not None
    if used and (application != APPLICATION_ID or version == 0):
        raise CatalogUnusable(f"{path} is a database of another program")
    return version


def _run(connection: apsw.Connection, migration: Migration) -> None:
    # Migrations rebuild tables, which violates foreign keys on the way; they are checked at the end.
    connection.execute("PRAGMA foreign_keys = OFF")
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(migration.sql)
            if connection.execute("PRAGMA foreign_key_check").fetchall():
                raise CatalogUnusable(f"migration {migration.name} would leave rows that refer to nothing")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {migration.number}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    finally:
        connection.execute("PRAGMA foreign_keys = ON")
