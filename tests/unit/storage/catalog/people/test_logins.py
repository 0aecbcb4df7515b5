from pkgrepo.storage.catalog.engine.sqlite import SqliteCatalog
from pkgrepo.storage.catalog.people.logins import MAX_ROWS, add_unlock, newest_unlock_id, unlocks_after
from tests.support.catalogs import NOW, SqliteCase


async def test_new_unlocks_are_listed_oldest_first_and_old_rows_are_removed(tmp_path):
    case = SqliteCase(tmp_path)
    catalog: SqliteCatalog = await case.another()
    assert catalog.peek(newest_unlock_id) == 0
    for number in range(MAX_ROWS + 2):
        await catalog.write(add_unlock, username=f"User{number}", address="", now_ms=NOW)
    await catalog.write(add_unlock, address="192.0.2.1", now_ms=NOW)
    newest = catalog.peek(newest_unlock_id)
    assert len(catalog.peek(unlocks_after, 0)) == MAX_ROWS
    last, address = catalog.peek(unlocks_after, newest - 2)
    assert (last.account, last.address) == (f"user{MAX_ROWS + 1}", "")
    assert (address.id, address.account, address.address) == (newest, "", "192.0.2.1")
    assert catalog.peek(unlocks_after, newest) == []
    await case.stop()
