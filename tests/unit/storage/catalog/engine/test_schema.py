import errno
import os
from itertools import count, islice

import apsw
import pytest
from twisted.internet import reactor
from twisted.internet.defer import ensureDeferred, gatherResults

from pkgrepo.storage.catalog.engine.connections import CatalogUnusable
from pkgrepo.storage.catalog.engine.schema import (
    APPLICATION_ID,
    FIRST,
    UNRELEASED,
    Migration,
    Schema,
    load_schema,
)
from pkgrepo.storage.catalog.engine.sqlite import SqliteCatalog
from pkgrepo.storage.catalog.server import settings

PRESENT = load_schema()
NUMBER = PRESENT.version


def changed(name, sql):
    """The schema after one more migration."""
    return Schema(PRESENT.sql, (*PRESENT.migrations, Migration(NUMBER + 1, name, sql)))


COLOURED = changed("colour.sql", "ALTER TABLE setting ADD COLUMN colour TEXT NOT NULL DEFAULT 'green'")
BROKEN = changed("broken.sql", "CREATE TABLE half (id INTEGER); INSERT INTO nowhere VALUES (1)")
DANGLING = changed(
    "dangling.sql",
    "INSERT INTO package (repository_id, key, name, created_at, updated_at) VALUES (77, 'a', 'a', 0, 0)",
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pkgrepo.db"


async def run(path, schema, *steps):
    catalog = SqliteCatalog(path, reactor=reactor, schema=schema)
    await catalog.start()
    try:
        return [await catalog.write(*step) for step in steps]
    finally:
        await catalog.stop()


def inspect(path, sql):
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(sql).get
    finally:
        connection.close()


def readable_by_others(folder):
    return [each.name for each in folder.iterdir() if each.stat().st_mode & 0o077]


def test_migrations_are_numbered_from_the_first_release_on_without_gap():
    free = (number for number in count(FIRST + 1) if number not in UNRELEASED)
    assert [migration.number for migration in PRESENT.migrations] == list(islice(free, len(PRESENT.migrations)))


async def test_a_new_catalog_has_the_newest_version_and_no_copy(path):
    await run(path, PRESENT)
    assert inspect(path, "PRAGMA user_version") == NUMBER
    assert inspect(path, "PRAGMA application_id") == APPLICATION_ID
    names = {each.name for each in path.parent.iterdir()}
    assert names == {"pkgrepo.db", "pkgrepo.db-reserve", "pkgrepo.db-turns"}


async def test_an_upgrade_keeps_the_rows_and_a_copy_of_the_older_catalog(path):
    await run(path, PRESENT, (settings.put, "a", "b"))
    (colour,) = await run(path, COLOURED, (lambda tx: tx.one("SELECT value, colour FROM setting"),))
    assert colour == ("b", "green")
    assert inspect(path, "PRAGMA user_version") == NUMBER + 1
    copy = path.with_name(f"pkgrepo.db.v{NUMBER}")
    assert inspect(copy, "PRAGMA user_version") == NUMBER
    assert inspect(copy, "PRAGMA integrity_check") == "ok"
    assert await run(copy, PRESENT, (settings.get, "a")) == ["b"]
    assert not list(path.parent.glob("*.unfinished"))


async def test_a_backup_copy_that_does_not_fit_is_removed(path, monkeypatch):
    await run(path, PRESENT)

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CatalogUnusable, match="No space left"):
        await run(path, COLOURED)
    assert not list(path.parent.glob("*.unfinished"))
    monkeypatch.undo()
    await run(path, COLOURED)


async def test_neither_the_catalog_nor_its_copy_is_read_by_others(path):
    before = os.umask(0)
    try:
        await run(path, PRESENT)
        assert readable_by_others(path.parent) == []
        await run(path, COLOURED)
        assert path.with_name(f"pkgrepo.db.v{NUMBER}").exists()
    finally:
        os.umask(before)
    assert readable_by_others(path.parent) == []


async def test_files_of_an_earlier_release_lose_the_rights_of_others(path):
    await run(path, PRESENT)
    kept = path.with_name("pkgrepo.db.v1")
    kept.touch()
    for each in path.parent.iterdir():
        each.chmod(0o664)
    await run(path, PRESENT)
    assert readable_by_others(path.parent) == []


async def test_a_failing_migration_leaves_the_older_version_whole(path):
    await run(path, PRESENT, (settings.put, "a", "b"))
    with pytest.raises(apsw.SQLError):
        await run(path, BROKEN)
    assert inspect(path, "PRAGMA user_version") == NUMBER
    assert inspect(path, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'half'") == 0
    assert await run(path, PRESENT, (settings.get, "a")) == ["b"]


async def test_a_migration_may_not_leave_dangling_rows(path):
    await run(path, PRESENT)
    with pytest.raises(CatalogUnusable, match="dangling"):
        await run(path, DANGLING)
    assert inspect(path, "SELECT COUNT(*) FROM package") == 0


async def test_a_newer_catalog_is_refused_and_left_alone(path):
    await run(path, COLOURED, (settings.put, "a", "b"))
    before = path.read_bytes()
    with pytest.raises(CatalogUnusable, match="newer pkgrepo"):
        await run(path, PRESENT)
    assert path.read_bytes() == before


@pytest.mark.parametrize("number", [34, 35, 64])
async def test_a_catalog_from_before_the_first_release_is_refused_and_left_alone(path, number):
    await run(path, PRESENT, (settings.put, "a", "b"))
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {number}")
    connection.close()
    with pytest.raises(CatalogUnusable, match=rf"before the first release \(schema {number}\).*pkgrepo import pkgrepo"):
        await run(path, PRESENT)
    assert inspect(path, "PRAGMA user_version") == number
    assert inspect(path, "SELECT value FROM setting WHERE key = 'a'") == "b"
    assert not list(path.parent.glob("*.v*"))


async def test_a_database_of_another_program_is_refused(path):
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (id INTEGER)")
    connection.close()
    with pytest.raises(CatalogUnusable, match="another program"):
        await run(path, PRESENT)
    assert inspect(path, "SELECT COUNT(*) FROM sqlite_master") == 1


async def test_workers_that_start_at_once_agree_on_one_catalog(path):
    await run(path, PRESENT)
    await gatherResults([ensureDeferred(run(path, COLOURED, (settings.increment, "x"))) for _ in range(4)])
    assert await run(path, COLOURED, (settings.get, "x")) == ["4"]


async def test_key_columns_come_first(path):
    # SQLite before 3.41 reports an error of such a table otherwise.
    await run(path, PRESENT)
    connection = apsw.Connection(str(path))
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%WITHOUT ROWID%'")
    for (name,) in tables.fetchall():
        places = [place for (place,) in connection.execute("SELECT pk FROM pragma_table_info(?)", (name,))]
        count = sum(place > 0 for place in places)
        assert places[:count] == list(range(1, count + 1)), name
    connection.close()
