"""The end of every job is recorded in the catalog, also at a stop."""

import pytest
import pytest_twisted
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from pkgrepo.repositories.upkeep.jobs import Jobs
from tests.support.catalog import HeldCatalog
from tests.support.inprocess_server import no_failures
from tests.support.repositories import FixedClock, now


class Work:
    """Work that ends when the test says so."""

    def __init__(self):
        self.done = Deferred()

    async def __call__(self):
        return await self.done


@pytest.fixture
def catalog():
    return HeldCatalog()


@pytest.fixture
def jobs(catalog):
    made = Jobs(catalog=catalog, clock=FixedClock(), reactor=Clock())
    made.startService()
    with no_failures():
        yield made


def begin(jobs, work):
    return Deferred.fromCoroutine(jobs.begin("kind", "key", {}, work))


def ended(jobs):
    job = now(jobs.last("kind", "key"))
    return job.state, dict(job.result)


@pytest_twisted.ensureDeferred
async def test_a_stop_cancels_running_jobs(jobs):
    await begin(jobs, Work())
    await jobs.stopService()
    assert ended(jobs) == ("failed", {"errors": ["the server was stopped"]})


@pytest_twisted.ensureDeferred
async def test_a_stop_waits_until_the_end_of_a_job_is_recorded(jobs, catalog):
    work = Work()
    await begin(jobs, work)
    catalog.holds = True
    work.done.callback({"count": 1})
    stopped = jobs.stopService()
    assert not stopped.called
    catalog.release()
    await stopped
    assert ended(jobs) == ("done", {"count": 1})


@pytest_twisted.ensureDeferred
async def test_a_job_starts_although_its_caller_is_cancelled(jobs, catalog):
    work, catalog.holds = Work(), True
    caller = begin(jobs, work)
    caller.cancel()
    with pytest.raises(CancelledError):
        await caller
    catalog.release()
    work.done.callback({})
    assert ended(jobs) == ("done", {})


@pytest_twisted.ensureDeferred
async def test_a_job_that_begins_during_the_stop_is_cancelled(jobs, catalog):
    catalog.holds = True
    caller = begin(jobs, Work())
    await jobs.stopService()
    catalog.release()
    await caller
    assert ended(jobs)[0] == "failed"
