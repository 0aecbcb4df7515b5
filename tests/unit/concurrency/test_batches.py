"""Work on several items together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.concurrency.batches import BatchDelay, Batches


class Work:
    """Notes the calls, each of which ends when its Deferred fires."""

    def __init__(self) -> None:
        self.calls: list[Sequence[str]] = []
        self.ends: list[Deferred[None]] = []

    async def __call__(self, items: Sequence[str]) -> None:
        self.calls.append(items)
        self.ends.append(Deferred())
        await self.ends[-1]


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def batches(work: Work) -> Batches[int, str]:
    return Batches(work, most=2)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lingering(work: Work, clock: Clock) -> Batches[int, str]:
    return Batches(work, most=4, delay=BatchDelay(clock, 0.5, 3, 100))


def test_items_that_come_meanwhile_are_worked_on_together(work: Work, batches: Batches[int, str]) -> None:
    done = [batches.add(1, item) for item in "abcd"]
    assert work.calls == [["a"]]
    for calls in ([["a"], ["b", "c"]], [["a"], ["b", "c"], ["d"]]):
        work.ends[-1].callback(None)
        assert work.calls == calls
    assert [each.called for each in done] == [True, True, True, False]


def test_keys_do_not_wait_for_each_other(work: Work, batches: Batches[int, str]) -> None:
    batches.add(1, "a")
    batches.add(2, "b")
    assert work.calls == [["a"], ["b"]]


def test_error_is_that_of_its_batch_alone(work: Work, batches: Batches[int, str]) -> None:
    outcomes: list[object] = []
    for item in "abcd":
        batches.add(1, item).addCallbacks(outcomes.append, lambda failure: outcomes.append(failure.type))
    work.ends[0].callback(None)
    work.ends[1].errback(OSError())
    work.ends[2].callback(None)
    assert outcomes == [None, OSError, OSError, None]
    assert batches.add(1, "e") is not None
    assert work.calls[-1] == ["e"]


def test_items_linger_until_the_time_is_over(work: Work, clock: Clock, lingering: Batches[int, str]) -> None:
    lingering.add(1, "a")
    clock.advance(0.4)
    lingering.add(1, "b")
    assert work.calls == []
    clock.advance(0.1)
    assert work.calls == [["a", "b"]]


def test_enough_items_linger_no_longer(work: Work, clock: Clock, lingering: Batches[int, str]) -> None:
    done = [lingering.add(1, item) for item in "abcd"]
    assert work.calls == [["a", "b", "c"]]
    work.ends[-1].callback(None)
    assert [each.called for each in done] == [True, True, True, False]
    assert len(work.calls) == 1
    clock.advance(0.5)
    assert work.calls[-1] == ["d"]
    assert not clock.getDelayedCalls()


def test_enough_bytes_linger_no_longer(work: Work, clock: Clock, lingering: Batches[int, str]) -> None:
    lingering.add(1, "a", 99)
    assert work.calls == []
    lingering.add(1, "b", 1)
    assert work.calls == [["a", "b"]]
    lingering.add(1, "c", 99)
    lingering.add(2, "large", 100)
    assert work.calls[1:] == [["large"]]
    work.ends[0].callback(None)
    clock.advance(0.4)
    assert len(work.calls) == 2
    clock.advance(0.1)
    assert work.calls[2:] == [["c"]]


def test_items_that_have_lingered_do_not_linger_again(work: Work, clock: Clock) -> None:
    lingering: Batches[int, str] = Batches(work, most=2, delay=BatchDelay(clock, 0.5, 9, 100))
    for item in "abcde":
        lingering.add(1, item)
    clock.advance(0.5)
    for calls in (["ab"], ["ab", "cd"], ["ab", "cd", "e"]):
        assert ["".join(each) for each in work.calls] == calls
        work.ends[-1].callback(None)
    assert not clock.getDelayedCalls()


def test_nothing_lingers_while_somebody_waits(work: Work, clock: Clock, lingering: Batches[int, str]) -> None:
    lingering.add(1, "a")
    with lingering.without_delay():
        assert work.calls == [["a"]]
        lingering.add(2, "b")
    assert work.calls == [["a"], ["b"]]
    lingering.add(3, "c")
    assert work.calls[-1] == ["b"]
    assert len(clock.getDelayedCalls()) == 1
