"""Ids are never given out again: what tells of the past, or waits in memory, would be taken for something else's."""

import pytest

from pkgrepo.model import SYSTEM, TokenKind, TokenLimits
from pkgrepo.storage.catalog.packages import files, packages
from pkgrepo.storage.catalog.people import projects, tokens, users
from pkgrepo.storage.catalog.server import purge, repositories, storages
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, publish


@pytest.fixture
def catalog():
    return MemoryCatalog()


def storage(tx):
    added = storages.add_storage(tx, name="other", kind="Local", settings={}, now_ms=NOW)
    storages.remove_storage(tx, added.id)
    return (added.id,)


def repository(tx):
    added = add_repository(tx)
    repositories.remove_repository(tx, added.id, now_ms=NOW, purge=True)
    assert not purge.purge_repository(tx, added.id)
    return (added.id,)


def package(tx):
    home = repositories.find_by_path(tx, "main", "home") or add_repository(tx, "home")
    file = publish(tx, home, "a-1.0.whl")
    files.remove_file(tx, file, actor=SYSTEM, tombstone=False, now_ms=NOW)
    packages.remove_package(tx, file.package_id)
    return file.package_id, file.version_id, file.id


def user(tx):
    added = users.add_user(tx, username="alice", now_ms=NOW)
    users.remove_user(tx, added.id)
    return (added.id,)


def token(tx):
    owner = users.find_user_by_name(tx, "owner") or users.add_user(tx, username="owner", now_ms=NOW)
    added = tokens.add_token(
        tx,
        user_id=owner.id,
        hash=b"h" * 32,
        shown="",
        kind=TokenKind.PERSONAL,
        name="ci",
        limits=TokenLimits(),
        now_ms=NOW,
    )
    tx.execute("DELETE FROM token WHERE id = ?", (added.id,))
    return (added.id,)


def project(tx):
    added = projects.add_project(tx, key="p", name="P", now_ms=NOW)
    projects.remove_project(tx, added.id)
    return (added.id,)


@pytest.mark.parametrize("come_and_go", [storage, repository, package, user, token, project])
def test_ids_of_removed_rows_are_not_used_again(catalog, come_and_go):
    times = [catalog.do(come_and_go) for _ in range(3)]
    assert all(first < second < third for first, second, third in zip(*times, strict=True))
