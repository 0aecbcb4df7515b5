from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.server_process import ROOT
from tests.support.timeouts import TIMEOUT_S

TESTS = """
import threading

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from tests.support.time_limits import limit_waits

limit_waits()
late = Deferred()

@pytest_twisted.async_yield_fixture
async def stuck():
    yield
    await Deferred()

@pytest.mark.timeout(1)
@pytest_twisted.ensureDeferred
async def test_waits():
    await late

@pytest_twisted.ensureDeferred
async def test_next():
    late.callback(None)  # its test is over
    await deferLater(reactor, 0, str)

@pytest.mark.timeout(1)
def test_holds_the_reactor_up():
    threading.Thread(target=threading.Event().wait, name="beside it", daemon=True).start()
    threading.Event().wait()

@pytest.mark.timeout(1)
@pytest_twisted.ensureDeferred
async def test_holds_it_up_later():
    await deferLater(reactor, 0, str)
    threading.Event().wait()

@pytest.mark.timeout(1)
@pytest_twisted.ensureDeferred
async def test_a_callback_does():
    reactor.callLater(0, threading.Event().wait)
    await Deferred()

@pytest.mark.timeout(1)
def test_as_usual():
    pass

@pytest.mark.timeout(1)
def test_at_the_end(stuck):
    pass

@pytest_twisted.ensureDeferred
async def test_last():
    reactor.callLater(0, reactor.stop)
    await Deferred()
"""


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "--rootdir", folder, *options, folder],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_a_test_that_waits_or_holds_the_reactor_up_ends_at_its_time_limit_and_the_next_ones_run(tmp_path: Path) -> None:
    (tmp_path / "test_waits.py").write_text(TESTS)
    result = run_pytest(tmp_path)
    summary = result.stdout.partition("short test summary info")[2]
    assert "FAILED test_waits.py::test_waits - Failed: Timeout (>1.0s)" in summary, result.stdout
    assert "PASSED test_waits.py::test_next" in summary, result.stdout
    for name in ("test_holds_the_reactor_up", "test_holds_it_up_later", "test_a_callback_does"):
        assert f"FAILED test_waits.py::{name} - Failed: Timeout (>1.0s)" in summary, result.stdout
    assert "PASSED test_waits.py::test_as_usual" in summary, result.stdout
    assert "what other threads did at the time limit" in result.stdout
    assert "\nbeside it:\n" in result.stdout
    assert "ERROR test_waits.py::test_at_the_end - Failed: Timeout (>1.0s)" in summary, result.stdout
    assert "FAILED test_waits.py::test_last - RuntimeError: the reactor was stopped" in summary, result.stdout
