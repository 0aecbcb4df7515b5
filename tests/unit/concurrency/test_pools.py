"""Long computations release the GIL."""

from __future__ import annotations

import threading
import time

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, ensureDeferred, gatherResults

from pkgrepo.concurrency.gil import PAUSE_S, WORK_S, GilReleaser
from pkgrepo.concurrency.pools import DiskQueue, Pool, Pools
from tests.support.timeouts import TIMEOUT_S


@pytest_twisted.async_yield_fixture
async def pools():
    made = Pools(reactor, disk_threads=2, cpu_threads=1)
    made.start()
    yield made
    await made.stop()


async def test_work_runs_on_a_thread_of_the_named_pool(pools):
    names = [await pool(lambda: threading.current_thread().name) for pool in (pools.disk, pools.cpu)]
    assert "pkgrepo-disk" in names[0]
    assert "pkgrepo-cpu" in names[1]


async def test_arguments_results_and_errors_pass_through(pools):
    assert await pools.disk(divmod, 7, 2) == (3, 1)
    assert await pools.disk(int, "ff", base=16) == 255
    with pytest.raises(ZeroDivisionError):
        await pools.disk(divmod, 7, 0)


async def test_a_pool_uses_no_more_threads_than_it_was_given(pools):
    gate, entered, lock = threading.Event(), threading.Semaphore(0), threading.Lock()
    inside = most = 0

    def work() -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        entered.release()
        gate.wait(TIMEOUT_S)
        with lock:
            inside -= 1

    work_in_progress = [pools.disk(work) for _ in range(5)]
    for _ in range(2):
        assert await pools.cpu(entered.acquire, timeout=TIMEOUT_S)
    gate.set()
    for each in work_in_progress:
        await each
    assert most == 2


async def test_every_one_of_many_results_at_once_is_delivered_in_the_reactor_thread(pools):
    threads = set()

    def note(number: int) -> int:
        threads.add(threading.get_ident())
        return number

    assert await gatherResults([pools.disk(int, n).addCallback(note) for n in range(2000)]) == list(range(2000))
    assert threads == {threading.get_ident()}


async def test_calls_made_by_a_callback_are_answered(pools):
    assert await pools.disk(int, "3").addCallback(lambda n: pools.disk(pow, n, 2)) == 9


async def test_a_full_pool_does_not_block_another(pools):
    gate = threading.Event()
    blocked = [pools.disk(gate.wait, TIMEOUT_S) for _ in range(3)]
    assert await pools.cpu(int, "3") == 3
    gate.set()
    for each in blocked:
        assert await each


async def test_an_added_pool_runs_like_the_others(pools):
    assert await pools.add("catalog", 1)(int, "3") == 3


async def test_cancelling_drops_the_result_and_stop_still_waits_for_the_work():
    pool = Pool(reactor, "test", 1)
    pool.start()
    gate, ended = threading.Event(), []

    def work() -> None:
        gate.wait(TIMEOUT_S)
        ended.append(True)

    outcome = pool(work)
    outcome.cancel()
    with pytest.raises(CancelledError):
        await outcome
    stopped = ensureDeferred(pool.stop())
    assert not stopped.called
    gate.set()
    await stopped
    assert ended == [True]


async def test_wait_idle_ends_when_all_calls_are_done(pools):
    assert not await pools.wait_idle()
    gate = threading.Event()
    work = pools.disk(gate.wait, TIMEOUT_S)
    waiters = [ensureDeferred(pools.wait_idle()) for _ in range(2)]
    assert not any(each.called for each in waiters)
    gate.set()
    assert [await each for each in waiters] == [True, True]
    assert not await pools.wait_idle()
    assert await work


async def test_results_are_delivered_before_wait_idle_ends(pools):
    gate = threading.Event()
    result = pools.cpu(gate.wait, TIMEOUT_S)
    waiters = ensureDeferred(pools.cpu.wait_idle()).addCallback(lambda _: result.called)
    gate.set()
    assert await waiters


async def test_a_pool_that_does_not_run_refuses_work():
    pool = Pool(reactor, "test", 1)
    with pytest.raises(RuntimeError, match="test"):
        await pool(int)
    pool.start()
    await pool.stop()
    await pool.stop()
    with pytest.raises(RuntimeError, match="test"):
        await pool(int)


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


def test_the_gil_is_released_after_work_s(monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = [0.0], list[float]()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", pauses.append)
    work = GilReleaser()
    for _ in range(10):
        now[0] += WORK_S / 4
        work.release_if_due()
    assert pauses == [PAUSE_S] * 2
