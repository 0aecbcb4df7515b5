import errno
import os

import apsw
import pytest
from twisted.internet import reactor
from twisted.internet.defer import ensureDeferred, gatherResults

from pkgrepo.storage.catalog.engine.connections import CatalogUnusable
from pkgrepo.storage.catalog.engine.schema import APPLICATION_ID, Migration, load_migrations
from pkgrepo.storage.catalog.engine.sqlite import SqliteCatalog
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import layout_pending, settings, storages
from pkgrepo.storage.catalog.server.layout_pending import Entry
from tests.support.catalogs import NOW

ALL = load_migrations()
FIRST = ALL[:1]
SECOND = Migration(2, "0002_colour.sql", "ALTER TABLE setting ADD COLUMN colour TEXT NOT NULL DEFAULT 'green'")
BROKEN = Migration(2, "0002_broken.sql", "CREATE TABLE half (id INTEGER); INSERT INTO nowhere VALUES (1)")
DANGLING = Migration(
    2,
    "0002_dangling.sql",
    "INSERT INTO package (repository_id, key, name, created_at, updated_at) VALUES (77, 'a', 'a', 0, 0)",
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pkgrepo.db"


async def run(path, migrations, *steps):
    catalog = SqliteCatalog(path, reactor=reactor, migrations=migrations)
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


def test_migrations_are_numbered_without_gap():
    assert [migration.number for migration in ALL] == list(range(1, len(ALL) + 1))


async def test_a_new_catalog_has_the_newest_version_and_no_copy(path):
    await run(path, ALL)
    assert inspect(path, "PRAGMA user_version") == ALL[-1].number
    assert inspect(path, "PRAGMA application_id") == APPLICATION_ID
    names = {each.name for each in path.parent.iterdir()}
    assert names == {"pkgrepo.db", "pkgrepo.db-reserve", "pkgrepo.db-turns"}


async def test_an_upgrade_keeps_the_rows_and_a_copy_of_the_older_catalog(path):
    await run(path, FIRST, (settings.put, "a", "b"))
    (colour,) = await run(path, (*FIRST, SECOND), (lambda tx: tx.one("SELECT value, colour FROM setting"),))
    assert colour == ("b", "green")
    assert inspect(path, "PRAGMA user_version") == 2
    copy = path.with_name("pkgrepo.db.v1")
    assert inspect(copy, "PRAGMA user_version") == 1
    assert inspect(copy, "PRAGMA integrity_check") == "ok"
    assert await run(copy, FIRST, (settings.get, "a")) == ["b"]
    assert not list(path.parent.glob("*.unfinished"))


async def test_a_backup_copy_that_does_not_fit_is_removed(path, monkeypatch):
    await run(path, FIRST)

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CatalogUnusable, match="No space left"):
        await run(path, (*FIRST, SECOND))
    assert not list(path.parent.glob("*.unfinished"))
    monkeypatch.undo()
    await run(path, (*FIRST, SECOND))


async def test_neither_the_catalog_nor_its_copy_is_read_by_others(path):
    before = os.umask(0)
    try:
        await run(path, FIRST)
        assert readable_by_others(path.parent) == []
        await run(path, (*FIRST, SECOND))
        assert path.with_name("pkgrepo.db.v1").exists()
    finally:
        os.umask(before)
    assert readable_by_others(path.parent) == []


async def test_files_of_an_earlier_release_lose_the_rights_of_others(path):
    await run(path, ALL)
    kept = path.with_name("pkgrepo.db.v1")
    kept.touch()
    for each in path.parent.iterdir():
        each.chmod(0o664)
    await run(path, ALL)
    assert readable_by_others(path.parent) == []


def add_old_repository(tx):
    """Add a repository to a catalog of an earlier release, and return its key."""
    storage = storages.add_storage(tx, name="main", kind="Local", settings={}, now_ms=NOW)
    return tx.insert(
        "INSERT INTO repository (uid, storage_id, name, key, format, type, visibility, active, description, config,"
        " settings, created_at, updated_at)"
        " VALUES ('uid', ?, 'py', 'py', 'python', 'Hosted', 'public', 1, '', '{}', '{}', 0, 0) RETURNING id",
        (storage.id,),
    )


