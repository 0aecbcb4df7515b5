"""A generator that blocks runs on threads in bounded batches, and is closed once nobody reads it."""

import threading

import pytest
import pytest_twisted
from twisted.internet.defer import CancelledError, Deferred

from pkgrepo.formats.maven.deploy.storing import STEP_SIZE, Steps
from tests.support.inprocess_server import until
from tests.support.repositories import started_pools


@pytest_twisted.async_yield_fixture
async def pool():
    pools = started_pools()
    yield pools.cpu
    await pools.stop()


async def read(steps):
    async with steps as batches:
        return [batch async for batch in batches]


async def test_all_items_come_in_order_from_threads(pool):
    threads = set()

    def items():
        for number in range(1000):
            threads.add(threading.current_thread())
            yield number

    batches = await read(Steps(pool, items()))
    assert [item for batch in batches for item in batch] == list(range(1000))
    assert threading.current_thread() not in threads


async def test_a_batch_has_a_bounded_number_of_bytes(pool):
    piece = bytes(STEP_SIZE // 4)
    batches = await read(Steps(pool, (piece for _ in range(10)), step_s=1000.0))
    assert [len(batch) for batch in batches] == [4, 4, 2]


async def test_a_batch_ends_when_its_time_is_over(pool):
    assert await read(Steps(pool, (number for number in range(3)), step_s=-1.0)) == [[0], [1], [2]]


async def test_an_error_is_raised_and_closes_the_generator(pool):
    closed = []

    def items():
        try:
            yield 1
            raise ZeroDivisionError
        finally:
            closed.append(True)

    with pytest.raises(ZeroDivisionError):
        await read(Steps(pool, items()))
    assert closed == [True]


async def test_a_reader_that_is_cancelled_closes_the_generator_after_the_running_call(pool):
    entered, go_on, order = threading.Event(), threading.Event(), []

    def items():
        try:
            entered.set()
            go_on.wait()
            order.append("ran on")
            yield 1
        finally:
            order.append("closed")

    running = Deferred.fromCoroutine(read(Steps(pool, items())))
    await until(entered.is_set)
    running.cancel()
    with pytest.raises(CancelledError):
        await running
    assert order == []
    go_on.set()
    await until(lambda: order == ["ran on", "closed"])
