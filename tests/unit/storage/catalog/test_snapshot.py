"""Values in memory that are of the catalog's current generation, or known not to be."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.errors import StorageFailed
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.snapshot import Snapshot
from tests.support.catalog import MemoryCatalog
from tests.support.delayed_catalog import DelayedCatalog
from tests.support.repositories import now


class Held:
    """A snapshot over a catalog that answers when the test advances the clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.memory = MemoryCatalog()
        self.catalog = DelayedCatalog(self.memory, self.clock, 0.2)
        self.snapshot = Snapshot(self.catalog, lambda reader, _before: settings.get(reader, "serial"), None)

    def refresh(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self.snapshot.refresh())

    def grow(self) -> None:
        self.memory.do(settings.increment, "serial")


@pytest.fixture
def held() -> Held:
    return Held()


def test_refresh_now_updates_the_value_if_the_catalog_answers_at_once() -> None:
    catalog = MemoryCatalog()
    snapshot = Snapshot(catalog, lambda reader, _before: settings.get(reader, "serial"), None)
    for number in range(1, 4):
        catalog.do(settings.increment, "serial")
        assert snapshot.refresh_now()
        assert snapshot.value == str(number)


@pytest.mark.parametrize("failing", ["peek", "generation"])
def test_what_cannot_be_read_is_as_it_was_and_told_to_who_waits(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StorageFailed("catalog")

    catalog = MemoryCatalog()
    snapshot = Snapshot(catalog, lambda reader, _before: settings.get(reader, "serial"), None)
    catalog.do(settings.increment, "serial")
    assert snapshot.latest() == "1"
    catalog.do(settings.increment, "serial")
    with monkeypatch.context() as broken:
        broken.setattr(catalog, failing, fail)
        broken.setattr(catalog, "look", fail)
        assert snapshot.latest() == "1"
        assert not snapshot.refresh_now()
        with pytest.raises(StorageFailed):
            now(snapshot.refresh())
    assert snapshot.latest() == "2"


def test_nothing_is_read_while_the_generation_is_unchanged() -> None:
    catalog = MemoryCatalog()
    read = []
    snapshot = Snapshot(catalog, lambda _reader, before: read.append(before), None)
    for _ in range(3):
        assert snapshot.refresh_now()
    assert len(read) == 1


def test_a_query_gets_the_previous_value() -> None:
    catalog = MemoryCatalog()
    snapshot: Snapshot[tuple[int, ...]] = Snapshot(catalog, lambda _reader, before: (*before, len(before)), ())
    for _ in range(3):
        catalog.do(settings.increment, "serial")
        snapshot.refresh_now()
    assert snapshot.value == (0, 1, 2)


def test_if_the_catalog_does_not_answer_at_once_refresh_updates_the_value(held: Held) -> None:
    held.grow()
    assert not held.snapshot.refresh_now()
    waiting = held.refresh()
    assert not waiting.called
    held.clock.pump([0.1, 0.1])
    assert waiting.called
    assert held.snapshot.refresh_now()
    assert held.snapshot.value == "1"


def test_concurrent_refreshes_after_one_commit_share_one_query(held: Held) -> None:
    held.grow()
    waiting = [held.refresh() for _ in range(100)]
    held.clock.pump([0.1, 0.1])
    assert all(each.called for each in waiting)
    assert len(held.catalog.operations) == 1


def test_a_refresh_after_another_commit_does_not_share_the_earlier_query(held: Held) -> None:
    held.grow()
    first = held.refresh()
    held.clock.advance(0.1)  # the first query is answered, and its answer on the way
    held.grow()
    second = held.refresh()
    held.clock.advance(0.1)
    assert (first.called, second.called) == (True, False)
    assert not held.snapshot.refresh_now()
    held.clock.advance(0.1)
    assert held.snapshot.value == "2"
    assert held.snapshot.refresh_now()


def test_a_late_answer_does_not_replace_a_newer_one(held: Held) -> None:
    held.grow()
    held.catalog.delay_s = 10
    late = held.refresh()
    held.clock.advance(5)
    held.grow()
    held.catalog.delay_s = 0.2
    held.refresh()
    held.clock.pump([0.1, 0.1])
    assert held.snapshot.value == "2"
    held.clock.advance(5)
    assert late.called
    assert held.snapshot.value == "2"
    assert held.snapshot.refresh_now()


def test_a_cancelled_refresh_does_not_cancel_the_shared_query(held: Held) -> None:
    held.grow()
    leaver, stayer = held.refresh(), held.refresh()
    leaver.addErrback(lambda _: "left")
    leaver.cancel()
    held.clock.pump([0.1, 0.1])
    assert stayer.called
    assert held.snapshot.value == "1"
