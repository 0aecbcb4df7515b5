"""Services: starting and stopping through the typed classes does what Twisted's own do."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.application.service import IService
from twisted.application.service import Service as TwistedService
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import LogLevel, capturedLogs, formatEvent
from zope.interface.verify import verifyObject

from pkgrepo.concurrency.services import MultiService, PeriodicTask, Service, spawn, wait_for_spawned
from pkgrepo.errors import PkgrepoError, StorageFailed, StorageFull
from tests.support.inprocess_server import no_failures


class Slow(Service):
    """Stops when it is told to."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.stopped: Deferred[None] = Deferred()

    def privilegedStartService(self) -> None:
        super().privilegedStartService()
        self.calls.append("privileged")

    def startService(self) -> None:
        super().startService()
        self.calls.append("start")

    def stopService(self) -> Deferred[Any]:
        assert super().stopService() is None
        self.calls.append("stop")
        return self.stopped


@pytest.mark.parametrize("service", [Service(), MultiService()], ids=["service", "multi"])
def test_a_service_has_the_interface_and_no_privileges_of_its_own(service: TwistedService) -> None:
    assert verifyObject(IService, service)
    service.privilegedStartService()
    assert not service.running
    service.startService()
    assert service.running


def test_a_parent_starts_its_services_and_waits_until_they_have_stopped() -> None:
    parent, child = MultiService(), Slow()
    parent.setName("parent")
    child.setServiceParent(parent)
    parent.privilegedStartService()
    parent.startService()
    ended = parent.stopService()
    assert child.calls == ["privileged", "start", "stop"]
    assert not ended.called
    child.stopped.callback(None)
    assert ended.called
    assert not parent.running
    assert not child.running


def test_a_parent_that_runs_starts_a_service_that_joins_it() -> None:
    parent, child = MultiService(), MultiService()
    parent.startService()
    child.setServiceParent(parent)
    assert child.running
    assert child.parent is parent


class Work:
    """Counts flushes, and fails in those that it is told."""

    def __init__(self, *fails: int) -> None:
        self.count = 0
        self._fails = fails

    async def run(self) -> None:
        self.count += 1
        if self.count in self._fails:
            raise ValueError(self.count)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def periodic(work: Work, clock: Clock, **rest: Any) -> PeriodicTask:
    return PeriodicTask(work.run, clock, every_s=10, what="the work", **rest)


def test_work_runs_at_start_and_then_every_so_often(clock: Clock) -> None:
    work = Work()
    task = periodic(work, clock)
    task.startService()
    assert work.count == 1
    clock.pump([10, 10])
    assert work.count == 3
    task.stopService()
    assert (work.count, clock.getDelayedCalls()) == (3, [])


def test_a_call_under_way_is_cancelled_at_the_stop(clock: Clock) -> None:
    ended: list[object] = []

    async def work() -> None:
        await Deferred()

    task = PeriodicTask(work, clock, every_s=10, what="the work")
    with no_failures():
        task.startService()
        stopping = task.stopService()
        assert stopping is not None
        stopping.addBoth(ended.append)
    assert ended == [None]


def test_the_last_call_replaces_the_first(clock: Clock) -> None:
    work, last = Work(), Work()
    task = periodic(work, clock, last=last.run)
    task.startService()
    assert work.count == 0
    clock.pump([10, 10])
    assert work.count == 2
    ended: list[object] = []
    stopping = task.stopService()
    assert stopping is not None
    stopping.addBoth(ended.append)
    assert (work.count, last.count, ended, clock.getDelayedCalls()) == (2, 1, [None], [])


def test_a_call_that_fails_does_not_end_the_task(clock: Clock) -> None:
    work = Work(1, 3)
    task = periodic(work, clock, last=work.run)
    task.startService()
    clock.pump([10, 10])
    task.stopService()
    assert work.count == 3


async def test_a_spawned_task_that_fails_is_logged() -> None:
    async def fail() -> None:
        raise ValueError

    with capturedLogs() as logged:
        spawn(fail(), "{what} went wrong", what="a test")
    assert [(event["log_format"], event["what"]) for event in logged] == [("{what} went wrong", "a test")]


@pytest.mark.parametrize("error", [StorageFailed("catalog"), StorageFull("main")], ids=["failed", "full"])
async def test_what_a_failing_storage_holds_up_is_one_line_without_a_traceback(
    error: PkgrepoError, clock: Clock
) -> None:
    async def fail() -> None:
        raise error

    with capturedLogs() as logged:
        spawn(fail(), "{what} went wrong", what="a test")
        PeriodicTask(fail, clock, every_s=10, what="a test").startService()
    assert [event["log_level"] for event in logged] == [LogLevel.warn, LogLevel.warn]
    assert not [event for event in logged if "log_failure" in event]
    assert all(str(error) in formatEvent(event) and "a test" in formatEvent(event) for event in logged)


async def test_spawned_tasks_are_waited_for_and_cancelled_when_they_take_long() -> None:
    clock, first, second = Clock(), Deferred[None](), Deferred[None]()

    async def wait(for_what: Deferred[None]) -> None:
        await for_what

    spawn(wait(first), "failed")
    spawn(wait(second), "failed")
    waiting = Deferred.fromCoroutine(wait_for_spawned(clock, 5.0))
    first.callback(None)
    assert not waiting.called
    clock.advance(5.0)
    assert waiting.called
    await wait_for_spawned(clock, 5.0)
