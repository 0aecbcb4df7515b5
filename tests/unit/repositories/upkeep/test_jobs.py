"""The end of every job is recorded in the catalog, also at a stop."""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from pkgrepo.errors import Conflict
from pkgrepo.repositories.upkeep.jobs import LEASE_S, MOST_PARTS, NOTE_S, Jobs
from pkgrepo.storage.catalog.server.jobs import LOST, JobRunning
from pkgrepo.storage.process_lock import KeyLeases
from tests.support.catalog import HeldCatalog
from tests.support.inprocess_server import no_failures
from tests.support.repositories import FixedClock, now


class Work:
    """Work that ends when the test says so."""

    def __init__(self):
        self.done = Deferred()

    async def __call__(self, progress):
        self.progress = progress
        return await self.done


@pytest.fixture
def catalog():
    return HeldCatalog()


@pytest.fixture
def reactor():
    return Clock()


@pytest.fixture
def jobs(catalog, reactor):
    made = Jobs(catalog=catalog, clock=FixedClock(), reactor=reactor)
    made.startService()
    with no_failures():
        yield made


def begin(jobs, work):
    return Deferred.fromCoroutine(jobs.begin("kind", "key", {}, work))


def ended(jobs):
    job = now(jobs.last("kind", "key"))
    return job.state, dict(job.result)


async def test_a_stop_cancels_running_jobs(jobs):
    await begin(jobs, Work())
    await jobs.stopService()
    assert ended(jobs) == ("failed", {"errors": ["the server was stopped"]})


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


async def test_a_job_starts_although_its_caller_is_cancelled(jobs, catalog):
    work, catalog.holds = Work(), True
    caller = begin(jobs, work)
    caller.cancel()
    with pytest.raises(CancelledError):
        await caller
    catalog.release()
    work.done.callback({})
    assert ended(jobs) == ("done", {})


async def test_a_job_that_begins_during_the_stop_is_cancelled(jobs, catalog):
    catalog.holds = True
    caller = begin(jobs, Work())
    await jobs.stopService()
    catalog.release()
    await caller
    assert ended(jobs)[0] == "failed"


async def test_progress_is_noted_while_the_job_runs(jobs, reactor):
    work = Work()
    uid = await begin(jobs, work)
    work.progress.begin("files", 3)
    work.progress.step(2)
    reactor.advance(NOTE_S)
    assert [(each["label"], each["done"], each["total"]) for each in now(jobs.find(uid)).progress] == [("files", 2, 3)]
    work.progress.end()
    for number in range(MOST_PARTS):
        work.progress.begin(str(number), 0)
    work.done.callback({})
    kept = now(jobs.find(uid)).progress
    assert (len(kept), kept[-1]["label"]) == (MOST_PARTS, str(MOST_PARTS - 1))


async def test_a_job_is_cancelled_once(jobs):
    uid = await begin(jobs, Work())
    assert (await jobs.cancel(uid)).state == "cancelled"
    assert ended(jobs) == ("cancelled", {"errors": ["the job was cancelled"]})
    with pytest.raises(Conflict):
        await jobs.cancel(uid)


async def test_a_job_of_another_process_is_cancelled_when_its_lease_is_next_renewed(jobs, catalog, reactor):
    uid = await begin(jobs, Work())
    other = Jobs(catalog=catalog, clock=FixedClock(), reactor=Clock())
    assert (await other.cancel(uid)).cancel_asked
    assert now(jobs.find(uid)).state == "running"
    reactor.pump([NOTE_S] * 10)
    assert ended(jobs)[0] == "cancelled"


async def test_a_job_whose_process_has_died_is_cancelled_at_once(jobs, catalog):
    uid = await begin(jobs, Work())
    later = FixedClock()
    later.ms += (LEASE_S + 1) * 1000
    job = await Jobs(catalog=catalog, clock=later, reactor=Clock()).cancel(uid)
    assert (job.state, dict(job.result)) == ("cancelled", {"errors": [LOST]})


async def test_a_job_of_a_process_that_was_killed_is_in_nobodys_way(catalog, tmp_path):
    def make():
        return Jobs(catalog=catalog, clock=FixedClock(), reactor=Clock(), leases=KeyLeases(tmp_path / "jobs"))

    dead, other = make(), make()
    uid = await begin(dead, Work())
    for each in (dead, other):
        with pytest.raises(JobRunning):
            await begin(each, Work())
    dead._leases.close()  # as the kernel does
    dead._leases._marks.clear()
    await begin(other, Work())
    job = now(other.find(uid))
    assert (job.state, dict(job.result)) == ("failed", {"errors": [LOST]})
    with pytest.raises(JobRunning):
        await begin(make(), Work())


async def test_a_job_of_another_machine_is_waited_for(catalog, tmp_path):
    elsewhere = Jobs(catalog=catalog, clock=FixedClock(), reactor=Clock(), leases=KeyLeases(tmp_path / "elsewhere"))
    await begin(elsewhere, Work())
    elsewhere._leases.close()
    here = Jobs(catalog=catalog, clock=FixedClock(), reactor=Clock(), leases=KeyLeases(tmp_path / "here"))
    with pytest.raises(JobRunning):
        await begin(here, Work())
