"""
Creates and upgrades the schema of the database.

``schema.sql`` is the whole schema of the newest version; a new catalog gets it. Schema 1 is that of the first release.
Each step from an older version is a file beside it with the number that it leads to, such as ``0002_colours.sql``; the
steps lead to the same schema. ``PRAGMA user_version`` is the version of a catalog. Each step runs in one transaction
with the change of that number, so a crash leaves the old version or the new one.

=======================  =========================================================================
database found           action
=======================  =========================================================================
no file, or an empty one the whole schema
an older version         a backup copy beside the file, then the missing migrations
this version             none
a newer version          refused: an older program must not write a schema that it does not know
before the first release refused: no step leads from there
another program's file   refused
=======================  =========================================================================
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

import apsw
from attrs import frozen
from twisted.logger import Logger

from pkgrepo.interfaces import Reader
from pkgrepo.small_files import ensure_private, fsync_path
from pkgrepo.storage.catalog.rows import scalar

from .connections import CatalogUnusable
from .dialect import schema_to_sqlite

log = Logger()

APPLICATION_ID = 0x706B6772  # "pkgr", in the file's header
FIRST: Final = 1  # the schema of the first release
# Numbers that versions before it gave to their schemas: no migration has one of them.
UNRELEASED: Final = range(34, 65)
TAKE_OVER: Final = (
    "start that one on it, and take repositories, groups and rights over from there into a new data folder"
    " (pkgrepo import pkgrepo, pkgrepo import people)"
)
_NAME = re.compile(r"(\d{4})_\w+\.sql")


@frozen
class Migration:
    """A step to version ``number``. ``sql`` may have sections for one engine, see L{dialect}."""

    number: int
    name: str
    sql: str


@frozen
class Schema:
    """The whole schema of the newest version, and the migrations to it from the first one, ordered by number."""

    sql: str
    migrations: tuple[Migration, ...] = ()

    @property
    def version(self) -> int:
        """The newest version."""
        return self.migrations[-1].number if self.migrations else FIRST

    def steps_from(self, found: int, name: object) -> Sequence[Migration]:
        """
        Return what a catalog of the version ``found`` needs; 0: it is new. ``name`` says in errors which one it is.

        :raises CatalogUnusable: the version is from before the first release, or too new
        """
        if found in UNRELEASED:
            raise CatalogUnusable(
                f"{name} was written by a pkgrepo before the first release (schema {found}), and stays as it is:"
                f" {TAKE_OVER}"
            )
        if found > self.version:
            raise CatalogUnusable(
                f"{name} was written by a newer pkgrepo (schema {found}, this one knows {self.version});"
                " install that one, or restore a copy from before the upgrade"
            )
        if not found:
            return [Migration(self.version, "schema.sql", self.sql)]
        return [each for each in self.migrations if each.number > found]


def load_schema() -> Schema:
    """Return the program's schema."""
    folder = files(__package__)
    migrations = [
        Migration(int(match[1]), each.name, each.read_text("utf-8"))
        for each in folder.iterdir()
        if (match := _NAME.fullmatch(each.name))
    ]
    whole = folder.joinpath("schema.sql").read_text("utf-8")
    return Schema(whole, tuple(sorted(migrations, key=lambda migration: migration.number)))


def upgrade(connection: apsw.Connection, path: Path, schema: Schema) -> None:
    """
    Upgrade the database to the newest version. The caller must hold the write lock.

    :raises CatalogUnusable: the file has a newer version, or is no catalog
    """
    found = _version(connection, path)
    steps = schema.steps_from(found, path)
    if not steps:
        return
    if found:
        copy = keep_copy(connection, path, found)
        log.info("the catalog before the upgrade is kept in {copy}", copy=str(copy))
    for step in steps:
        _run(connection, step)
    log_upgrade(found, schema.version)


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
            connection.execute(schema_to_sqlite(migration.sql)).fetchall()  # else it would stop at the first row
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


def schema_version(r: Reader, *, is_sqlite: bool) -> int | None:
    """The schema of a catalog that is only read; None if PostgreSQL has a catalog without one."""
    version = scalar(r, "PRAGMA user_version" if is_sqlite else "SELECT version FROM catalog_state")
    return None if version is None else int(str(version))


def find_damage(r: Reader) -> str:
    """The first damage in the file of a catalog, all of which is read; empty without any."""
    found = str(scalar(r, "PRAGMA quick_check(1)"))
    return "" if found == "ok" else found.splitlines()[-1]
