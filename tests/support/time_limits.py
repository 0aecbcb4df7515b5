"""
Ends tests at their time limit also while they wait in the reactor, and code that holds the reactor up.

pytest-timeout raises in the code that runs when the time is over. While a test waits for a Deferred, that is the
reactor, which logs what is raised and goes on: the test would wait for ever. pytest-twisted runs the tests themselves
in the reactor, too: one that is stopped in there without an end would hold up all that run after it.

A process whose second test is late has something that holds up its tests, such as a server or threads that they share.
Where several processes run tests, it ends, and another one runs the tests that it had left.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import greenlet
import pytest
import pytest_timeout
import pytest_twisted
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from tests.support.timeouts import TIMEOUT_S


class _Wait:
    """pytest's greenlet waits for a result, while the reactor has the thread."""

    def __init__(self) -> None:
        self.waits = greenlet.getcurrent()


_waiting: list[_Wait] = []  # at most one
_late: set[str] = set()  # tests of this process; see L{LateTests}


def limit_waits() -> None:
    """Apply this to the tests of this process."""
    pytest_twisted.blockon_default = _wait_for
    if pytest_timeout.timeout_sigalrm is _fail:
        pytest_timeout.timeout_sigalrm = _fail_where_it_waits


_fail = pytest_timeout.timeout_sigalrm


def _fail_where_it_waits(item: pytest.Item, settings: Any) -> None:
    """Handle the signal of the time limit; the same limit begins for what the test's fixtures do at the end."""
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    _note_late(item)
    item.add_report_section("call", "what other threads did at the time limit", _other_threads())
    try:
        _fail(item, settings)
    except pytest.fail.Exception as failed:
        if not _waiting or greenlet.getcurrent() is _waiting[-1].waits:
            raise
        wait = _waiting[-1]
        if _is_idle():
            wait.waits.throw(failed)  # the reactor goes on from here at the next wait
            return
        # What runs in the reactor ends here. That ends the test, if it is the test's; otherwise the test still waits.
        pytest_twisted._instances.reactor.callLater(0, _end, wait, failed)
        raise


class LateTests:
    """A plugin that notes what failed after it had waited for as long as tests wait for anything."""

    def __init__(self, late_s: float = TIMEOUT_S) -> None:
        self.late_s = late_s

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Make the report of a part of a test."""
        report = yield
        if report.failed and call.duration >= self.late_s:
            _note_late(item)
        return report


def _note_late(item: pytest.Item) -> None:
    _late.add(item.nodeid)
    if len(_late) > 1 and hasattr(item.config, "workerinput"):
        _end_process(item)


def _end_process(item: pytest.Item) -> None:
    """End this process and those that it started, and theirs, at once."""
    with item.config.pluginmanager.get_plugin("capturemanager").global_and_fixture_disabled():
        print(f"{item.nodeid} is the second late test of this process, which ends.", file=sys.stderr)
        print("Here:", "".join(traceback.format_stack()), _other_threads(), sep="\n", file=sys.stderr, flush=True)
    for each in _descendants(os.getpid()):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    os._exit(1)


def _descendants(pid: int) -> list[int]:
    """The processes that a process has started, and theirs; those whose parent has ended are not found."""
    found: list[int] = []
    for each in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has ended since
            found += map(int, each.read_text().split())
    return [*found, *(below for child in found for below in _descendants(child))]


def _other_threads() -> str:
    names = {each.ident: each.name for each in threading.enumerate() if each is not threading.current_thread()}
    found = ((names[ident], frame) for ident, frame in sys._current_frames().items() if ident in names)
    return "\n".join(f"{name}:\n{''.join(traceback.format_stack(frame))}" for name, frame in found)


def _is_idle() -> bool:
    """Whether the signal came while the reactor waits for events."""
    frame = sys._getframe()
    while frame.f_back and frame.f_globals["__name__"] in (__name__, pytest_timeout.__name__):
        frame = frame.f_back
    return frame.f_code.co_name in ("doPoll", "doSelect")


def _end(wait: _Wait, failed: BaseException) -> None:
    if wait in _waiting:
        wait.waits.throw(failed)


def _wait_for(result: Deferred[Any]) -> Any:
    """Run the reactor until there is a result, as pytest-twisted does; a wait that was ended ignores it."""
    current, reactor, found = greenlet.getcurrent(), pytest_twisted._instances.gr_twisted, []

    def fire(value: object) -> None:
        found.append(value)
        if ended or current is greenlet.getcurrent():
            return
        current.switch(found)

    ended = False
    result.addCallbacks(fire, fire)
    if not found:
        _waiting.append(_Wait())
        try:
            given = reactor.switch()
        finally:
            ended = True
            _waiting.pop()
        if given is not found:
            raise RuntimeError("the reactor was stopped, by a signal such as SIGTERM or by a test")
    [value] = found
    if isinstance(value, Failure):
        value.raiseException()
    return value
