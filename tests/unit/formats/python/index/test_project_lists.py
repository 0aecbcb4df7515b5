"""The list of all projects: right after every change, of this process or another, at the cost of the change."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import pytest_twisted
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.formats.python.index import pages
from pkgrepo.formats.python.index import project_lists as module
from pkgrepo.formats.python.index.pages import HTML_PAGE, JSON_PAGE
from pkgrepo.formats.python.index.project_lists import NameList, ProjectLists
from pkgrepo.model import SYSTEM
from pkgrepo.storage.catalog.packages import events, packages
from pkgrepo.storage.catalog.server import repositories
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository

KEYS = st.text(st.sampled_from("abc"), min_size=1, max_size=4)


@given(st.lists(st.tuples(KEYS, st.booleans()), max_size=60), st.sets(KEYS, max_size=20))
def test_names_are_in_order_whatever_comes_and_goes(changes: list[tuple[str, bool]], before: set[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", 3)
        names = NameList([(key, key) for key in sorted(before)])
        expected = {key: key for key in before}
        for key, comes in changes:
            if comes:
                names.put(key, key.upper())
                expected[key] = key.upper()
            else:
                names.remove(key)
                expected.pop(key, None)
        told = [expected[key] for key in sorted(expected)]
        for kind, whole in ((JSON_PAGE, pages.listed_json), (HTML_PAGE, pages.listed_html)):
            separator = b"," if kind == JSON_PAGE else b"\n"
            assert separator.join(names.fragments(kind)) == whole(told)
        assert all(len(chunk.names) < 6 for chunk in names._chunks)


class World:
    def __init__(self) -> None:
        self.catalog = MemoryCatalog()
        self.repository = self.catalog.do(add_repository)
        self.lists = ProjectLists()
        self.pools: Any = SimpleNamespace(cpu=_now)

    def publish(self, key: str, *, status: str = "active", removed: bool = False) -> None:
        """A new project, or a change of one, as another process would make it."""

        def command(tx: Any) -> None:
            package, new = packages.ensure_package(tx, self.repository.id, key=key, name=key, serial=1, now_ms=NOW)
            packages.touch_package(tx, package.id, serial=1, now_ms=NOW, meta={"status": status})
            events.append_event(
                tx,
                repository_id=self.repository.id,
                package_id=package.id,
                package_key=key,
                version_key="",
                kind="published",
                data={},
                actor=SYSTEM,
                now_ms=NOW,
            )
            if removed:
                packages.remove_package(tx, package.id)
            if new or removed or status != "active":
                repositories.bump_names_serial(tx, self.repository.id)

        self.catalog.do(command)

    async def names(self, kind: str = JSON_PAGE) -> Any:
        document = await self.lists.get(self.catalog, self.pools, self.repository, kind)
        if kind == JSON_PAGE:
            return [each["name"] for each in msgspec.json.decode(document.body)["projects"]]
        return [
            line.partition(">")[2].partition("<")[0] for line in document.body.decode().split("\n") if "href" in line
        ]


async def _now(work: Any, *args: Any) -> Any:
    return work(*args)


@pytest.fixture
def world() -> World:
    return World()


@pytest_twisted.ensureDeferred
async def test_every_change_is_in_the_next_read(world: World) -> None:
    assert await world.names() == []
    for key in ("b", "c", "a"):
        world.publish(key)
        assert key in await world.names()
    world.publish("b", status="quarantined")
    world.publish("c", removed=True)
    for kind in (HTML_PAGE, JSON_PAGE):
        assert await world.names(kind) == ["a"]
    world.publish("b", status="deprecated")
    assert await world.names() == ["a", "b"]


@pytest_twisted.ensureDeferred
async def test_a_list_is_kept_until_a_name_changes(world: World) -> None:
    world.publish("a")
    assert world.lists.ready(world.catalog.tx, world.repository, JSON_PAGE) is None
    await world.names()
    first = world.lists.ready(world.catalog.tx, world.repository, JSON_PAGE)
    assert first is not None
    world.publish("a")
    assert world.lists.ready(world.catalog.tx, world.repository, JSON_PAGE) is first
    world.publish("b")
    assert world.lists.ready(world.catalog.tx, world.repository, JSON_PAGE) is None


@pytest_twisted.ensureDeferred
async def test_one_more_name_renders_one_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(1000):
        world.publish(f"p{n:04d}")
    await world.names()
    rendered: list[int] = []
    monkeypatch.setitem(
        module._RENDER, JSON_PAGE, lambda names: rendered.append(len(names)) or pages.listed_json(names)
    )
    world.publish("p0500-more")
    assert "p0500-more" in await world.names()
    assert rendered == [module.CHUNK + 1]


@pytest_twisted.ensureDeferred
async def test_after_too_many_events_the_list_is_read_anew(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.publish("a")
    await world.names()
    monkeypatch.setattr(module, "MOST_EVENTS", 3)
    for key in "edcb":
        world.publish(key)
    assert await world.names() == list("abcde")


@pytest_twisted.ensureDeferred
async def test_lists_of_so_many_repositories_are_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LISTS", 1)
    await world.names()
    first, world.repository = world.repository, world.catalog.do(add_repository, "other")
    world.publish("mine")
    assert await world.names() == ["mine"]
    assert world.lists.ready(world.catalog.tx, first, JSON_PAGE) is None
