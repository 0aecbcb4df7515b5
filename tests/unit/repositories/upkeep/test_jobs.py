"""Jobs end in the catalog however they end, and a stop comes in between nothing."""

import pytest
import pytest_twisted
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from pkgrepo.repositories.upkeep.jobs import Jobs
from tests.support.catalog import HeldCatalog
from tests.support.repositories import FixedClock, now
from tests.support.server import no_failures


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
async def test_a_stop_breaks_off_what_works(jobs):
    await begin(jobs, Work())
    await jobs.stopService()
    assert ended(jobs) == ("failed", {"errors": ["the server was stopped"]})


@pytest_twisted.ensureDeferred
async def test_a_stop_waits_for_an_end_that_is_being_noted(jobs, catalog):
    work = Work()
    await begin(jobs, work)
    catalog.holds = True
    work.done.callback({"count": 1})
    stopped = jobs.stopService()
    assert not stopped.called
    catalog.let_go()
    await stopped
    assert ended(jobs) == ("done", {"count": 1})


@pytest_twisted.ensureDeferred
async def test_a_caller_that_leaves_at_once_has_begun_the_job(jobs, catalog):
    work, catalog.holds = Work(), True
    caller = begin(jobs, work)
    caller.cancel()
    with pytest.raises(CancelledError):
        await caller
    catalog.let_go()
    work.done.callback({})
    assert ended(jobs) == ("done", {})


@pytest_twisted.ensureDeferred
async def test_a_job_that_begins_during_the_stop_is_broken_off(jobs, catalog):
    catalog.holds = True
    caller = begin(jobs, Work())
    await jobs.stopService()
    catalog.let_go()
    await caller
    assert ended(jobs)[0] == "failed"
