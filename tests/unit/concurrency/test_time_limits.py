"""Time limits of a single wait."""

from __future__ import annotations

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from pkgrepo.concurrency.time_limits import Patience, TimedOut, within


def test_work_that_is_done_in_time_has_its_result() -> None:
    clock, work = Clock(), Deferred[int]()
    waiting = Deferred.fromCoroutine(within(10, work, clock, "too slow"))
    clock.advance(9)
    work.callback(5)
    assert waiting.result == 5
    assert clock.getDelayedCalls() == []


def test_work_that_takes_too_long_is_cancelled() -> None:
    clock, cancelled = Clock(), []
    work: Deferred[int] = Deferred(cancelled.append)
    waiting = Deferred.fromCoroutine(within(10, work, clock, "too slow"))
    clock.advance(10)
    assert cancelled == [work]
    with pytest.raises(TimedOut, match="too slow"):
        waiting.result.raiseException()
    waiting.addErrback(lambda failure: failure.trap(TimedOut))


def test_a_caller_that_is_cancelled_cancels_the_work() -> None:
    clock, cancelled = Clock(), []
    work: Deferred[int] = Deferred(cancelled.append)
    waiting = Deferred.fromCoroutine(within(10, work, clock, "too slow"))
    waiting.addErrback(lambda failure: failure.trap(CancelledError))
    waiting.cancel()
    assert cancelled == [work]
    assert clock.getDelayedCalls() == []


def test_news_begins_the_time_anew() -> None:
    clock, work = Clock(), Deferred[int]()
    patience = Patience(10, clock, "too slow")
    patience.heard()  # nothing is awaited yet
    waiting = Deferred.fromCoroutine(patience.wait(work))
    for _ in range(5):
        clock.advance(9)
        patience.heard()
    assert not waiting.called
    clock.advance(10)
    waiting.addErrback(lambda failure: failure.trap(TimedOut))
    assert waiting.result is TimedOut
    patience.heard()
