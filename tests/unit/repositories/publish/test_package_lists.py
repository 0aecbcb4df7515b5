"""Lists over all packages: right after every change, of this process or another, at the cost of the change."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.model import SYSTEM
from pkgrepo.repositories.publish import package_lists as module
from pkgrepo.repositories.publish.package_lists import ListForm, ListSource, PackageList, PackageLists
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.storage.catalog.packages import events, packages
from pkgrepo.storage.catalog.server import repositories
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository

KEYS = st.text(st.sampled_from("abc"), min_size=1, max_size=4)


def lines(names: Iterable[str]) -> bytes:
    return "\n".join(names).encode()


def upper(names: Iterable[str]) -> bytes:
    return lines(names).upper()


@given(st.lists(st.tuples(KEYS, st.booleans()), max_size=60), st.sets(KEYS, max_size=20))
def test_packages_are_in_order_whatever_comes_and_goes(changes: list[tuple[str, bool]], before: set[str]) -> None:
    listed = PackageList([(key, key) for key in sorted(before)], chunk=3)
    expected = {key: key for key in before}
    for key, comes in changes:
        if comes:
            listed.put(key, key * 2)
            expected[key] = key * 2
        else:
            listed.remove(key)
            expected.pop(key, None)
    told = [expected[key] for key in sorted(expected)]
    assert list(listed.values()) == told
    for form, render in (("lines", lines), ("upper", upper)):
        assert b"\n".join(listed.fragments(form, render)) == render(told)
    assert all(len(chunk.values) < 6 for chunk in listed._chunks)


class World:
    def __init__(self, **limits: int) -> None:
        self.catalog = MemoryCatalog()
        self.repository = self.catalog.do(add_repository)
        self.rendered: list[int] = []
        self.lists = PackageLists(
            ListSource(
                serial=repositories.names_serial,
                read_all=packages.package_names,
                read_one=find_name,
                forms={"lines": ListForm("text/plain", self.splice)},
            ),
            **limits,
        )
        self.pools: Any = SimpleNamespace(cpu=_now)

    def splice(self, serial: int, names: PackageList[str]) -> Spliced:
        def render(some: Iterable[str]) -> bytes:
            some = list(some)
            self.rendered.append(len(some))
            return lines(some)

        return Spliced(b"%d:" % serial, names.fragments("lines", render), b"", b"\n")

    def publish(self, key: str, *, removed: bool = False) -> None:
        """A new package, or a change of one, as another process would make it."""

        def command(tx: Any) -> None:
            package, new = packages.ensure_package(tx, self.repository.id, key=key, name=key, serial=1, now_ms=NOW)
            packages.touch_package(tx, package.id, serial=1, now_ms=NOW)
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
            if new or removed:
                repositories.bump_names_serial(tx, self.repository.id)

        self.catalog.do(command)

    async def names(self) -> list[str]:
        document = await self.lists.get(self.catalog, self.pools, self.repository, "lines")
        return document.body.partition(b":")[2].decode().split()


def find_name(reader: Any, repository_id: int, key: str) -> str | None:
    package = packages.find_package(reader, repository_id, key)
    return None if package is None else package.name


async def _now(work: Any, *args: Any) -> Any:
    return work(*args)


@pytest.fixture
def world() -> World:
    return World()


async def test_every_change_is_in_the_next_read(world: World) -> None:
    assert await world.names() == []
    for key in ("b", "c", "a"):
        world.publish(key)
        assert key in await world.names()
    world.publish("c", removed=True)
    assert await world.names() == ["a", "b"]


async def test_a_list_is_kept_until_its_serial_changes(world: World) -> None:
    world.publish("a")
    assert world.lists.ready(world.catalog.tx, world.repository, "lines") is None
    await world.names()
    first = world.lists.ready(world.catalog.tx, world.repository, "lines")
    assert first is not None
    world.publish("a")
    assert world.lists.ready(world.catalog.tx, world.repository, "lines") is first
    world.publish("b")
    assert world.lists.ready(world.catalog.tx, world.repository, "lines") is None


async def test_one_more_package_renders_one_chunk(world: World) -> None:
    for n in range(1000):
        world.publish(f"p{n:04d}")
    await world.names()
    world.rendered.clear()
    world.publish("p0500-more")
    assert "p0500-more" in await world.names()
    assert world.rendered == [module.CHUNK + 1]


async def test_after_too_many_events_the_list_is_read_anew() -> None:
    world = World(most_events=3)
    world.publish("a")
    await world.names()
    for key in "edcb":
        world.publish(key)
    assert await world.names() == list("abcde")


async def test_lists_of_so_many_repositories_are_kept() -> None:
    world = World(most_lists=1)
    await world.names()
    first, world.repository = world.repository, world.catalog.do(add_repository, "other")
    world.publish("mine")
    assert await world.names() == ["mine"]
    assert world.lists.ready(world.catalog.tx, first, "lines") is None
