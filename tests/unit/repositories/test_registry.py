"""The registry: two processes on one catalog have the same repositories."""

import pytest
import pytest_twisted
from twisted.internet.task import Clock

from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.server import repositories, storages
from tests.support.catalogs import NOW, SqliteCase, add_repository
from tests.support.delayed_catalog import DelayedCatalog

all_repositories = repositories.all_repositories


@pytest_twisted.async_yield_fixture
async def catalogs(tmp_path):
    case = SqliteCase(tmp_path)
    yield await case.another(), await case.another()
    await case.stop()


async def test_a_change_by_one_process_is_visible_to_the_other_at_once(catalogs):
    ours, theirs = catalogs
    registry = Registry(ours)
    assert registry.find("main", "py") is None
    serial = registry.serial
    added = await theirs.write(add_repository)
    assert registry.find("main", "py") == added
    assert registry.serial > serial
    await theirs.write(repositories.update_repository, added.id, now_ms=NOW, visibility="private")
    assert registry.find("main", "py").visibility == "private"
    assert registry.find_id(added.id) is registry.find_uid(added.uid) is registry.find("main", "py")
    await theirs.write(repositories.remove_repository, added.id, now_ms=NOW)
    assert [registry.find("main", "py"), registry.find_id(added.id), registry.find_uid(added.uid)] == [None] * 3
    await theirs.write(storages.add_storage, name="second", kind="Local", settings={}, now_ms=NOW)
    assert [each.name for each in registry.storages()] == ["main", "second"]


async def test_names_are_case_insensitive(catalogs):
    ours, _ = catalogs
    added = await ours.write(add_repository, "MixedCase")
    registry = Registry(ours)
    assert registry.find("MAIN", "mixedcase") == registry.find("main", "MIXEDCASE") == added


async def test_cached_repositories_are_reused_until_the_configuration_changes(catalogs, monkeypatch):
    ours, theirs = catalogs
    added = await ours.write(add_repository)
    loads = []

    def load(reader):
        loads.append(reader)
        return all_repositories(reader)

    monkeypatch.setattr(repositories, "all_repositories", load)
    registry = Registry(ours)
    first = registry.find("main", "py")
    loads[:-1] = []  # without the run by which the catalog learns that it is a query of several statements
    for _ in range(3):
        await theirs.write(repositories.bump_serial, added.id)
        assert registry.find("main", "py") is first
    assert len(loads) == 1
    await theirs.write(add_repository, "other")
    assert registry.find("main", "py") is not first
    assert [each.path for each in registry.all()] == ["main/other", "main/py"]
    assert len(loads) == 2


@pytest.mark.parametrize("name", ["", "..", "py/x"])
async def test_names_that_no_repository_has_are_not_found(catalogs, name):
    ours, _ = catalogs
    await ours.write(add_repository)
    assert Registry(ours).find("main", name) is None


async def test_over_a_slow_catalog_it_is_as_of_the_last_refresh(catalogs):
    ours, theirs = catalogs
    registry = Registry(DelayedCatalog(ours, Clock(), 0))
    added = await theirs.write(add_repository)
    assert not registry.refresh_now()
    assert registry.find("main", "py") is None
    await registry.refresh()
    assert registry.refresh_now()
    assert registry.find("main", "py") == added
    await theirs.write(repositories.remove_repository, added.id, now_ms=NOW)
    assert not registry.refresh_now()
    assert registry.find("main", "py") == added
    await registry.refresh()
    assert registry.find("main", "py") is None
