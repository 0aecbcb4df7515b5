"""Pauses before second tries."""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from pkgrepo.concurrency.time_limits import TimedOut, within
from pkgrepo.errors import (
    UpstreamFailed,
    UpstreamForbiddenAddress,
    UpstreamLimited,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from pkgrepo.proxy.upstream.limits import Deadline, pause_before_retry, read_retry_after

NOW = 1_700_000_000


@pytest.mark.parametrize(
    ("error", "pauses"),
    [
        (UpstreamUnavailable("main", "why"), [0.25, 0.75]),
        (UpstreamUnavailable("main", "why", 3), [3.5, 3.5]),
        (UpstreamUnavailable("main", "why", 6), [None]),
        (UpstreamLimited("main", "why", 0), [0.5, 0.5]),
        (UpstreamLimited("main", "why", 6), [None]),
        (UpstreamTimeout("main", "why"), [None]),
        (UpstreamForbiddenAddress("main", "why"), [None]),
        (UpstreamFailed("main", "why"), [None]),
    ],
)
def test_pauses(error, pauses):
    assert [pause_before_retry(error, tries + 1, lambda: 0.5) for tries in range(len(pauses))] == pauses


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("0", 0),
        ("120", 120),
        ("9" * 50, 999_999_999),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("²", None),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60),
        ("Tue, 14 Nov 2023 22:14:20", 60),
        ("Tue, 14 Nov 2023 22:00:00 GMT", 0),
        ("Tue, 99 Nov 2023 22:00:00 GMT", None),
    ],
)
def test_retry_after(value, seconds):
    assert read_retry_after(value, NOW) == seconds


class Scene:
    def __init__(self):
        self.clock = Clock()
        self.cancelled = []
        self.work = Deferred(self._cancel)

    def _cancel(self, work):
        self.cancelled.append(work)
        work.errback(OSError("what a connection says when it is aborted"))

    def start(self, wait):
        self.outcomes = []
        self.running = Deferred.fromCoroutine(wait)
        self.running.addBoth(self.outcomes.append)


@pytest.fixture
def scene():
    made = Scene()
    yield made
    assert made.clock.getDelayedCalls() == []


def test_result_in_time(scene):
    scene.start(within(5, scene.work, scene.clock, "slow"))
    scene.work.callback("result")
    assert (scene.outcomes, scene.cancelled) == (["result"], [])


def test_error_in_time(scene):
    scene.start(within(5, scene.work, scene.clock, "slow"))
    scene.work.errback(ValueError())
    assert scene.outcomes[0].check(ValueError)


def test_work_that_is_too_slow_is_cancelled(scene):
    scene.start(within(5, scene.work, scene.clock, "slow"))
    scene.clock.advance(5)
    assert scene.outcomes[0].check(TimedOut)
    assert (str(scene.outcomes[0].value), scene.cancelled) == ("slow", [scene.work])


def test_cancelled_caller_cancels_the_work_and_gets_its_own_error(scene):
    scene.start(within(5, scene.work, scene.clock, "slow"))
    scene.running.cancel()
    assert scene.outcomes[0].check(CancelledError)
    assert scene.cancelled == [scene.work]


@pytest.mark.parametrize(
    ("total_s", "seconds", "reason"), [(3, 3, "document_timeout"), (9, 5, "slow"), (None, 5, "slow")]
)
def test_the_nearer_limit_counts(scene, total_s, seconds, reason):
    deadline = Deadline.start(total_s, scene.clock)
    scene.start(deadline.wait(scene.work, 5, "slow"))
    scene.clock.advance(seconds - 0.5)
    assert scene.outcomes == []
    scene.clock.advance(0.5)
    assert reason in str(scene.outcomes[0].value)


def test_nothing_waits_after_the_deadline(scene):
    deadline = Deadline.start(3, scene.clock)
    scene.clock.advance(4)
    scene.start(deadline.wait(scene.work, 5, "slow"))
    scene.clock.advance(0)
    assert scene.outcomes[0].check(TimedOut)
