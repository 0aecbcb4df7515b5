"""Backups by schedule, what is recorded of them, and what admins are told."""

import pytest
from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock as ReactorClock

from pkgrepo.errors import Conflict, StorageFull
from pkgrepo.repositories.backup.runs import BackupPlan, BackupRuns, BackupSchedule
from pkgrepo.repositories.backup.writing import BackupOptions, BackupReport
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.upkeep.jobs import Jobs
from pkgrepo.s3.places import Destination
from pkgrepo.storage.catalog.blobs.gc import BACKUP
from tests.support.catalog import MemoryCatalog
from tests.support.repositories import NOW
from tests.unit.repositories.upkeep.test_gc import StillClock

DAY_MS = 86_400_000


class Scene:
    """A server with a daily schedule; ``error`` and ``damage`` are what the next backup and its check meet."""

    def __init__(self) -> None:
        self.catalog, self.clock = MemoryCatalog(), StillClock(NOW)
        self.reactor = ReactorClock()
        self.jobs = Jobs(catalog=self.catalog, clock=self.clock, reactor=self.reactor)
        self.error = self.check_error = None
        self.damage = []
        self.lost = 0
        self.renewed = []
        options = BackupOptions(destination=Destination(address="/backups"), keep=3)
        self.runs = self.make(BackupPlan(options=options, schedule="30 2 * * *", check=self.check))

    def make(self, plan):
        return BackupRuns(catalog=self.catalog, clock=self.clock, jobs=self.jobs, writer=self, plan=plan)

    async def run(self, options, _progress):
        self.renewed.append(options.renew)
        if self.error is not None:
            raise self.error
        return BackupReport(id=f"backup {len(self.renewed)}", blobs=7, size=70, lost=self.lost, backups=1)

    async def check(self, _options, _id, _progress):
        if self.check_error is not None:
            raise self.check_error
        return 5, self.damage

    async def make_one(self):
        return await self.jobs.wait(await self.runs.begin("test"))

    async def look(self):
        """What the schedule does each minute, with a server that was just started."""
        schedule = BackupSchedule(
            self.runs, catalog=self.catalog, clock=self.clock, jobs=self.jobs, reactor=self.reactor
        )
        await schedule.run_once()


@pytest.fixture
def scene():
    return Scene()


async def test_the_schedule_makes_one_each_night_and_makes_up_for_one(scene):
    await scene.look()
    due = await scene.runs.next_at()
    assert (due.hour, due.minute, scene.renewed) == (2, 30, [])
    scene.clock.ms = int(due.timestamp() * 1000) - 1
    await scene.look()
    assert scene.renewed == []
    scene.clock.ms += 1
    await scene.look()
    await scene.look()
    assert len(scene.renewed) == 1
    scene.clock.ms += 3 * DAY_MS
    await scene.look()
    await scene.look()
    assert len(scene.renewed) == 2


async def test_a_green_run_is_recorded(scene):
    job = await scene.make_one()
    assert (job.state, job.result["fetched"], job.result["errors"]) == ("done", 5, [])
    state = await scene.runs.state()
    assert (state.id, state.blobs, state.bytes, state.destination) == ("backup 1", 7, 70, "/backups")
    assert state.made_ms == state.proved_ms == state.checked_ms == NOW
    assert await scene.runs.problem() == ""


async def test_whatever_ends_a_backup_or_its_check_is_told(scene):
    await scene.make_one()
    scene.check_error = ValueError("a fault")
    assert (await scene.make_one()).state == "failed"
    assert "the check could not be made: internal error" in await scene.runs.problem()
    scene.error = ValueError("a fault")
    assert (await scene.make_one()).state == "failed"
    assert "the last backup failed: internal error" in await scene.runs.problem()
    scene.error, scene.check_error = CancelledError(), None
    before = await scene.runs.state()
    await scene.make_one()
    assert await scene.runs.state() == before, "a stop of the server is no failure of backups"


async def test_a_red_check_fails_the_job_and_the_next_run_reads_all_copies(scene):
    await scene.make_one()
    scene.damage = ["blob a: its bytes have changed", "blob b: its bytes have changed"]
    scene.clock.ms += DAY_MS
    job = await scene.make_one()
    assert (job.state, job.result["errors"]) == ("failed", [f"{scene.damage[0]} (and 1 more problems)"])
    state = await scene.runs.state()
    assert (state.made_ms, state.checked_ms, state.proved_ms) == (NOW + DAY_MS, NOW + DAY_MS, NOW)
    assert await scene.runs.problem() == f"the check of backup backup 2 is red: {scene.damage[0]} (and 1 more problems)"
    scene.damage = []
    await scene.make_one()
    assert scene.renewed == [False, False, True]
    assert await scene.runs.problem() == ""


async def test_a_run_that_fails_leaves_what_is_known_of_the_earlier_one(scene):
    await scene.make_one()
    scene.error = StorageFull("backup in /backups")
    job = await scene.make_one()
    sentence = "storage 'backup in /backups' has no room left"
    assert (job.state, job.result["errors"]) == ("failed", [sentence])
    assert (await scene.runs.state()).id == "backup 1"
    assert await scene.runs.problem() == f"the last backup failed: {sentence}"
    event = scene.catalog.peek(lambda r: r.one("SELECT kind, data FROM event ORDER BY seq DESC LIMIT 1"))
    assert (event[0], sentence in event[1]) == ("backup.finished", True)


async def test_runs_that_never_end_are_noticed(scene):
    await scene.look()
    assert await scene.runs.problem() == ""
    scene.clock.ms += 3 * DAY_MS
    assert (await scene.runs.problem()).startswith("no backup was made yet, although")
    await scene.make_one()
    assert await scene.runs.problem() == ""
    made = f"{from_ms(scene.clock.ms):%F %H:%M}"
    scene.clock.ms += 3 * DAY_MS
    assert (await scene.runs.problem()).startswith(f"no backup was made since {made} UTC")


async def test_what_the_server_has_lost_is_told(scene):
    scene.lost = 2
    job = await scene.make_one()
    assert (job.state, len(job.result["errors"])) == ("done", 1)
    assert (await scene.runs.problem()).startswith("2 blobs are damaged or missing on the server")


async def test_without_a_destination_there_is_nothing_to_do(scene):
    runs = scene.make(None)
    assert (await runs.problem(), await runs.next_at()) == ("", None)
    with pytest.raises(Conflict, match=r"backup\.destination"):
        await runs.begin("test")
    assert await scene.jobs.last(BACKUP, BACKUP) is None
