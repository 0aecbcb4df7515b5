"""What a restore brings back, and what it leaves as people have made it meanwhile."""

from __future__ import annotations

import json

import pytest

from pkgrepo.errors import NotFound
from pkgrepo.model import SYSTEM
from pkgrepo.repositories.publish.package_changes import remove_package, remove_versions, set_package_meta
from pkgrepo.repositories.upkeep.trash import restore_some
from pkgrepo.storage.catalog.packages import packages, tags, versions
from pkgrepo.storage.catalog.server import settings, trash
from tests.support.admission import admitted
from tests.support.python_packages import make_wheel
from tests.support.repositories import NOW, RepositoryServices

FIRST = "1"  # the key of version 1.0


def quiet(*_given: object) -> None:
    """The indexer of a format that keeps no documents."""


async def fill(world: RepositoryServices) -> None:
    """A repository that keeps what is deleted, with two versions of a package that has metadata of its own."""
    await world.catalog.write(settings.put, trash.TRASH_DAYS, "14")
    for version in ("1.0", "2.0"):
        await world.publish(*make_wheel("acme", version))
    await set_meta(world, "before")


async def set_meta(world: RepositoryServices, value: str) -> None:
    actor = admitted(world.repository)
    await world.catalog.write(set_package_meta, world.repository, "acme", {"status": value}, actor, quiet, NOW)


async def restore(world: RepositoryServices, *, check: bool = True, uid: str = "") -> tuple[int, bool]:
    entry = world.catalog.peek(
        lambda r: trash.list_entries(r, repository_id=world.repository.id, removed=False, after=None, limit=1)
    )
    actor = admitted(world.repository)
    found: tuple[int, bool] = await world.catalog.write(
        restore_some, world.repository, uid or entry[0].uid, quiet, actor, check, NOW
    )
    return found


def meta(world: RepositoryServices) -> object:
    package = world.catalog.peek(lambda r: packages.find_package(r, world.repository.id, "acme"))
    return None if package is None else package.meta["status"]


async def test_a_package_comes_back_with_its_own_metadata(world: RepositoryServices) -> None:
    await fill(world)
    await world.catalog.write(remove_package, world.repository, "acme", SYSTEM, False, NOW)
    assert meta(world) is None
    assert await restore(world) == (2, False)
    assert meta(world) == "before"


async def test_a_version_that_comes_back_takes_no_changes_of_its_package_back(world: RepositoryServices) -> None:
    await fill(world)
    await world.catalog.write(remove_versions, world.repository, "acme", [FIRST], SYSTEM, quiet, False, NOW)
    await set_meta(world, "after")
    assert await restore(world) == (1, False)
    assert meta(world) == "after"


async def test_tags_that_come_back_are_told_with_their_version(world: RepositoryServices) -> None:
    await fill(world)
    package = world.catalog.peek(lambda r: packages.find_package(r, world.repository.id, "acme"))
    version = world.catalog.peek(lambda r: versions.find_version(r, package.id, FIRST))
    await world.catalog.write(tags.set_tag, package.id, "stable", version_id=version.id, actor=SYSTEM, now_ms=NOW)
    await world.catalog.write(remove_versions, world.repository, "acme", [version.key], SYSTEM, quiet, False, NOW)
    await restore(world)
    told = world.catalog.peek(lambda r: r.all("SELECT version_key, data FROM event WHERE kind = 'tagged'", ()))
    assert [(key, json.loads(data)) for key, data in told] == [(FIRST, {"version": "1.0", "tags": ["stable"]})]


async def test_an_entry_that_is_not_there_is_refused_once_and_nothing_else_is_restored(
    world: RepositoryServices,
) -> None:
    await fill(world)
    await world.catalog.write(remove_versions, world.repository, "acme", [FIRST], SYSTEM, quiet, False, NOW)
    with pytest.raises(NotFound):
        await restore(world, uid="none")
    assert await restore(world, uid="none", check=False) == (0, False)
    assert await restore(world) == (1, False)
