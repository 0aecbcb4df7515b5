"""Services that run in one process at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from pkgrepo.composition.processes.exclusive import RELAY_S, TRY_S, WATCH_S, ChangeRelay, CommitWatch, ExclusiveServices


class Work(Service):
    """Ends when ``ending`` fires."""

    def __init__(self) -> None:
        self.ending: Deferred[None] = Deferred()

    def stopService(self) -> Deferred[None]:
        super().stopService()  # type: ignore[no-untyped-call]
        return self.ending


def make(path: Path, clock: Clock) -> tuple[ExclusiveServices, Work]:
    exclusive, work = ExclusiveServices(path, clock), Work()
    work.setServiceParent(exclusive.services)  # type: ignore[no-untyped-call]
    return exclusive, work


async def test_the_second_takes_over_when_the_first_has_stopped(tmp_path: Path) -> None:
    clock = Clock()
    one, work_of_one = make(tmp_path / "lease", clock)
    other, work_of_other = make(tmp_path / "lease", clock)
    one.startService()
    other.startService()
    clock.advance(TRY_S)
    assert [work_of_one.running, work_of_other.running] == [1, 0]
    stopping = one.stopService()
    clock.advance(TRY_S)
    assert not work_of_other.running  # the first one has not ended yet
    work_of_one.ending.callback(None)
    await stopping
    clock.advance(TRY_S)
    assert work_of_other.running
    work_of_other.ending.callback(None)
    await other.stopService()
    assert clock.getDelayedCalls() == []


async def test_one_that_never_had_the_lease_stops_at_once(tmp_path: Path) -> None:
    clock = Clock()
    one, work = make(tmp_path / "lease", clock)
    other, _ = make(tmp_path / "lease", clock)
    one.startService()
    other.startService()
    await other.stopService()
    assert clock.getDelayedCalls() == []
    work.ending.callback(None)
    await one.stopService()


class Follower:
    """Records what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def notify(self, repository: object = None) -> None:
        self.told.append(repository)


class Bus:
    """Has what one process publishes received by another one."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.receive: list[Callable[[bytes], None]] = []

    def publish(self, _topic: str, data: bytes) -> None:
        self.sent.append(data)

    def subscribe(self, _topic: str, receive: Callable[[bytes], None]) -> None:
        self.receive.append(receive)


def make_relay(clock: Clock) -> tuple[ChangeRelay, Follower, Bus]:
    follower, bus = Follower(), Bus()
    registry = SimpleNamespace(find_id={1: "one", 2: "two"}.get)
    untyped: Any = ChangeRelay
    return untyped(follower.notify, registry, bus, clock), follower, bus


def test_changes_of_a_moment_are_told_together_to_the_process_that_shows_them() -> None:
    clock = Clock()
    relay, follower, bus = make_relay(clock)
    _, other_follower, other_bus = make_relay(clock)
    one, two = (SimpleNamespace(id=n) for n in (1, 2))
    for each in (one, two, one):
        relay.notify(each)  # type: ignore[arg-type]
    assert (follower.told, bus.sent) == ([one, two, one], [])
    clock.advance(RELAY_S)
    [sent] = bus.sent
    other_bus.receive[0](sent)
    assert other_follower.told == ["one", "two"]
    clock.advance(RELAY_S)
    assert len(bus.sent) == 1


def test_a_relay_that_stops_sends_what_it_has() -> None:
    clock = Clock()
    relay, _, bus = make_relay(clock)
    relay.startService()
    relay.notify(SimpleNamespace(id=2))  # type: ignore[arg-type]
    relay.stopService()
    assert len(bus.sent) == 1
    assert clock.getDelayedCalls() == []


def test_commits_of_which_nobody_told_are_found() -> None:
    clock, follower = Clock(), Follower()
    generations = [1, 1, 2, 2]
    untyped: Any = CommitWatch
    watch = untyped(SimpleNamespace(generation=lambda: generations.pop(0)), follower.notify, clock)
    watch.startService()
    clock.pump([WATCH_S] * 4)
    assert follower.told == [None, None]
    watch.stopService()
    assert clock.getDelayedCalls() == []


class OtherNodes:
    """Nodes that leave the work to this process while ``free`` is true."""

    def __init__(self) -> None:
        self.free = False
        self.released = 0

    def hold_work(self) -> Deferred[bool]:
        return succeed(self.free)

    def release_work(self) -> Deferred[bool]:
        self.released += 1
        return succeed(True)


async def test_with_several_nodes_it_also_needs_the_right_to_work_for_all(tmp_path: Path) -> None:
    clock, nodes = Clock(), OtherNodes()
    exclusive, work = ExclusiveServices(tmp_path / "lease", clock, nodes), Work()  # type: ignore[arg-type]
    work.setServiceParent(exclusive.services)  # type: ignore[no-untyped-call]
    exclusive.startService()
    assert not work.running
    nodes.free = True
    clock.advance(TRY_S)
    assert work.running
    nodes.free = False
    clock.advance(TRY_S)
    assert not work.running
    nodes.free = True
    clock.advance(TRY_S)
    assert not work.running  # the end of the work of before is awaited
    work.ending.callback(None)
    clock.advance(TRY_S)
    assert work.running
    await exclusive.stopService()
    assert (work.running, nodes.released) == (0, 1)
    assert clock.getDelayedCalls() == []
