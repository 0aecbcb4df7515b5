"""Formats are loaded in a thread as soon as there are repositories of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import frozen
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import Clock
from twisted.logger import LogEvent, globalLogPublisher

from pkgrepo.composition.used_formats import AGAIN_S, UsedFormats
from pkgrepo.errors import StorageFailed
from tests.support.inprocess_server import Provoked


class Turns(Clock):
    """A clock that calls at once what threads ask it to call."""

    def callFromThread(self, func: Callable[..., Any], *args: Any) -> None:
        func(*args)


@frozen
class Of:
    """A repository, as far as what format it is of."""

    format: str


class Registry:
    def __init__(self) -> None:
        self.on_change: Callable[[], object] = lambda: None
        self.formats: list[str] = []
        self.fails = False

    async def refresh(self) -> None:
        if self.fails:
            raise StorageFailed("the catalog")

    def all(self) -> list[Of]:
        return [Of(each) for each in self.formats]

    def add(self, *formats: str) -> None:
        self.formats += formats
        self.on_change()


class Late:
    """A format whose loading has these outcomes."""

    def __init__(self, name: str, *outcomes: Exception | None) -> None:
        self.name = name
        self.is_loaded = False
        self.loads = 0
        self._outcomes = list(outcomes)

    def load(self) -> None:
        self.loads += 1
        outcome = self._outcomes.pop(0) if self._outcomes else None
        if outcome is not None:
            raise outcome
        self.is_loaded = True


class Setup:
    def __init__(self, *formats: Late) -> None:
        self.clock, self.registry = Turns(), Registry()
        self.threads = 0
        self.held: Deferred[None] | None = None  # for what is loading
        self.formats: dict[str, Any] = {each.name: each for each in formats}
        registry: Any = self.registry
        self.used = UsedFormats(self.formats, registry, self.in_thread, self.clock)

    def in_thread(self, func: Callable[[], Any]) -> Any:
        self.threads += 1
        if self.held is not None:
            return self.held
        return maybeDeferred(func)


@pytest.fixture
def failures() -> Any:
    found: list[LogEvent] = []

    def observe(event: LogEvent) -> None:
        if "log_failure" in event:
            found.append(event)

    globalLogPublisher.addObserver(observe)
    yield found
    globalLogPublisher.removeObserver(observe)


def test_a_format_is_loaded_with_the_first_repository_that_is_seen() -> None:
    raw, other = Late("raw"), Late("other")
    setup = Setup(raw, other)
    setup.used.startService()
    setup.registry.add("raw", "raw", "gone")
    setup.registry.add("raw")
    assert (raw.loads, other.loads, setup.threads) == (1, 0, 1)


def test_what_fails_is_logged_once_tried_again_and_holds_up_no_other(failures: list[LogEvent]) -> None:
    bad, good = Late("bad", Provoked("no room"), Provoked("no room"), Provoked("no memory")), Late("good")
    setup = Setup(bad, good)
    setup.registry.add("bad", "good")
    setup.used.startService()
    assert (bad.is_loaded, good.is_loaded) == (False, True)
    for _ in range(3):
        setup.clock.advance(AGAIN_S)
    assert (bad.is_loaded, bad.loads) == (True, 4)
    assert [str(each["log_failure"].value) for each in failures] == ["no room", "no memory"]


def test_a_catalog_that_cannot_be_read_is_asked_again(failures: list[LogEvent]) -> None:
    raw = Late("raw")
    setup = Setup(raw)
    setup.registry.fails = True
    setup.registry.formats = ["raw"]
    setup.used.startService()
    assert not raw.is_loaded
    setup.registry.fails = False
    setup.clock.advance(AGAIN_S)
    assert raw.is_loaded
    assert not failures


def test_a_stop_during_a_load_is_no_failure_and_loads_nothing_more(failures: list[LogEvent]) -> None:
    setup = Setup(Late("raw"), Late("other"))
    setup.registry.add("raw", "other")
    setup.held = Deferred()
    setup.used.startService()
    setup.used.stopService()
    assert (failures, setup.threads) == ([], 1)


def test_nothing_is_loaded_after_the_stop() -> None:
    raw = Late("raw")
    setup = Setup(raw)
    setup.used.startService()
    setup.used.stopService()
    setup.registry.add("raw")
    assert not raw.is_loaded
