from __future__ import annotations

import os
import socket

import pytest
from twisted.internet.task import Clock

from pkgrepo.process.sd_notify import Notifier


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    """The service manager's end, as (environment for the service, receive)."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@pkgrepo-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(name.replace("@", "\0", 1))
        line.setblocking(False)

        def receive() -> list[str]:
            found = []
            while True:
                try:
                    found.append(line.recv(4096).decode())
                except BlockingIOError:
                    return found

        yield {"NOTIFY_SOCKET": name}, receive


def test_readiness_and_the_end_are_told(manager):
    environ, receive = manager
    notifier = Notifier(environ, clock=Clock())
    assert receive() == []
    notifier.ready("serving")
    notifier.stopping()
    notifier.stopped()
    assert receive() == ["READY=1\nSTATUS=serving", "STOPPING=1"]


def test_signs_of_life_come_at_half_the_interval_until_everything_has_ended(manager):
    environ, receive = manager
    clock = Clock()
    notifier = Notifier(environ | {"WATCHDOG_USEC": "10000000", "WATCHDOG_PID": str(os.getpid())}, clock=clock)
    notifier.ready()
    receive()
    clock.pump([4.9])
    assert receive() == []
    clock.pump([0.2, 5])
    assert receive() == ["WATCHDOG=1", "WATCHDOG=1"]
    notifier.stopping()
    clock.pump([5])
    assert receive() == ["STOPPING=1", "WATCHDOG=1"]
    notifier.stopped()
    assert clock.getDelayedCalls() == []


@pytest.mark.parametrize("environ", [{"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "x"}, {}])
def test_a_watchdog_of_another_process_gets_nothing(manager, environ):
    clock = Clock()
    notifier = Notifier(manager[0] | environ, clock=clock)
    notifier.ready()
    assert clock.getDelayedCalls() == []


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "relative"}])
def test_without_a_manager_nothing_happens(environ):
    clock = Clock()
    notifier = Notifier(environ | {"WATCHDOG_USEC": "1000000"}, clock=clock)
    notifier.ready()
    notifier.stopping()
    notifier.stopped()
    assert clock.getDelayedCalls() == []


def test_a_manager_that_went_away_stops_nothing_and_hears_all_when_it_is_back(tmp_path):
    name, clock = str(tmp_path / "notify"), Clock()
    notifier = Notifier({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "10000000"}, clock=clock)
    notifier.ready("serving")
    clock.pump([5, 5])
    assert len(clock.getDelayedCalls()) == 1  # the signs of life go on
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(name)
        line.setblocking(False)
        clock.pump([5])
        assert line.recv(4096) == b"WATCHDOG=1"
    notifier.stopping()
    notifier.stopped()
    assert clock.getDelayedCalls() == []
