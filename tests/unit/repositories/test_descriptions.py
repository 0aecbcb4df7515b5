"""What searches know of packages follows the events of the catalog, and no answer is behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.repositories.descriptions import DELAY_S, WAIT_S, Descriptions
from pkgrepo.storage.catalog.descriptions import (
    EVENTS,
    count_undescribed,
    describe_packages,
    find_described,
)
from pkgrepo.storage.catalog.engine.schema import load_schema
from pkgrepo.storage.catalog.packages import events, packages, text_index
from pkgrepo.storage.catalog.packages.facts import facts_of
from tests.support.catalog import HeldCatalog
from tests.support.catalogs import NOW, add_repository, ensure_version
from tests.support.inprocess_server import Provoked
from tests.support.repositories import now


class World:
    """A catalog, and what follows its events."""

    def __init__(self) -> None:
        self.catalog = HeldCatalog()
        self.repository: Repository = self.catalog.do(add_repository)
        self.clock = Clock()
        self.descriptions = Descriptions(self.catalog, self.clock)

    def publish(self, key: str, summary: object, version: str = "1", **meta: object) -> None:
        """A version of a package with its event."""

        def command(tx: Any) -> None:
            at = self.repository.id
            package, _ = packages.ensure_package(tx, at, key=key, name=key, serial=1, now_ms=NOW)
            about = {"text": version, "sort": version.encode(), "meta": {"summary": summary, **meta}}
            ensure_version(tx, package.id, key=version, publisher=SYSTEM, now_ms=NOW, **about)
            self.tell(tx, package.id, key)

        self.catalog.do(command)

    def tell(self, tx: Any, package_id: int | None, key: str) -> None:
        new = [events.NewEvent(self.repository.id, package_id, key, "", "published", {})]
        events.append_events(tx, new, SYSTEM, NOW)

    def summaries(self, *keys: str) -> dict[str, str]:
        """What the catalog says of packages at this moment."""
        places = [(self.repository.id, key) for key in keys]
        found = self.catalog.peek(facts_of, find_described(self.catalog.tx), places)
        return {key: facts.summary for (_, key), facts in found.items()}


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    if world.descriptions.running:
        world.descriptions.stopService()
    assert not world.clock.getDelayedCalls()


def test_who_asks_gets_all_that_was_published_before(world: World) -> None:
    world.publish("demo", "A demo")
    assert world.summaries("demo") == {"demo": ""}
    assert world.catalog.peek(find_described).is_behind
    assert world.catalog.peek(count_undescribed) == 1
    described = now(world.descriptions.current())
    assert described == world.catalog.peek(find_described)
    assert not described.is_behind
    assert world.summaries("demo") == {"demo": "A demo"}
    world.publish("demo", "Another one", "2")
    world.publish("other", "Something else")
    assert now(world.descriptions.current()).seq == described.seq + 2
    assert world.summaries("demo", "other") == {"demo": "Another one", "other": "Something else"}
    assert world.catalog.peek(count_undescribed) == 0


def test_changes_of_a_moment_are_followed_together_soon_after_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    written = list[object]()
    write = world.catalog.write
    monkeypatch.setattr(
        world.catalog, "write", lambda command, *args: [written.append(command), write(command, *args)][1]
    )
    world.publish("before", "Before the start")
    world.descriptions.notify()  # which is not running
    assert not world.clock.getDelayedCalls()
    world.descriptions.startService()
    for key in ("a", "b", "c"):
        world.publish(key, f"It is {key}")
        world.descriptions.notify(world.repository)
    assert written == []
    world.clock.advance(DELAY_S)
    assert world.summaries("a", "c", "before") == {"a": "It is a", "c": "It is c", "before": "Before the start"}
    assert written == [describe_packages]
    world.descriptions.notify()
    world.clock.advance(DELAY_S)
    assert written == [describe_packages]  # nothing has happened


def test_many_events_take_several_transactions(world: World) -> None:
    for number in range(EVENTS + 1):
        world.publish(f"p{number}", f"Package {number}")
    world.catalog.do(describe_packages)
    assert world.summaries("p0", f"p{EVENTS}") == {"p0": "Package 0", f"p{EVENTS}": ""}
    now(world.descriptions.current())
    assert world.summaries(f"p{EVENTS}") == {f"p{EVENTS}": f"Package {EVENTS}"}


def test_events_of_packages_that_are_gone_and_of_no_package_are_passed(world: World) -> None:
    world.publish("gone", "Soon gone")
    package = world.catalog.peek(packages.find_package, world.repository.id, "gone")
    assert package is not None
    world.catalog.do(packages.remove_package, package.id)
    world.catalog.do(lambda tx: world.tell(tx, None, ""))
    world.publish("here", "Still here")
    now(world.descriptions.current())
    assert world.summaries("gone", "here") == {"here": "Still here"}
    assert world.catalog.peek(count_undescribed) == 0


@pytest.mark.parametrize(
    "value", [None, 7, 1.5, True, "x", "a\0b", [], [[], {"a": 1}, None, "a\0b"], {"a\0b": ["a\0b"]}]
)
@pytest.mark.parametrize(
    "field", ["summary", "description", "keywords", "license", "author", "requires_dist", "dependencies"]
)
def test_whatever_the_metadata_of_a_package_are_later_ones_are_described(
    world: World, monkeypatch: pytest.MonkeyPatch, field: str, value: object
) -> None:
    stored = list[object]()
    send = world.catalog.tx.send
    monkeypatch.setattr(world.catalog.tx, "send", lambda sql, values: [stored.extend(values), send(sql, values)][1])
    world.publish("strange", **{"summary": "", field: value})
    world.publish("later", "Comes later")
    stored.clear()
    now(world.descriptions.current())
    assert world.summaries("later") == {"later": "Comes later"}
    assert not [each for each in stored if isinstance(each, str) and "\0" in each]  # which PostgreSQL does not store


def test_metadata_that_nobody_foresaw_keep_no_package_from_being_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = text_index.about_text

    def fails(name: str, meta: Mapping[str, Any]) -> str:
        if meta.get("summary") == "odd":
            raise Provoked
        return read(name, meta)

    monkeypatch.setattr(text_index, "about_text", fails)
    world.publish("odd", "odd")
    world.publish("later", "Comes later")
    assert not now(world.descriptions.current()).is_behind
    assert world.summaries("odd", "later") == {"odd": "", "later": "Comes later"}


def test_a_transaction_ends_after_a_time_but_goes_on_by_one_event(world: World) -> None:
    for key in ("a", "b", "c"):
        world.publish(key, f"It is {key}")
    times = iter((0.0, 0.5, 1.0, 1.5))
    world.catalog.do(describe_packages, longest_s=1.0, clock=lambda: next(times))
    assert world.summaries("a", "b", "c") == {"a": "It is a", "b": "It is b", "c": ""}
    world.catalog.do(describe_packages, longest_s=0.0, clock=lambda: 2.0)
    assert world.summaries("c") == {"c": "It is c"}


def test_events_that_are_gone_again_are_not_waited_for(world: World) -> None:
    world.publish("demo", "A demo")
    now(world.descriptions.current())
    world.publish("staged", "In a stage that ends")
    world.catalog.do(lambda tx: tx.execute("DELETE FROM event"))
    assert not now(world.descriptions.current()).is_behind
    world.publish("demo", "Another one", "2")
    now(world.descriptions.current())
    assert world.summaries("demo") == {"demo": "Another one"}


@pytest.mark.parametrize("before", [0, 2])
def test_an_upgraded_catalog_has_what_packages_said_of_themselves_before(world: World, before: int) -> None:
    for number in range(before):
        world.publish(f"p{number}", "Was described when it was published")
    (step,) = (each for each in load_schema().migrations if each.name == "0003_described_packages.sql")
    world.catalog.do(lambda tx: tx.execute(step.sql))
    assert world.catalog.peek(count_undescribed) == 0
    world.publish("later", "Comes later")
    assert world.catalog.peek(count_undescribed) == 1
    now(world.descriptions.current())
    assert world.summaries("later") == {"later": "Comes later"}


@pytest.mark.parametrize("error", [StorageFull("catalog"), StorageFailed("catalog")], ids=["full", "failed"])
def test_where_nothing_can_be_written_what_was_known_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    world.publish("demo", "A demo")
    now(world.descriptions.current())
    world.publish("demo", "Another one", "2")

    async def write(*_: object) -> None:
        raise error

    monkeypatch.setattr(world.catalog, "write", write)
    assert now(world.descriptions.current()).is_behind
    assert world.summaries("demo") == {"demo": "A demo"}
    world.descriptions.startService()
    world.clock.advance(DELAY_S)  # it is logged, and tried again with the next change
    monkeypatch.undo()
    world.descriptions.notify()
    world.clock.advance(DELAY_S)
    assert world.summaries("demo") == {"demo": "Another one"}


def test_a_search_waits_for_a_second_and_takes_what_is_known_then(world: World) -> None:
    world.publish("demo", "A demo")
    world.catalog.holds = True
    asked = Deferred.fromCoroutine(world.descriptions.current())
    world.clock.advance(WAIT_S / 2)
    assert not asked.called
    world.clock.advance(WAIT_S / 2)
    assert asked.result.is_behind
    world.catalog.release()
    assert not now(world.descriptions.current()).is_behind


def test_a_search_waits_for_no_event_that_came_after_it(world: World) -> None:
    world.publish("demo", "A demo")
    world.catalog.holds = True
    asked = Deferred.fromCoroutine(world.descriptions.current())
    world.publish("later", "Comes later")
    world.catalog.release()
    assert not asked.result.is_behind
    assert world.summaries("demo", "later") == {"demo": "A demo", "later": ""}


def test_one_transaction_waits_for_the_writer_however_many_want_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = list[object]()
    write = world.catalog.write
    monkeypatch.setattr(
        world.catalog, "write", lambda command, *args: [written.append(command), write(command, *args)][1]
    )
    world.publish("demo", "A demo")
    world.descriptions.startService()
    world.catalog.holds = True
    asked = [Deferred.fromCoroutine(world.descriptions.current()) for _ in range(3)]
    for _ in range(4):
        world.publish("later", "Comes later")
        world.descriptions.notify()
        world.clock.advance(DELAY_S)
    assert written == [describe_packages]
    world.catalog.release()
    assert not any(each.result.is_behind for each in asked)
    assert world.summaries("later") == {"later": "Comes later"}  # the service goes on
    assert written == [describe_packages] * 2


def test_a_service_that_stops_begins_no_further_transaction(world: World) -> None:
    world.publish("demo", "A demo")
    world.catalog.holds = True
    world.descriptions.startService()
    world.clock.advance(DELAY_S)
    world.publish("later", "Comes later")
    world.descriptions.stopService()
    world.catalog.release()
    assert world.summaries("later") == {"later": ""}
    world.descriptions.startService()
    world.clock.advance(DELAY_S)
    assert world.summaries("later") == {"later": "Comes later"}
