"""A process that is killed during uploads: acknowledged blobs are complete, and nothing else remains."""

import os
import signal

import pytest
import pytest_twisted

from tests.support.blob_checks import (
    FUTURE,
    assert_promises_kept,
    assert_visible_is_whole,
    files_below,
    read_promises,
    start_child,
)
from tests.support.blob_stores import FilesystemCase

pytestmark = pytest.mark.faults


@pytest.fixture
def case(tmp_path):
    return FilesystemCase(tmp_path / "store")


@pytest_twisted.async_yield_fixture
async def store(case):
    yield await case.start()
    await case.stop()


@pytest.mark.parametrize("kind", ["unnamed", "named"])
@pytest.mark.parametrize("acknowledged", [1, 23, 60])
async def test_a_killed_process_loses_no_acknowledged_blob_and_leaves_no_temporary_file(
    case, store, kind, acknowledged
):
    child = start_child(case.root, kind)
    lines = [child.stdout.readline() for _ in range(1 + acknowledged)]
    os.kill(child.pid, signal.SIGKILL)
    lines += child.stdout.readlines()
    assert child.wait() == -signal.SIGKILL, child.stderr.read()
    child.stdout.close()
    child.stderr.close()
    promises = read_promises(lines)

    await store.sweep_uploads(FUTURE, {promise["upload"] for promise in promises if "upload" in promise})
    assert await assert_visible_is_whole(store) >= sum("locator" in promise for promise in promises)
    await assert_promises_kept(store, promises)
    assert list((case.root / "uploads").iterdir()) == []
    assert files_below(case.root / "uploads") == []
