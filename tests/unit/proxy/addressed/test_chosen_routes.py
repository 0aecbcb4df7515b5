"""Processes that decide from which route a version comes; each has its own object, and news arrive at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.proxy.addressed.chosen_routes import (
    LONGEST_PAUSE_S,
    MOST_HELD,
    RECORDED_S,
    SILENT_S,
    TOLD_S,
    Decisions,
    Place,
)
from pkgrepo.repositories.publish.content import ContentWriter
from tests.support.led_transfers import Leases
from tests.support.memory_server import running_stacks
from tests.support.upstreams.maven import MavenUpstream

PLACE = (7, "g:a", "1.0")


class Process:
    """A process that waits for the route of a version, finds one, or knows that of another process."""

    def __init__(self, taken: dict[str, Leases], clock: Clock, others: list[Process]) -> None:
        self.known: dict[Place, str] = {}
        self.leases = Leases(taken)
        self.decisions = Decisions(self.leases, self, clock)
        self.is_paused = False
        self._found: Deferred[str] = Deferred()
        self._others = others
        others.append(self)

    def chosen_route(self, *told: Any) -> None:
        for each in self._others:
            if each is not self:
                each.known[told[:3]] = told[3]

    def undecided(self, *place: Any) -> None:
        for each in self._others:
            if each is not self and not each.is_paused:
                each.decisions.answer(place, each.known.get(place))

    def deciding(self, *place: Any) -> None:
        for each in self._others:
            each.decisions.hear(place)

    def ask(self, place: Place = PLACE) -> Deferred[str]:
        """The route of the version, which L{find} tells if this process is to decide."""

        async def asking() -> str:
            async def is_decided() -> bool:
                return place in self.known

            async with self.decisions.turn(place, is_decided):
                if place not in self.known:
                    self.known[place] = await self._found
                    self.decisions.keep(place, recorded=True)
            return self.known[place]

        return Deferred.fromCoroutine(asking())

    def find(self, route: str) -> None:
        self._found.callback(route)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def processes(clock: Clock) -> tuple[Process, Process]:
    taken: dict[str, Leases] = {}
    others: list[Process] = []
    return Process(taken, clock, others), Process(taken, clock, others)


def wait(clock: Clock, seconds: float) -> None:
    clock.pump([LONGEST_PAUSE_S] * round(seconds / LONGEST_PAUSE_S + 2))


def test_others_wait_for_the_route_for_as_long_as_the_process_that_decides_is_alive(
    processes: tuple[Process, Process], clock: Clock
) -> None:
    first, second = processes
    found, waiting = first.ask(), second.ask()
    wait(clock, 3 * SILENT_S)
    assert (found.called, waiting.called) == (False, False)
    first.find("central")
    wait(clock, 0)
    assert (found.result, waiting.result) == ("central", "central")


def test_others_decide_while_the_process_with_the_lease_is_paused(
    processes: tuple[Process, Process], clock: Clock
) -> None:
    first, second = processes
    first.ask()
    first.is_paused = True
    waiting = second.ask()
    second.find("other")
    wait(clock, SILENT_S / 2)
    assert not waiting.called
    wait(clock, SILENT_S)
    assert waiting.result == "other"


def test_a_process_that_fails_to_find_a_route_lets_the_next_one_decide(
    processes: tuple[Process, Process], clock: Clock
) -> None:
    first, second = processes
    found, waiting = first.ask(), second.ask()
    found.addErrback(lambda _: None)
    found.cancel()
    second.find("other")
    wait(clock, 0)
    assert waiting.result == "other"


def test_a_process_that_missed_the_route_is_told_it(processes: tuple[Process, Process], clock: Clock) -> None:
    first, second = processes
    first.ask()
    first.find("central")
    wait(clock, 2 * TOLD_S)
    waiting = second.ask()
    wait(clock, 0)
    assert waiting.result == "central"


def test_a_route_that_was_forgotten_may_be_decided_by_others(processes: tuple[Process, Process], clock: Clock) -> None:
    first, second = processes
    first.ask()
    first.find("central")
    first.known.clear()
    waiting = second.ask()
    second.find("other")
    wait(clock, 0)
    assert waiting.result == "other"


@pytest.mark.parametrize(("recorded", "seconds"), [(True, RECORDED_S), (False, TOLD_S)], ids=["file", "head"])
def test_a_lease_is_released_after_some_time(
    processes: tuple[Process, Process], clock: Clock, recorded: bool, seconds: float
) -> None:
    first, _ = processes
    first.ask()
    first.decisions.keep(PLACE, recorded=recorded)
    clock.advance(seconds - 0.1)
    assert first.leases.taken
    clock.advance(0.2)
    assert not first.leases.taken


def test_a_lease_is_released_when_a_file_is_recorded(processes: tuple[Process, Process], clock: Clock) -> None:
    first, _ = processes
    first.ask()
    first.find("central")
    assert first.leases.taken
    first.decisions.end(PLACE)
    assert not first.leases.taken
    assert not clock.getDelayedCalls()


def test_the_number_of_leases_is_bounded(processes: tuple[Process, Process], clock: Clock) -> None:
    first, _ = processes
    first.find("central")
    for number in range(MOST_HELD + 10):
        first.ask((7, "g:a", str(number)))
    assert len(first.leases.taken) == MOST_HELD
    first.decisions.close()
    assert not first.leases.taken
    assert not clock.getDelayedCalls()


JAR = "com/example/lit/1.0-SNAPSHOT/lit-1.0-SNAPSHOT.jar"


async def test_file_that_is_purged_at_once_is_served_and_not_remembered_as_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = ContentWriter.change_with_blobs
    with MavenUpstream() as upstream:
        path = upstream.add(JAR, b"PK\x03\x04 lit")
        async with running_stacks(tmp_path) as make:
            stack = await make(proxy__allow_private=["127.0.0.1"])
            config = {"type": "Proxy", "proxy": {"routes": [upstream.url]}}
            made = await stack.add_repository("mirror", format="maven", config=config)

            async def then_purge(self: ContentWriter, *args: Any) -> Any:
                result: Any = await change(self, *args)
                # It waits until this change is recorded.
                await stack.ok("POST", f"/repository/{made['id']}/cache/purge?wait=0", {})
                return result

            monkeypatch.setattr(ContentWriter, "change_with_blobs", then_purge)
            for _ in range(2):
                reply = await stack.call("GET", f"/repositories/main/mirror{path}.sha1")
                assert (reply.status, len(reply.body)) == (200, 40)
