"""A commit is answered when all other processes know of it."""

from __future__ import annotations

import time
from threading import Thread

import pytest
import pytest_twisted

from pkgrepo.storage.catalog.postgresql.changes import HELLO, ServerClock, Witnesses
from pkgrepo.storage.catalog.postgresql.sessions import Pace
from pkgrepo.storage.catalog.server import settings
from tests.support.inprocess_server import until
from tests.support.postgresql_catalogs import PostgresCase
from tests.support.timeouts import TIMEOUT_S


@pytest_twisted.async_yield_fixture
async def case(databases):
    with databases.another() as url:
        case = PostgresCase(url, pace=Pace(patience_s=TIMEOUT_S))  # also on the busiest machine
        yield case
        await case.stop()


async def notices(reading, writing):
    before = reading.generation()
    await writing.write(settings.increment, "serial")
    return reading.generation() != before


async def test_after_a_write_another_node_answers_nothing_from_its_memory(case):
    one, two = await case.another(), await case.another()
    for writing, reading in [(one, two), (two, one)]:
        heard = writing._changes._witnesses._seen
        await until(heard.__len__)  # it has heard that the other has begun
        for _ in range(20):
            assert await notices(reading, writing)


async def test_a_node_that_has_stopped_is_not_waited_for(case):
    one, two = await case.another(), await case.another()
    await one.write(settings.increment, "serial")
    await two.stop()
    await one.write(settings.increment, "serial")


def test_a_process_that_says_nothing_is_left_out_until_it_is_heard():
    known = Witnesses(Pace(patience_s=TIMEOUT_S))
    assert known.hear("other hello 1")
    known.wait(1)
    known._pace = Pace(patience_s=0.01)
    known.wait(2)
    known._pace = Pace(patience_s=TIMEOUT_S)
    known.wait(2)
    assert not known.hear("other seen 2")
    waiting = Thread(target=known.wait, args=(3,))
    waiting.start()
    known.hear("other seen 2")
    assert waiting.is_alive()
    known.hear("other seen 3")
    waiting.join(TIMEOUT_S)
    assert not waiting.is_alive()


def test_what_it_hears_of_itself_and_nonsense_is_ignored():
    known = Witnesses()
    (_, own) = known.statement(HELLO, 1)[1]
    for payload in (own, "", "x", "x hello", "x hello one", "x hello 1 2"):
        assert not known.hear(payload)
    known.wait(2)


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
