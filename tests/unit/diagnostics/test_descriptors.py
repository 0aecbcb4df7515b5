from __future__ import annotations

import errno
import os

import pytest
from twisted.logger import capturedLogs

from pkgrepo.diagnostics import descriptors


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch):
    monkeypatch.setattr(descriptors, "_logged_at", None)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_the_lack_of_descriptors_is_logged_once(number):
    with capturedLogs() as events:
        assert all(descriptors.is_out_of_descriptors(OSError(number, os.strerror(number))) for _ in range(3))
    (event,) = events
    assert os.strerror(number) in event["log_format"].format(**event)


def test_it_is_logged_again_a_minute_later(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(descriptors.time, "monotonic", lambda: now)
    with capturedLogs() as events:
        descriptors.is_out_of_descriptors(OSError(errno.EMFILE, "too many"))
        now += descriptors.LOG_EVERY_S
        descriptors.is_out_of_descriptors(OSError(errno.EMFILE, "too many"))
    assert len(events) == 2


def test_other_errors_are_not_recognised():
    with capturedLogs() as events:
        assert not descriptors.is_out_of_descriptors(OSError(errno.ENOSPC, "no room"))
        assert not descriptors.is_out_of_descriptors(ValueError("24"))
        assert not descriptors.is_out_of_descriptors(None)
    assert events == []