async def test_packages_from_before_a_migration_are_modified_after_their_last_second(path):
    """Nobody was told a date of theirs, and some clients make one of the time of the last change."""

    def add_package(tx):
        repository_id = add_old_repository(tx)
        tx.execute(
            "INSERT INTO package (repository_id, key, name, created_at, updated_at) VALUES (?, 'old', 'old', ?, ?)",
            (repository_id, NOW, NOW + 10_999),
        )
        return repository_id

    (repository_id,) = await run(path, FIRST, (add_package,))
    (package,) = await run(path, ALL, (packages.find_package, repository_id, "old"))
    assert package.modified_s == NOW // 1000 + 11


async def test_packages_from_before_are_compared_with_the_readable_layout(path):
    """Earlier releases wrote images in another form, and forgot what they could not show."""

    def add_packages(tx):
        repository_id = add_old_repository(tx)
        for name in ("app", "tool"):
            tx.execute(
                "INSERT INTO package (repository_id, key, name, created_at, updated_at) VALUES (?, ?, ?, 0, 0)",
                (repository_id, name, name),
            )
        return repository_id

    (repository_id,) = await run(path, ALL[:4], (add_packages,))
    (pending,) = await run(path, ALL, (layout_pending.list_pending, None, 10))
    assert pending == [Entry(repository_id, name, whole=True) for name in ("app", "tool")]


async def test_a_failing_migration_leaves_the_older_version_whole(path):
    await run(path, FIRST, (settings.put, "a", "b"))
    with pytest.raises(apsw.SQLError):
        await run(path, (*FIRST, BROKEN))
    assert inspect(path, "PRAGMA user_version") == 1
    assert inspect(path, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'half'") == 0
    assert await run(path, FIRST, (settings.get, "a")) == ["b"]


async def test_a_migration_may_not_leave_dangling_rows(path):
    await run(path, FIRST)
    with pytest.raises(CatalogUnusable, match="0002_dangling"):
        await run(path, (*FIRST, DANGLING))
    assert inspect(path, "SELECT COUNT(*) FROM package") == 0


async def test_a_newer_catalog_is_refused_and_left_alone(path):
    await run(path, (*FIRST, SECOND), (settings.put, "a", "b"))
    before = path.read_bytes()
    with pytest.raises(CatalogUnusable, match="newer pkgrepo"):
        await run(path, FIRST)
    assert path.read_bytes() == before


async def test_a_database_of_another_program_is_refused(path):
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (id INTEGER)")
    connection.close()
    with pytest.raises(CatalogUnusable, match="another program"):
        await run(path, FIRST)
    assert inspect(path, "SELECT COUNT(*) FROM sqlite_master") == 1


async def test_workers_that_start_at_once_agree_on_one_catalog(path):
    await run(path, FIRST)
    await gatherResults([ensureDeferred(run(path, (*FIRST, SECOND), (settings.increment, "x"))) for _ in range(4)])
    assert await run(path, (*FIRST, SECOND), (settings.get, "x")) == ["4"]


async def test_key_columns_come_first(path):
    # SQLite before 3.41 reports an error of such a table otherwise, see migration 32.
    await run(path, ALL)
    connection = apsw.Connection(str(path))
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%WITHOUT ROWID%'")
    for (name,) in tables.fetchall():
        places = [place for (place,) in connection.execute("SELECT pk FROM pragma_table_info(?)", (name,))]
        count = sum(place > 0 for place in places)
        assert places[:count] == list(range(1, count + 1)), name
    connection.close()


ROWS = {
    "manifest_ref": {"manifest_id": 1, "package_id": 2, "digest": "d", "kind": "layer"},
    "signature": {"manifest_id": 1, "package_id": 2, "subject": "s", "key_id": "k"},
    "first_sight": {"repository_id": 1, "package_key": "p", "tag": "t", "digest": "d", "seen_at": 3, "moved_at": 4},
}


def test_rows_are_kept_when_their_columns_are_reordered():
    connection = apsw.Connection(":memory:")
    for migration in ALL[:31]:
        connection.execute(migration.sql)
    connection.execute("PRAGMA foreign_keys = OFF")
    for table, row in ROWS.items():
        places = ", ".join("?" for _ in row)
        connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", tuple(row.values()))
    connection.execute(ALL[31].sql)
    for table, row in ROWS.items():
        found = connection.execute(f"SELECT {', '.join(row)} FROM {table}").fetchall()
        assert found == [tuple(row.values())]
