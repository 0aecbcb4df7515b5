import pytest

from pkgrepo.errors import AlreadyExists, NotFound
from pkgrepo.model import RepositoryType, Visibility
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.quotas import Usage
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository


@pytest.fixture
def catalog():
    return MemoryCatalog()


def test_a_repository_is_read_as_it_was_added(catalog):
    repository = catalog.do(add_repository, "Py")
    assert (repository.path, repository.format, repository.description) == ("main/Py", "python", "")
    assert (repository.type, repository.visibility) == (RepositoryType.HOSTED, Visibility.PUBLIC)
    assert (repository.config, repository.settings) == ({"type": "Hosted"}, {})
    assert (repository.serial, repository.bytes_used, repository.package_count) == (0, 0, 0)
    assert catalog.peek(repositories.find_repository, repository.uid) == repository
    assert catalog.peek(repositories.find_by_path, "main", "py") == repository
    assert catalog.peek(repositories.get_repository, repository.id) == repository


def test_names_are_unique_in_their_storage_and_in_any_case(catalog):
    catalog.do(add_repository, "py")
    catalog.do(add_repository, "py", storage="other")
    with pytest.raises(AlreadyExists):
        catalog.do(add_repository, "PY")
    second = catalog.do(add_repository, "second")
    with pytest.raises(AlreadyExists):
        catalog.do(repositories.update_repository, second.id, now_ms=NOW, name="Py")
    paths = [each.path for each in catalog.peek(repositories.all_repositories)]
    assert paths == ["main/py", "main/second", "other/py"]


def test_an_update_changes_the_given_fields_and_increments_both_serials(catalog):
    before = catalog.do(add_repository)
    config = catalog.peek(repositories.config_serial)
    after = catalog.do(
        repositories.update_repository,
        before.id,
        now_ms=NOW + 1,
        visibility=Visibility.HIDDEN,
        settings={"auth": {"enabled": True}},
    )
    assert (after.visibility, after.auth_enabled, after.config) == (Visibility.HIDDEN, True, before.config)
    assert after.serial > before.serial
    assert catalog.peek(repositories.config_serial) > config
    with pytest.raises(NotFound):
        catalog.do(repositories.update_repository, 99, now_ms=NOW, active=False)


def test_a_removed_repository_is_not_found_and_its_name_can_be_used_again(catalog):
    gone = catalog.do(add_repository)
    catalog.do(repositories.remove_repository, gone.id, now_ms=NOW)
    assert catalog.peek(repositories.find_repository, gone.uid) is None
    assert catalog.peek(repositories.find_by_path, "main", "py") is None
    assert catalog.peek(repositories.all_repositories) == []
    with pytest.raises(NotFound):
        catalog.do(repositories.remove_repository, gone.id, now_ms=NOW)
    again = catalog.do(add_repository)
    assert again.uid != gone.uid
    catalog.do(repositories.remove_repository, again.id, now_ms=NOW)


def test_serials_and_usage_of_a_repository_increase(catalog):
    repository = catalog.do(add_repository)
    assert [catalog.do(repositories.bump_serial, repository.id) for _ in range(3)] == [1, 2, 3]
    catalog.do(repositories.bump_names_serial, repository.id)
    assert catalog.peek(repositories.names_serial, repository.id) == 1
    catalog.do(repositories.add_usage, repository.id, Usage(1000, 2))
    catalog.do(repositories.add_usage, repository.id, Usage(-400, -1))
    now = catalog.peek(repositories.get_repository, repository.id)
    assert (now.serial, now.bytes_used, now.package_count) == (3, 600, 1)
    assert catalog.peek(repositories.names_serial, 99) == 0
    with pytest.raises(NotFound):
        catalog.do(repositories.bump_serial, 99)


def test_a_change_of_content_does_not_increment_the_config_serial(catalog):
    repository = catalog.do(add_repository)
    before = catalog.peek(repositories.config_serial)
    catalog.do(repositories.bump_serial, repository.id)
    catalog.do(repositories.add_usage, repository.id, Usage(1, 1))
    assert catalog.peek(repositories.config_serial) == before
