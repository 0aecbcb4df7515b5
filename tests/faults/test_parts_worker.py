"""The process that normalises documents crashes, is killed, takes too long or too much memory, or loses its server."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.defer import ensureDeferred

from pkgrepo.errors import Invalid
from pkgrepo.proxy.parts.jobs import NormalisingFailed
from pkgrepo.proxy.parts.normalising import SMALL
from tests.support.blob_stores import open_descriptors
from tests.support.inprocess_server import assert_reactor_rests, until, watched
from tests.support.parts import NormaliserCase, packument
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
DOCUMENT = packument(3, pad=SMALL)
MEMORY = 512 * 1024 * 1024
# As in a program that was started elsewhere, and finds this one by itself.
EMBEDDING = "import sys; sys.path[:0] = [sys.argv[1]]; from tests.support.parts_parent import main; main(*sys.argv[2:])"

Make = Callable[..., Any]


@pytest_twisted.async_yield_fixture
async def make_case(tmp_path: Path) -> Any:
    before = watched()
    cases: list[NormaliserCase] = []

    async def make(**limits: Any) -> NormaliserCase:
        case = NormaliserCase(tmp_path / "store", **limits)
        cases.append(case)
        await case.start()
        return case

    yield make
    for case in cases:
        await case.stop()
    await assert_reactor_rests(before)
    assert not open_descriptors()


async def assert_works(case: NormaliserCase) -> None:
    assert len(case.entries(await case.run(DOCUMENT))) == 3
    assert len(case.supervisor.pids) == 1


async def test_a_crash_fails_its_job_only(make_case: Make) -> None:
    case = await make_case()
    jobs = [ensureDeferred(case.run(DOCUMENT, function)) for function in ("packument", "crash", "packument")]
    with pytest.raises(NormalisingFailed, match="could not process"):
        await jobs[1]
    for job in (jobs[0], jobs[2]):
        assert len(case.entries(await job)) == 3


async def test_a_killed_worker_is_replaced(make_case: Make, tmp_path: Path) -> None:
    case = await make_case()
    began = tmp_path / "began"
    job = ensureDeferred(case.run(DOCUMENT, "hang", name=str(began)))
    await until(began.exists)
    os.kill(case.supervisor.pids[0], signal.SIGKILL)
    with pytest.raises(NormalisingFailed):
        await job
    await assert_works(case)
    os.kill(case.supervisor.pids[0], signal.SIGKILL)  # it is idle
    await until(lambda: not case.supervisor.pids)
    await assert_works(case)


async def test_a_worker_is_killed_at_the_time_limit(make_case: Make, tmp_path: Path) -> None:
    case = await make_case(time_limit_s=0.01)
    with pytest.raises(Invalid, match=r"longer than 0\.01 seconds"):
        await case.run(DOCUMENT, "hang", name=str(tmp_path / "began"))
    await until(lambda: not case.supervisor.pids)


async def test_the_memory_of_a_worker_is_limited(make_case: Make) -> None:
    case = await make_case(memory=MEMORY)
    with pytest.raises(Invalid, match=f"more than {MEMORY} bytes of memory"):
        await case.run(DOCUMENT, "hog")
    await assert_works(case)


async def test_signals_to_all_processes_of_a_terminal_end_no_job(make_case: Make) -> None:
    case = await make_case()
    await assert_works(case)
    (pid,) = case.supervisor.pids
    for each in (signal.SIGINT, signal.SIGTERM):
        os.kill(pid, each)
    await assert_works(case)
    assert case.supervisor.pids == [pid]


def embed(folder: Path, function: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-c", EMBEDDING, str(ROOT), str(folder), function]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE)


def test_a_program_that_embeds_a_normaliser_has_workers(tmp_path: Path) -> None:
    with embed(tmp_path, "packument") as program:
        output, _ = program.communicate(timeout=TIMEOUT_S)
    assert output == b"3\n"
    assert program.returncode == 0


def test_a_worker_ends_with_its_server(tmp_path: Path) -> None:
    with embed(tmp_path, "hang") as program:
        assert program.stdout is not None
        worker = os.pidfd_open(int(program.stdout.readline()))
        program.kill()
    ended = select.poll()
    ended.register(worker, select.POLLIN)
    assert ended.poll(TIMEOUT_S * 1000)
    os.close(worker)
