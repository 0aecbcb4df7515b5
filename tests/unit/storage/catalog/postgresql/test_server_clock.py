"""The clock that all nodes share."""

from __future__ import annotations

import time

import pytest

from pkgrepo.storage.catalog.postgresql.changes import ServerClock

HOUR_MS = 3_600_000


class Steady:
    """Seconds from some beginning."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def steady() -> Steady:
    return Steady()


def test_it_is_the_clock_of_this_machine_at_first(steady: Steady) -> None:
    assert abs(ServerClock(steady).now_ms() - time.time() * 1000) < HOUR_MS


def test_it_follows_the_server_and_goes_on_without_it(steady: Steady) -> None:
    clock = ServerClock(steady)
    clock.measured(5_000_000, 1000.0, 1000.010)
    steady.now_s = 1000.005
    assert clock.now_ms() == 5_000_000
    steady.now_s = 1060.005
    assert clock.now_ms() == 5_060_000


def test_a_slow_answer_does_not_replace_a_quick_one(steady: Steady) -> None:
    clock = ServerClock(steady)
    clock.measured(5_000_000, 1000.0, 1000.0)
    clock.measured(5_001_200, 1001.0, 1002.0)  # anything from 200 ms behind to 800 ms ahead of the first answer
    steady.now_s = 1002.0
    assert clock.now_ms() == 5_002_000


def test_an_answer_replaces_one_whose_error_may_have_grown(steady: Steady) -> None:
    clock = ServerClock(steady)
    clock.measured(5_000_000, 1000.0, 1000.0)
    clock.measured(8_600_100, 4600.0, 4600.2)
    steady.now_s = 4600.1
    assert clock.now_ms() == 8_600_100


def test_a_clock_that_was_set_counts_at_once(steady: Steady) -> None:
    clock = ServerClock(steady)
    clock.measured(5_000_000, 1000.0, 1000.0)
    clock.measured(5_000_000 - HOUR_MS, 1001.0, 1003.0)
    steady.now_s = 1002.0
    assert clock.now_ms() == 5_000_000 - HOUR_MS
