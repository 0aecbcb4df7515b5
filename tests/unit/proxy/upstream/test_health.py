"""The circuit breaker of an upstream."""

from datetime import UTC, datetime

import pytest
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent

from pkgrepo.errors import UpstreamLimited, UpstreamUnavailable
from pkgrepo.model import UpstreamState
from pkgrepo.proxy.upstream.health import (
    FAILURES,
    FIRST_PAUSE_S,
    LONGEST_LIMIT_S,
    LONGEST_PAUSE_S,
    SUBJECTS,
    Health,
)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def health(clock):
    return Health(
        "main", "mirror.example", clock, jitter=lambda: 0.5, time_of_day=clock.seconds
    )  # pauses as long as the constants say


def fail(health, times=1):
    for _ in range(times):
        with health.attempt():
            health.failed("it refuses connections")


def succeed(health, latency_s=0.25):
    with health.attempt():
        health.succeeded(latency_s)


def test_failures_in_a_row_open_it(health):
    fail(health, FAILURES - 1)
    assert health.state is UpstreamState.CLOSED
    fail(health)
    assert health.state is UpstreamState.OPEN
    with pytest.raises(UpstreamUnavailable, match="5 times in a row; the last time it refuses connections") as caught:
        fail(health)
    assert caught.value.retry_after_s == FIRST_PAUSE_S


def test_a_host_that_accepts_no_connection_opens_it_at_once(health):
    with capturedLogs() as events, health.attempt():
        health.failed("it did not accept a connection within 10 s", is_unreachable=True)
    assert [formatEvent(each) for each in events] == [
        "upstream main at mirror.example failed once: it did not accept a connection within 10 s"
    ]
    with pytest.raises(UpstreamUnavailable, match="it failed once; the last time it did not accept a connection"):
        fail(health)


def test_failures_of_few_packages_do_not_open_it(health):
    for number in range(10 * FAILURES):
        with health.attempt():
            health.failed("it answers 500", subject=f"package {number % (SUBJECTS - 1)}")
    assert health.state is UpstreamState.CLOSED


def test_failures_of_several_packages_open_it(health):
    for number in range(FAILURES):
        assert health.state is UpstreamState.CLOSED
        with health.attempt():
            health.failed("it answers 500", subject=f"package {number % SUBJECTS}")
    assert health.state is UpstreamState.OPEN


def test_packages_that_failed_before_a_success_do_not_count(health):
    for number in range(10 * FAILURES):
        with health.attempt():
            health.failed("it answers 500", subject=f"package {number}")
        if number % (FAILURES - 1) == FAILURES - 2:
            succeed(health)
    assert health.state is UpstreamState.CLOSED


def test_an_answer_with_an_error_shows_that_a_host_can_be_reached_again(health, clock):
    fail(health, FAILURES)
    clock.advance(FIRST_PAUSE_S)
    with health.attempt():
        health.failed("it answers 500", subject="package")
    assert health.state is UpstreamState.CLOSED


def test_probe_of_a_package_that_had_failed_does_not_lengthen_the_pause(health, clock):
    for number in range(FAILURES):
        with health.attempt():
            health.failed("it answers 500", subject=f"package {number}")
    for subject, next_s in (("package 0", FIRST_PAUSE_S), ("package 7", 2 * FIRST_PAUSE_S)):
        clock.advance(FIRST_PAUSE_S)
        with health.attempt():
            health.failed("it answers 500", subject=subject)
        with pytest.raises(UpstreamUnavailable) as caught:
            succeed(health)
        assert caught.value.retry_after_s == next_s
    clock.advance(2 * FIRST_PAUSE_S)
    succeed(health)
    assert health.state is UpstreamState.CLOSED


def test_success_between_failures_keeps_it_closed(health):
    for _ in range(3):
        fail(health, FAILURES - 1)
        succeed(health)
    assert health.state is UpstreamState.CLOSED


def test_one_probe_after_the_pause(health, clock):
    fail(health, FAILURES)
    clock.advance(FIRST_PAUSE_S)
    assert health.state is UpstreamState.HALF_OPEN
    with health.attempt():
        with pytest.raises(UpstreamUnavailable):
            succeed(health)
        health.succeeded(0.1)
    assert health.state is UpstreamState.CLOSED
    fail(health)


def test_pauses_grow_up_to_a_limit_and_start_over_after_a_success(health, clock):
    fail(health, FAILURES)
    pauses = []
    for _ in range(10):
        with pytest.raises(UpstreamUnavailable) as caught:
            succeed(health)
        pauses.append(caught.value.retry_after_s)
        clock.advance(pauses[-1])
        fail(health)
    assert pauses == [2, 4, 8, 16, 32, 64, 120, 120, 120, 120]
    assert pauses[-1] == LONGEST_PAUSE_S
    clock.advance(LONGEST_PAUSE_S)
    succeed(health)
    fail(health, FAILURES)
    with pytest.raises(UpstreamUnavailable) as caught:
        succeed(health)
    assert caught.value.retry_after_s == FIRST_PAUSE_S


def test_failures_of_requests_that_began_before_do_not_lengthen_the_pause(health, clock):
    with health.attempt(), health.attempt():
        fail(health, FAILURES)
        health.failed("it closed the connection")
        health.failed("it closed the connection")
    clock.advance(FIRST_PAUSE_S)
    assert health.state is UpstreamState.HALF_OPEN


def test_cancelled_probe_leaves_room_for_another(health, clock):
    fail(health, FAILURES)
    clock.advance(FIRST_PAUSE_S)
    with pytest.raises(ZeroDivisionError), health.attempt():
        raise ZeroDivisionError
    succeed(health)
    assert health.state is UpstreamState.CLOSED


def test_limited_upstream_is_left_alone_until_then(health, clock):
    health.limited(90)
    clock.advance(30.5)
    with pytest.raises(UpstreamLimited) as caught:
        succeed(health)
    assert caught.value.retry_after_s == 60
    assert health.report().limited_until == datetime.fromtimestamp(90, UTC)
    clock.advance(60)
    succeed(health)
    assert health.report().limited_until is None


def test_no_upstream_can_ask_for_more_than_the_longest_limit(health, clock):
    health.limited(1e9)
    clock.advance(LONGEST_LIMIT_S)
    succeed(health)


def test_report(health, clock):
    new = health.report()
    assert (new.last_error, new.last_success_at, new.last_failure_at, new.latency_s) == (None, None, None, None)
    clock.advance(10)
    fail(health)
    clock.advance(10)
    succeed(health, 0.25)
    report = health.report()
    assert (report.state, report.successes, report.failures) == (UpstreamState.CLOSED, 1, 1)
    assert (report.last_error, report.latency_s) == ("it refuses connections", 0.25)
    assert report.last_failure_at == datetime.fromtimestamp(10, UTC)
    assert report.last_success_at == datetime.fromtimestamp(20, UTC)


def test_log_has_one_line_when_it_fails_and_one_when_it_works_again(health, clock):
    with capturedLogs() as events:
        fail(health, FAILURES)
        for _ in range(3):
            clock.advance(LONGEST_PAUSE_S)
            fail(health)
        clock.advance(LONGEST_PAUSE_S)
        succeed(health)
        succeed(health)
    assert [formatEvent(event) for event in events] == [
        "upstream main at mirror.example failed 5 times in a row: it refuses connections",
        "upstream main at mirror.example answers again",
    ]
