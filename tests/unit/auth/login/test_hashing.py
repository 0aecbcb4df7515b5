"""The threads that hash passwords, and the permits that processes share."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import get_native_id
from time import monotonic
from typing import Any

import pytest
import pytest_twisted
from twisted.internet import reactor as _reactor

from pkgrepo.auth.login.hashing import NICE, PERMITS, HashingThreads, hold_permit
from pkgrepo.storage.pools import Pool
from tests.support.timeouts import TIMEOUT_S

ROOT = Path(__file__).parents[4]
reactor: Any = _reactor
HOLDER = """
import sys
from pathlib import Path
from pkgrepo.auth.login.hashing import hold_permit
with hold_permit(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest_twisted.async_yield_fixture
async def pool() -> Any:
    made = Pool(reactor, "password", PERMITS)
    made.start()
    yield made
    await made.stop()


def priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, get_native_id())


async def test_passwords_are_hashed_at_a_lower_priority_than_requests_are_served(pool: Pool) -> None:
    before = priority()
    assert await HashingThreads(pool, None)(priority) == NICE
    assert priority() == before


async def test_a_sandbox_may_forbid_the_priority(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    assert await HashingThreads(pool, None)(lambda: "hashed") == "hashed"


async def test_a_permit_is_returned_also_after_an_error(pool: Pool, tmp_path: Path) -> None:
    threads = HashingThreads(pool, tmp_path / "permits")
    for _ in range(2 * PERMITS):
        with pytest.raises(ZeroDivisionError):
            await threads(lambda: 1 / 0)
    assert await threads(lambda: "hashed") == "hashed"


def test_processes_wait_for_each_others_permits(tmp_path: Path) -> None:
    permits = tmp_path / "permits"
    command = [sys.executable, "-c", HOLDER, str(permits)]
    with ExitStack() as mine:
        for _ in range(PERMITS):
            mine.enter_context(hold_permit(permits))
        other = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        ends_at = monotonic() + TIMEOUT_S
        while not is_waited_for(permits):
            assert not select.select([other.stdout], [], [], 0.01)[0], "it has a permit"
            assert monotonic() < ends_at
    assert other.stdout.readline() == "held\n"
    other.kill()  # with its permit
    other.communicate()
    with ExitStack() as mine:
        for _ in range(PERMITS):
            mine.enter_context(hold_permit(permits))


def is_waited_for(path: Path) -> bool:
    """Whether the kernel has a process wait for a lock on a file."""
    inode = path.stat().st_ino
    lines = Path("/proc/locks").read_text().splitlines()
    return any(f":{inode} " in each for each in lines if "->" in each)


def test_without_locks_there_is_no_waiting(tmp_path: Path) -> None:
    with hold_permit(tmp_path / "absent" / "permits"):
        pass
