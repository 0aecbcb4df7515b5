"""Failures in a row are logged once when they begin and once when they end."""

from __future__ import annotations

import errno
import os

import pytest
from twisted.logger import Logger, capturedLogs, formatEvent

from pkgrepo import failure_log
from pkgrepo.failure_log import QUIET_S, FailureLog


class Scene:
    def __init__(self):
        self.now = 0.0
        self.events = []
        self.failures = FailureLog(Logger("test", observer=self.events.append), "it is broken", clock=lambda: self.now)

    def told(self):
        told, self.events[:] = [(formatEvent(each), "log_failure" in each) for each in self.events], []
        return told


@pytest.fixture
def scene():
    return Scene()


def test_a_full_disk_is_logged_once_without_a_traceback(scene):
    for _ in range(1000):
        scene.failures.failed(OSError(errno.ENOSPC, "no space"))
    scene.failures.failed(RuntimeError("also"), full=True)
    assert scene.told() == [("it is broken: its disk has no room left", False)]


def test_another_failure_is_logged_once_with_a_traceback(scene):
    for _ in range(3):
        scene.failures.failed(OSError(errno.EIO, "the device"))
    assert scene.told() == [("it is broken", True)]


def test_a_failure_with_a_reason_is_logged_once_without_a_traceback(scene):
    for _ in range(3):
        scene.failures.failed(OSError(), reason="it answers 500")
    assert scene.told() == [("it is broken: it answers 500", False)]


def test_it_is_over_when_nothing_has_failed_for_a_while(scene):
    scene.failures.succeeded()
    scene.failures.failed(OSError(errno.ENOSPC, "no space"))
    scene.told()
    scene.now += QUIET_S - 1
    scene.failures.succeeded()
    scene.failures.failed(OSError(errno.ENOSPC, "no space"))
    scene.now += QUIET_S - 1
    scene.failures.succeeded()
    assert scene.told() == []
    scene.now += 1
    scene.failures.succeeded()
    scene.failures.succeeded()
    assert scene.told() == [("no longer: it is broken", False)]
    scene.failures.failed(OSError(errno.ENOSPC, "no space"))
    assert len(scene.told()) == 1


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch):
    monkeypatch.setattr(failure_log, "_logged_at", None)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_the_lack_of_descriptors_is_logged_once(number):
    with capturedLogs() as events:
        assert all(failure_log.is_out_of_descriptors(OSError(number, os.strerror(number))) for _ in range(3))
    (event,) = events
    assert os.strerror(number) in event["log_format"].format(**event)


def test_it_is_logged_again_a_minute_later(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(failure_log.time, "monotonic", lambda: now)
    with capturedLogs() as events:
        failure_log.is_out_of_descriptors(OSError(errno.EMFILE, "too many"))
        now += failure_log.LOG_EVERY_S
        failure_log.is_out_of_descriptors(OSError(errno.EMFILE, "too many"))
    assert len(events) == 2


def test_other_errors_are_not_recognised():
    with capturedLogs() as events:
        assert not failure_log.is_out_of_descriptors(OSError(errno.ENOSPC, "no room"))
        assert not failure_log.is_out_of_descriptors(ValueError("24"))
        assert not failure_log.is_out_of_descriptors(None)
    assert events == []
