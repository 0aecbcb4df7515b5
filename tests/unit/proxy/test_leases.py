"""Turns of processes that want one document; two objects are two processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.proxy.leases import WAIT_S, Turn, Turns


class Process:
    """A process with turns; ``told`` are the leases it has told others of, ``hurried`` counts blocks of hurry."""

    def __init__(self, taken: set[str], clock: Clock) -> None:
        self.taken = taken
        self.told: list[str] = []
        self.hurried = 0
        self.turns = Turns(self, tell=self.told.append, without_delay=self.without_delay, reactor=clock)

    async def acquire(self, name: str) -> bool:
        free = name not in self.taken
        self.taken.add(name)
        return free

    def release(self, name: str) -> None:
        self.taken.remove(name)

    @contextmanager
    def without_delay(self) -> Iterator[None]:
        self.hurried += 1
        yield
        self.hurried -= 1

    def begin(self) -> Deferred[Turn]:
        return Deferred.fromCoroutine(self.turns.begin(1, "a"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def processes(clock: Clock) -> tuple[Process, Process]:
    taken: set[str] = set()
    return Process(taken, clock), Process(taken, clock)


def test_the_second_process_waits_for_the_end_of_the_first_turn(
    processes: tuple[Process, Process], clock: Clock
) -> None:
    first, second = processes
    turn, waiting = first.begin(), second.begin()
    clock.pump([0.1] * 3)
    assert (turn.called, waiting.called) == (True, False)
    turn.result.end()
    turn.result.end()  # also twice
    clock.advance(0.1)
    assert waiting.called
    waiting.result.end()
    assert first.taken == set()


def test_the_first_process_hurries_while_another_one_waits(processes: tuple[Process, Process], clock: Clock) -> None:
    first, second = processes
    turn, waiting = first.begin(), second.begin()
    for name in second.told:
        first.turns.hurry(name)
    assert first.hurried > 0
    turn.result.end()
    assert first.hurried == 0
    clock.advance(0.1)
    waiting.result.end()
    first.turns.hurry(second.told[0])  # too late
    assert first.hurried == 0


def test_a_process_hurries_while_a_client_of_its_own_waits_for_what_it_stores(
    processes: tuple[Process, Process], clock: Clock
) -> None:
    first, _ = processes
    turn, waiting = first.begin(), first.begin()
    assert (waiting.called, first.hurried > 0) == (False, True)
    turn.result.end()
    clock.advance(0.1)
    assert (waiting.called, first.hurried) == (True, 0)


def test_a_process_waits_for_a_while_only(processes: tuple[Process, Process], clock: Clock) -> None:
    first, second = processes
    turn, waiting = first.begin(), second.begin()
    clock.pump([0.1] * int(WAIT_S / 0.1 + 2))
    assert waiting.called
    waiting.result.end()  # which is not the end of the other one's turn
    assert len(first.taken) == 1
    turn.result.end()
    assert first.taken == set()
