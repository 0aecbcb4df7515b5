"""Services that run in one process at a time."""

from __future__ import annotations

from pathlib import Path

import pytest_twisted
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.composition.exclusive import TRY_S, ExclusiveServices


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


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
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
