"""The engine: one bad package does not stop the others, and what the server cannot do ends the import."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pkgrepo.errors import Invalid, QuotaExceeded, UpstreamTimeout
from pkgrepo.gateway.imported.engine import Import, Order, Report, Taken, Tools
from pkgrepo.gateway.imported.items import Item, SourcePackage
from pkgrepo.model import SYSTEM
from pkgrepo.repositories.clock import SystemClock
from pkgrepo.repositories.upkeep.jobs import NoProgress
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import add_repository


class Nowhere:
    """A place without bytes."""

    modified_ms = None

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b""


class Shelf:
    """A source with these packages, whose fingerprints are texts; an error is raised when it is asked for."""

    def __init__(self, **packages: str | Exception) -> None:
        self.packages = packages

    async def names(self) -> AsyncIterator[str]:
        for each in self.packages:
            yield each

    async def package(self, name: str) -> SourcePackage:
        said = self.packages[name]
        if isinstance(said, Exception):
            raise said
        items = [Item(name=f"{name}.whl", path=name, place=Nowhere())]
        return SourcePackage(name=name, key=name, fingerprint=said, items=items, left_out=[("a.doc", "no package")])


class World:
    def __init__(self) -> None:
        self.catalog = MemoryCatalog()
        self.repository = self.catalog.do(add_repository)
        self.taken: list[str] = []
        self.refusing: dict[str, Exception] = {}

    async def take(self, source_package: SourcePackage, taken: Taken) -> None:
        if source_package.name in self.refusing:
            taken.refuse(f"{source_package.name}.whl", self.refusing[source_package.name])
            return
        self.taken.append(source_package.name)
        taken.count(1, 10)

    async def run(self, source: Shelf, **more: object):
        tools = Tools(
            catalog=self.catalog,
            content=None,  # type: ignore[arg-type]
            pools=None,  # type: ignore[arg-type]
            clock=SystemClock(),
            max_upload=1,
        )
        order = Order(kind="python", place="/old", repository=self.repository, actor=SYSTEM, **more)  # type: ignore[arg-type]
        return await Import(tools, order, source, self.take).run(NoProgress())


@pytest.fixture
def world() -> World:
    return World()


async def test_a_second_run_has_nothing_to_do_until_the_source_says_something_else(world) -> None:
    shelf = Shelf(one="1", two="1")
    first = await world.run(shelf)
    assert (first["packages"], first["files"], first["left_out_count"]) == (2, 2, 2)
    second = await world.run(shelf)
    assert (second["unchanged"], second["files"], second["left_out"]) == (2, 0, first["left_out"])
    shelf.packages["two"] = "2"
    assert (await world.run(shelf))["files"] == 1
    assert (await world.run(shelf, again=True))["files"] == 2
    assert sorted(world.taken) == ["one", "one", "two", "two", "two"]


async def test_one_bad_package_does_not_stop_the_others(world) -> None:
    result = await world.run(Shelf(bad=Invalid("no page"), fine="1", odd=ValueError("a fault of ours")))
    assert world.taken == ["fine"]
    reasons = {each["package"]: each["reason"] for each in result["left_out"] if not each["item"]}
    assert reasons == {"bad": "no page", "odd": "internal error; the server's log has it"}


async def test_what_may_succeed_later_is_tried_again(world) -> None:
    shelf = Shelf(slow="1", wrong="1")
    world.refusing = {"slow": UpstreamTimeout("old.example", "it is slow"), "wrong": Invalid("no wheel")}
    await world.run(shelf)
    world.refusing.clear()
    second = await world.run(shelf)
    assert (world.taken, second["unchanged"]) == (["slow"], 1)
    assert [each["package"] for each in second["left_out"]] == ["slow", "wrong", "wrong"]


async def test_what_the_server_cannot_do_ends_the_import(world) -> None:
    world.refusing = {"one": QuotaExceeded("repository main/py", "bytes", 1, 2, 3)}
    with pytest.raises(QuotaExceeded):
        await world.run(Shelf(one="1", two="1"))


async def test_a_dry_run_notes_nothing(world) -> None:
    assert (await world.run(Shelf(one="1"), dry_run=True))["dry_run"]
    assert (await world.run(Shelf(one="1")))["unchanged"] == 0


async def test_only_packages_that_match_are_taken(world) -> None:
    shelf = Shelf(**{"team-one": "1", "Team-two": "1", "other": "1", "another": "1"})
    await world.run(shelf, only=["team-*", "Other"])
    assert sorted(world.taken) == ["Team-two", "other", "team-one"]


def test_a_failure_that_may_pass_is_remembered_whatever_fails_after_it() -> None:
    taken = Taken("demo", Report(), NoProgress())
    taken.refuse("one.whl", UpstreamTimeout("there", 1.0))
    taken.refuse("two.whl", Invalid("no wheel"))
    assert taken.passing
