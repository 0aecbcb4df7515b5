"""Failures in a row are logged once when they begin and once when they end."""

import errno

import pytest
from twisted.logger import Logger, formatEvent

from pkgrepo.diagnostics.failure_log import QUIET_S, FailureLog


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
