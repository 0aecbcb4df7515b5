import apsw
import psycopg
import pytest
import pytest_twisted

from pkgrepo.storage.catalog.engine.connections import CatalogUnusable
from pkgrepo.storage.catalog.engine.schema import load_schema
from pkgrepo.storage.catalog.postgresql import Address
from pkgrepo.storage.catalog.postgresql.transfer import copy_to_postgresql, copy_to_sqlite
from pkgrepo.storage.catalog.server import repositories, settings
from tests.support.catalogs import SqliteCase, add_repository, publish
from tests.support.postgresql_catalogs import PostgresCase


@pytest.fixture
def url(databases):
    with databases.another(empty=True) as url:
        yield url


def fill(tx):
    repository = add_repository(tx)
    for number in range(1, 31):
        publish(tx, repository, f"packages/demo/{number}/demo-{number}.whl", version=f"{number}.0")
    settings.put(tx, "text", "a 'quoted' \\ text\twith\nlines and \u20ac")
    settings.put(tx, "empty", "")
    return repository


def contents(path):
    with apsw.Connection(str(path)) as connection:
        found = connection.execute(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
            " AND name NOT IN ('sqlite_schema', 'sqlite_stat1', 'sqlite_stat4')"
        )
        tables = [name for (name,) in found]
        return {name: sorted(connection.execute(f'SELECT * FROM "{name}"'), key=repr) for name in tables}


@pytest_twisted.async_yield_fixture
async def original(tmp_path):
    case = SqliteCase(tmp_path)
    catalog = await case.another()
    await catalog.write(fill)
    await case.stop()
    yield case.path


async def test_a_catalog_is_copied_there_and_back(original, url, tmp_path):
    there, back = {}, {}
    copy_to_postgresql(original, Address(url), there.__setitem__)
    assert (there["version"], there["file"], there["repository"]) == (30, 30, 1)
    copy = tmp_path / "copy.db"
    copy_to_sqlite(Address(url), copy, back.__setitem__)
    assert back == there
    assert contents(copy) == contents(original)


async def test_the_copy_goes_on_with_the_numbers_of_the_original(original, url):
    with apsw.Connection(str(original)) as connection:
        last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'file'").get
        connection.execute("DELETE FROM file WHERE id = ?", (last,))
    copy_to_postgresql(original, Address(url), lambda *_: None)
    case = PostgresCase(url)
    catalog = await case.another()
    try:

        def publish_more(tx):
            [row] = tx.all("SELECT id FROM repository")
            return publish(
                tx, repositories.get_repository(tx, row[0]), "packages/demo/31/demo-31.whl", version="31.0"
            ).id

        assert await catalog.write(publish_more) > last
    finally:
        await case.stop()


def test_only_an_empty_database_takes_a_copy(original, databases):
    with databases.another() as url, pytest.raises(CatalogUnusable, match="has tables already"):
        copy_to_postgresql(original, Address(url), lambda *_: None)


def test_no_file_is_replaced(original, url, tmp_path):
    copy_to_postgresql(original, Address(url), lambda *_: None)
    with pytest.raises(CatalogUnusable, match="exists already"):
        copy_to_sqlite(Address(url), original, lambda *_: None)


def test_a_copy_that_fails_leaves_nothing(original, url):
    with apsw.Connection(str(original)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("UPDATE file SET version_id = 4711")
    with pytest.raises(CatalogUnusable, match="cannot be used"):
        copy_to_postgresql(original, Address(url), lambda *_: None)
    with psycopg.connect(url) as session:
        assert session.execute("SELECT COUNT(*) FROM version").fetchone() == (0,)


def test_a_file_of_another_version_is_refused(original, url):
    with apsw.Connection(str(original)) as connection:
        connection.pragma("user_version", load_schema().version + 1)
    with pytest.raises(CatalogUnusable, match="another version"):
        copy_to_postgresql(original, Address(url), lambda *_: None)
