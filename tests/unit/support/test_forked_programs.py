from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support import forked_programs
from tests.support.forked_programs import run_pkgrepo

ENVIRON = {"PATH": os.environ["PATH"]}


def test_a_process_that_does_not_fork_any_more_is_replaced(tmp_path: Path) -> None:
    assert run_pkgrepo("--version", environ=ENVIRON, folder=tmp_path).returncode == 0
    forker = forked_programs._forker()
    forker._process.send_signal(signal.SIGSTOP)
    forker._control.settimeout(0.1)
    with pytest.raises(TimeoutError):
        run_pkgrepo("--version", environ=ENVIRON, folder=tmp_path)
    assert forker._process.wait(60) == -signal.SIGKILL
    assert run_pkgrepo("--version", environ=ENVIRON, folder=tmp_path).returncode == 0
