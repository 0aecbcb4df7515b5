"""Work on deployments goes on without its callers, and is cancelled and awaited when the server stops."""

import pytest
from twisted.internet.defer import CancelledError, Deferred

from pkgrepo.formats.maven.caches import Running, StopWithServer


async def test_a_caller_gets_the_result_or_the_error():
    running = Running()

    async def work():
        return 7

    async def fail():
        raise ZeroDivisionError

    assert await running.start(work()) == 7
    with pytest.raises(ZeroDivisionError):
        await running.start(fail())


async def test_a_caller_that_leaves_does_not_stop_the_work():
    running, gate, ended = Running(), Deferred(), []

    async def work():
        await gate
        ended.append(True)

    waiting = running.start(work())
    waiting.cancel()
    with pytest.raises(CancelledError):
        await waiting
    assert ended == []
    gate.callback(None)
    assert ended == [True]


async def test_a_stop_cancels_the_work_and_waits_for_its_end():
    running, closing, order = Running(), Deferred(), []

    async def work():
        try:
            await Deferred()
        except CancelledError:
            order.append("cancelled")
            await closing
            order.append("ended")

    running.start(work())
    service = StopWithServer(running)
    service.startService()
    stopping = service.stopService()
    assert (order, stopping.called) == (["cancelled"], False)
    closing.callback(None)
    await stopping
    assert order == ["cancelled", "ended"]


async def test_a_stop_without_work_is_done_at_once():
    await Running().stop()
