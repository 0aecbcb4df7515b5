from __future__ import annotations

import io
import json

import pytest
from twisted.logger import Logger, LogPublisher

from pkgrepo.logs import make_observer


def logger_into(file: io.StringIO, **options: str) -> Logger:
    return Logger("room", observer=LogPublisher(make_observer(file, **options)))


def test_a_json_line_holds_message_level_and_scalar_fields():
    file = io.StringIO()
    logger_into(file, style="json", level="info").warn("gone: {name}", name="demo", count=2, what=object())
    (line,) = file.getvalue().splitlines()
    told = json.loads(line)
    assert told.pop("time").endswith("+00:00")
    assert told == {"level": "warn", "logger": "room", "message": "gone: demo", "fields": {"name": "demo", "count": 2}}


def test_a_failure_brings_its_traceback_on_the_same_line():
    file = io.StringIO()
    log = logger_into(file, style="json", level="info")
    try:
        raise RuntimeError("boom\nsecond line")
    except RuntimeError:
        log.failure("it broke")
    (line,) = file.getvalue().splitlines()
    assert "RuntimeError: boom" in json.loads(line)["traceback"]


@pytest.mark.parametrize("style", ["json", "text"])
def test_events_below_the_level_are_left_out(style):
    file = io.StringIO()
    log = logger_into(file, style=style, level="warn")
    log.info("quiet")
    log.error("loud")
    assert "quiet" not in file.getvalue()
    assert "loud" in file.getvalue()
