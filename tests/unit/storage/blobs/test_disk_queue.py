import threading

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, gatherResults

from pkgrepo.storage.blobs.disk_queue import DiskQueue
from pkgrepo.storage.pools import Pool
from tests.support.timeouts import TIMEOUT_S


@pytest_twisted.async_yield_fixture
async def pool():
    made = Pool(reactor, "test", 4)
    made.start()
    yield made
    await made.stop()


async def test_calls_run_in_order_and_never_two_at_a_time(pool):
    queue, order, busy = DiskQueue(pool), [], threading.Lock()

    def work(n: int) -> int:
        assert busy.acquire(blocking=False)
        order.append(n)
        busy.release()
        return n

    assert await gatherResults([queue.run(work, n) for n in range(100)]) == list(range(100))
    assert order == list(range(100))


async def test_a_failing_call_does_not_stop_the_following_ones(pool):
    queue = DiskQueue(pool)
    failing, good = queue.run(divmod, 1, 0), queue.run(divmod, 7, 2)
    with pytest.raises(ZeroDivisionError):
        await failing
    assert await good == (3, 1)


async def test_a_cancelled_call_still_runs(pool):
    queue, gate, ran = DiskQueue(pool), threading.Event(), []
    first = queue.run(gate.wait, TIMEOUT_S)
    second = queue.run(ran.append, 1)
    second.cancel()
    with pytest.raises(CancelledError):
        await second
    gate.set()
    assert await first
    assert await queue.run(lambda: list(ran)) == [1]


async def test_a_stopped_pool_fails_queued_calls(pool):
    other = Pool(reactor, "other", 1)
    queue = DiskQueue(other)
    with pytest.raises(RuntimeError, match="other"):
        await queue.run(int)
    other.start()
    assert await queue.run(int, "3") == 3
    await other.stop()
