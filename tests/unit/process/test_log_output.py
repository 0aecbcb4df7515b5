from __future__ import annotations

import errno
import io
import json

import pytest
from twisted.internet import tcp
from twisted.logger import Logger, LogLevel, LogPublisher, PredicateResult

from pkgrepo.failure_log import LOG_EVERY_S
from pkgrepo.process.log_output import AcceptErrorFilter, make_observer


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


def test_one_of_several_processes_leaves_out_what_all_of_them_would_say():
    file = io.StringIO()
    observer = make_observer(file, style="text", level="info", one_of_several=True)
    for namespace, level in [
        ("twisted.internet.base", "info"),
        ("log_legacy", "info"),
        ("log_legacy", "critical"),
        ("pkgrepo.service", "info"),
    ]:
        log = Logger(namespace, observer=LogPublisher(observer))
        log.emit(LogLevel.lookupByName(level), "said: {name} {severity}", name=namespace, severity=level)
    said = [line.partition("said: ")[2] for line in file.getvalue().splitlines()]
    assert said == ["log_legacy critical", "pkgrepo.service info"]


class FullListener:
    def accept(self):
        raise OSError(errno.EMFILE, "too many open files")


class NoReserve:
    def available(self):
        return False


def test_connections_that_cannot_be_accepted_are_told_once():
    file = io.StringIO()
    log = Logger("twisted.internet.tcp.Port", observer=LogPublisher(make_observer(file, style="text", level="info")))
    for _ in range(3):
        assert list(tcp._accept(log, range(2), FullListener(), NoReserve())) == []
    log.info("something else")
    assert file.getvalue().count("EMFILE") == 1
    assert "something else" in file.getvalue()


def test_they_are_told_again_a_minute_later():
    now = 1000.0
    predicate = AcceptErrorFilter(lambda: now)
    event = {"log_namespace": "twisted.internet.tcp.Port", "log_format": "EMFILE encountered; releasing"}
    assert [predicate(event), predicate(event)] == [PredicateResult.maybe, PredicateResult.no]
    now += LOG_EVERY_S
    assert predicate(event) == PredicateResult.maybe
