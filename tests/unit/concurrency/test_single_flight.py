"""Calls that several callers share."""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import globalLogPublisher

from pkgrepo.concurrency.single_flight import SingleFlight, shield
from pkgrepo.errors import Conflict


class Work:
    """Work that ends when the test says so."""

    def __init__(self):
        self.runs = []

    async def __call__(self):
        self.runs.append(Deferred())
        return await self.runs[-1]


def ask(flight, work, key="key"):
    return Deferred.fromCoroutine(flight.run(key, work))


def result_of(deferred):
    results = []
    deferred.addBoth(results.append)
    return results[0]


@pytest.fixture
def logged():
    events = []
    globalLogPublisher.addObserver(events.append)
    yield events
    globalLogPublisher.removeObserver(events.append)


def failures(events):
    return [event["log_failure"].value for event in events if "log_failure" in event]


def test_callers_during_a_call_get_its_result():
    flight, work = SingleFlight(), Work()
    asked = [ask(flight, work) for _ in range(3)]
    assert len(work.runs) == 1
    work.runs[0].callback("done")
    assert [result_of(each) for each in asked] == ["done"] * 3


def test_keys_run_concurrently_and_a_later_call_runs_again():
    flight, work = SingleFlight(), Work()
    one, two = ask(flight, work, 1), ask(flight, work, 2)
    assert len(work.runs) == 2
    work.runs[1].callback("two")
    work.runs[0].callback("one")
    assert (result_of(one), result_of(two)) == ("one", "two")
    ask(flight, work, 1)
    assert len(work.runs) == 3


def test_an_error_reaches_all_callers_and_is_not_kept():
    flight, work = SingleFlight(), Work()
    asked = [ask(flight, work) for _ in range(2)]
    work.runs[0].errback(ValueError("no"))
    for each in asked:
        assert isinstance(result_of(each).value, ValueError)
    again = ask(flight, work)
    work.runs[1].callback("yes")
    assert result_of(again) == "yes"


def test_work_that_ends_at_once_is_no_special_case():
    async def at_once():
        return "now"

    flight = SingleFlight()
    assert result_of(ask(flight, at_once)) == "now"
    assert result_of(ask(flight, at_once)) == "now"


def test_a_cancelled_caller_does_not_cancel_the_call():
    flight, work = SingleFlight(), Work()
    first, second = ask(flight, work), ask(flight, work)
    first.cancel()
    assert isinstance(result_of(first).value, CancelledError)
    third = ask(flight, work)
    assert len(work.runs) == 1
    work.runs[0].callback("done")
    assert (result_of(second), result_of(third)) == ("done", "done")


def test_a_call_goes_on_when_all_callers_are_cancelled():
    flight, work = SingleFlight(), Work()
    only = ask(flight, work)
    only.cancel()
    result_of(only)
    assert not work.runs[0].called
    late = ask(flight, work)
    work.runs[0].callback("done")
    assert result_of(late) == "done"


def test_an_unawaited_call_is_cancelled_if_asked_for(logged):
    flight, work = SingleFlight(cancel_unawaited=True), Work()
    first, second = ask(flight, work), ask(flight, work)
    first.cancel()
    result_of(first)
    assert not work.runs[0].called
    second.cancel()
    result_of(second)
    assert work.runs[0].called
    assert failures(logged) == []
    late = ask(flight, work)
    assert len(work.runs) == 2
    work.runs[1].callback("anew")
    assert result_of(late) == "anew"


def test_a_cancelled_call_that_goes_on_does_not_answer_later_callers():
    flight, work = SingleFlight(cancel_unawaited=True), Work()
    only = ask(flight, lambda: shield(work()))
    only.cancel()
    result_of(only)
    late = ask(flight, work)
    work.runs[0].callback("old")
    assert not late.called
    work.runs[1].callback("new")
    assert result_of(late) == "new"


def test_a_failure_that_nobody_waits_for_is_logged(logged):
    flight, work = SingleFlight(), Work()
    only = ask(flight, work)
    only.cancel()
    result_of(only)
    work.runs[0].errback(ValueError("lost"))
    assert [str(each) for each in failures(logged)] == ["lost"]


def test_shielded_work_is_not_cancelled():
    work = Work()
    waiting = Deferred.fromCoroutine(shield(work()))
    waiting.cancel()
    assert isinstance(result_of(waiting).value, CancelledError)
    assert not work.runs[0].called
    work.runs[0].callback("done")


def test_shielded_work_gives_its_result_and_its_error():
    work = Work()
    good, bad = (Deferred.fromCoroutine(shield(work())) for _ in range(2))
    work.runs[0].callback("done")
    work.runs[1].errback(ValueError("no"))
    assert result_of(good) == "done"
    assert isinstance(result_of(bad).value, ValueError)


def test_the_failure_of_shielded_work_is_logged_when_nobody_waits(logged):
    work = Work()
    waiting = Deferred.fromCoroutine(shield(work()))
    waiting.cancel()
    result_of(waiting)
    work.runs[0].errback(ValueError("lost"))
    assert [str(each) for each in failures(logged)] == ["lost"]


def test_a_refusal_that_nobody_waits_for_is_no_failure(logged):
    work = Work()
    waiting = Deferred.fromCoroutine(shield(work()))
    waiting.cancel()
    result_of(waiting)
    work.runs[0].errback(Conflict("it is there already"))
    assert failures(logged) == []
    assert [str(event["error"]) for event in logged if "error" in event] == ["it is there already"]


async def test_shield_takes_deferreds_too():
    done = Deferred()
    done.callback(3)
    assert await shield(done) == 3
