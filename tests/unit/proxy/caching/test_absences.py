"""What no upstream has is remembered for a while, and in bounded memory."""

from __future__ import annotations

import pytest

from pkgrepo.errors import NotFound
from pkgrepo.proxy.caching.states import MEMORY, ROW, NegativeCache, absence
from pkgrepo.proxy.trace import StepKind, Trace
from tests.support.proxy_world import ManualClock
from tests.unit.proxy.caching.test_states import proxy


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_an_absence_counts_for_no_longer_than_the_repository_says_by_now(clock: ManualClock) -> None:
    absences, before = NegativeCache(clock), proxy(cache={"negative_ttl": "1d"})
    absences.note(before, "file/a", Trace())
    clock.advance(30)
    with pytest.raises(NotFound):
        absences.check(before, "file/a")
    absences.check(proxy(cache={"negative_ttl": 30}), "file/a")


def test_what_was_asked_before_all_is_forgotten_is_not_remembered(clock: ManualClock) -> None:
    absences, repository = NegativeCache(clock), proxy()
    before = absence(repository, "file/a", clock.now_ms(), Trace())
    clock.advance(1)
    absences.forget(repository)
    absences.add(repository.id, before)
    absences.check(repository, "file/a")
    absences.note(repository, "file/a", Trace())
    with pytest.raises(NotFound):
        absences.check(repository, "file/a")


@pytest.mark.parametrize(("length", "steps"), [(30_000, 0), (10, 20)], ids=["keys", "steps"])
def test_long_keys_and_many_steps_are_fewer_in_the_same_memory(clock: ManualClock, length: int, steps: int) -> None:
    absences, repository, trace = NegativeCache(clock), proxy(), Trace()
    for number in range(steps):
        trace.add(StepKind.ABSENT, route=f"route-{number}")
    most = 2 * MEMORY // (ROW + length + 300 * steps)
    for number in range(most):
        absences.note(repository, f"{number:0{length}}", trace)
    assert absences.find(repository.id, f"{0:0{length}}") is None
    assert absences.find(repository.id, f"{most - 1:0{length}}") is not None
