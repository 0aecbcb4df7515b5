"""A process that is killed while it stores a file of an upstream leaves nothing, and the next one fetches it anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.blob_checks import FUTURE, PROJECT, files_below
from tests.support.blob_stores import FilesystemCase
from tests.support.upstreams.messages import Fault
from tests.support.upstreams.server import ScriptedUpstream

pytestmark = pytest.mark.faults

MIB = 1024 * 1024


@pytest.mark.parametrize("kind", ["unnamed", "named"])
@pytest.mark.parametrize("moment", ["arriving", "recording"])
async def test_killed_transfer_leaves_no_file(tmp_path: Path, kind: str, moment: str) -> None:
    root = tmp_path / "store"
    with ScriptedUpstream({"/file": os.urandom(3 * MIB)}) as origin:
        if moment == "arriving":
            origin.misbehave("/file", Fault(pause_at=2 * MIB))
        command = [sys.executable, "-m", "tests.support.transfer_child", str(root), origin.url, kind]
        with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            seen = iter(child.stdout.readline, b"")
            assert any(line.decode().strip() == moment for line in seen)
            os.kill(child.pid, signal.SIGKILL)
    if kind == "named":
        assert len(files_below(root / "uploads")) == 1  # so that the sweep has something to do
    case = FilesystemCase(root)
    store = await case.start()
    await store.sweep_uploads(FUTURE, ())
    assert list(await store.scan()) == []
    assert list((root / "uploads").iterdir()) == []
    assert files_below(root / "uploads") == files_below(root / "blobs") == []
    await case.stop()
