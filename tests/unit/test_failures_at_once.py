from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.server_process import ROOT
from tests.support.timeouts import TIMEOUT_S

CONFTEST = """
from tests.support.failures_at_once import FailuresAtOnce

def pytest_sessionstart(session):
    if terminal := session.config.pluginmanager.get_plugin("terminalreporter"):
        session.config.pluginmanager.register(FailuresAtOnce(terminal))
"""
# The last test ends the process that runs it, so that no summary is written where that is the only one.
TESTS = """
import os
import pytest

@pytest.fixture
def broken():
    raise ValueError("first line\\nsecond line")

def test_fails():
    assert 1 == 2

def test_passes():
    pass

def test_has_no_fixture(broken):
    pass

def test_ends_the_run():
    os._exit(7)
"""


@pytest.mark.parametrize("processes", ["0", "1"])
def test_what_failed_is_named_before_the_run_ends(tmp_path: Path, processes: str) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(TESTS)
    options = ["-n", processes, "-p", "no:cacheprovider", "--rootdir", tmp_path]
    command = [sys.executable, "-m", "pytest", *options, tmp_path]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    said = [line for line in run.stdout.splitlines() if " failed after " in line]
    assert said[:2] == [
        "test_some.py::test_fails failed after 0 s (call): assert 1 == 2",
        "test_some.py::test_has_no_fixture failed after 0 s (setup): ValueError: first line",
    ], run.stdout
    assert "test_passes failed" not in run.stdout
