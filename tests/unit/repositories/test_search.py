"""The cache of search indexes, while this process and others change the catalog."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.task import Clock

from pkgrepo.model import SYSTEM
from pkgrepo.repositories import search as module
from pkgrepo.repositories.search import SearchIndexCache, SearchLimits
from pkgrepo.repositories.search_index import Entry, Query, SearchIndex, join_text
from pkgrepo.storage.catalog import index_documents
from pkgrepo.storage.catalog.packages import events, packages
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository

KIND = "test.row"


class Times:
    """A clock that tests set."""

    ms = NOW

    def now_ms(self) -> int:
        return self.ms


class World:
    def __init__(self, limits: SearchLimits) -> None:
        self.catalog = MemoryCatalog()
        self.clock = Times()
        self.indexes = SearchIndexCache(self.catalog, self.clock, Clock(), limits)
        self.repository = self.catalog.do(add_repository)
        self.read: list[str] = []

    def publish(self, key: str, text: str, repository: Any = None) -> None:
        """As another process would: only the catalog shows it."""
        repository_id = (repository or self.repository).id

        def command(tx: Any) -> None:
            package, _ = packages.ensure_package(tx, repository_id, key=key, name=key, serial=0, now_ms=NOW)
            index_documents.put_fragment(tx, package.id, KIND, b"", "", text.encode())
            tell(tx, repository_id, package.id, key)

        self.catalog.do(command)

    def remove(self, key: str) -> None:
        def command(tx: Any) -> None:
            package = packages.find_package(tx, self.repository.id, key)
            assert package is not None
            tell(tx, self.repository.id, package.id, key)
            packages.remove_package(tx, package.id)

        self.catalog.do(command)

    def entry(self, key: str, body: bytes, downloads: int) -> Entry:
        self.read.append(key)
        return Entry(key, join_text(key, (), body.decode()), "", deprecated=False, downloads=downloads)

    async def index(self, repository: Any = None) -> SearchIndex:
        return await self.indexes.get(repository or self.repository, KIND, self.entry)

    async def find(self, word: str, repository: Any = None) -> list[str]:
        return [key for key, _ in (await self.index(repository)).find(Query((word,)), 0, 100).keys]


def tell(tx: Any, repository_id: int, package_id: int, key: str) -> None:
    events.append_event(
        tx,
        repository_id=repository_id,
        package_id=package_id,
        package_key=key,
        version_key="",
        kind="published",
        data={},
        actor=SYSTEM,
        now_ms=NOW,
    )


@pytest.fixture
def limits() -> SearchLimits:
    """The default ones; some tests have others."""
    return SearchLimits()


@pytest.fixture
def world(limits: SearchLimits) -> World:
    return World(limits)


@pytest.mark.parametrize("limits", [SearchLimits(page=3)])
async def test_a_search_finds_everything_committed_before_it(world: World) -> None:
    for n in range(10):
        world.publish(f"p{n}", "old")
    assert len(await world.find("old")) == 10
    world.publish("p3", "new")
    world.publish("q", "new")
    world.remove("p4")
    assert await world.find("new") == ["p3", "q"]
    assert len(await world.find("old")) == 8


@pytest.mark.parametrize("limits", [SearchLimits(events=2)])
async def test_only_packages_that_changed_are_read_again(world: World) -> None:
    for n in range(10):
        world.publish(f"p{n}", "old")
    await world.index()
    world.read.clear()
    await world.index()
    assert world.read == []
    for _ in range(3):
        world.publish("p3", "new")
    assert await world.find("new") == ["p3"]
    assert world.read == ["p3", "p3"]


async def test_a_search_finds_packages_of_its_repository_only(world: World) -> None:
    other = world.catalog.do(add_repository, "other")
    world.publish("mine", "text")
    world.publish("theirs", "text", other)
    assert (await world.find("text"), await world.find("text", other)) == (["mine"], ["theirs"])
    before = await world.index()
    world.publish("more", "text", other)
    world.read.clear()
    assert await world.index() is before
    assert world.read == []


async def test_an_old_index_is_rebuilt_in_the_background(world: World) -> None:
    world.publish("p", "text")
    before = await world.index()
    world.clock.ms += module.REBUILD_S * 1000 + 1
    assert await world.index() is before
    assert await world.index() is not before
    assert await world.find("text") == ["p"]


@pytest.mark.parametrize("limits", [SearchLimits(size=500)])
async def test_the_least_recently_used_index_is_evicted(world: World) -> None:
    other = world.catalog.do(add_repository, "other")
    for where in (world.repository, other):
        world.publish("p", "text", where)
    before = await world.index()
    await world.index(other)
    assert len(world.indexes._cached) == 1
    assert await world.index() is not before


@pytest.mark.parametrize("limits", [SearchLimits(packages=2, page=1)])
async def test_packages_beyond_the_limit_are_not_found(world: World) -> None:
    for n in range(4):
        world.publish(f"p{n}", "text")
    assert len(await world.find("text")) == 2
    world.publish("q", "text")
    assert len(await world.find("text")) == 2
