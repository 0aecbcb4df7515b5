"""
Ends tests at their time limit also while they wait in the reactor, and code that holds the reactor up.

pytest-timeout raises in the code that runs when the time is over. While a test waits for a Deferred, that is the
reactor, which logs what is raised and goes on: the test would wait for ever. pytest-twisted runs the tests themselves
in the reactor, too: one that is stopped in there without an end would hold up all that run after it.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from typing import Any

import greenlet
import pytest
import pytest_timeout
import pytest_twisted
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure


class _Wait:
    """pytest's greenlet waits for a result, while the reactor has the thread."""

    def __init__(self) -> None:
        self.waits = greenlet.getcurrent()


_waiting: list[_Wait] = []  # at most one


def limit_waits() -> None:
    """Apply this to the tests of this process."""
    pytest_twisted.blockon_default = _wait_for
    if pytest_timeout.timeout_sigalrm is _fail:
        pytest_timeout.timeout_sigalrm = _fail_where_it_waits


_fail = pytest_timeout.timeout_sigalrm


def _fail_where_it_waits(item: pytest.Item, settings: Any) -> None:
    """Handle the signal of the time limit; the same limit begins for what the test's fixtures do at the end."""
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
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
