"""
Runs of backups as jobs, by a schedule or on request, and what the catalog records of them.

========================  ============================================================================================
state                     what admins see
========================  ============================================================================================
no destination            nothing: backups are made elsewhere
the last one was made     its time; with a check also when that was green
the last one failed       degraded, with the reason; the earlier ones are whole
its check is red          degraded, with what is damaged; the next run reads all copies, and replaces damaged ones
none for two turns of     degraded: the server was down, or the runs are killed
the schedule
========================  ============================================================================================
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from attrs import evolve, frozen
from msgspec.structs import replace
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import Conflict, PkgrepoError
from pkgrepo.interfaces import ICatalog, Reader, Transaction
from pkgrepo.repositories.clock import Clock, from_ms
from pkgrepo.repositories.cron import parse_cron
from pkgrepo.repositories.upkeep.jobs import Jobs, Progress
from pkgrepo.storage.catalog.blobs.gc import BACKUP
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.server.jobs import JobRunning

from .reading import BackupProblem, first_problem
from .writing import BackupOptions, BackupReport, BackupWriter

EVERY_S: Final = 60.0  # the unit of cron texts
STATE: Final = "backup"  # the key of the state in the catalog
FOLLOWED: Final = "backup_schedule"  # the key of the time up to which the schedule was followed, in ms

log = Logger()

Check = Callable[[BackupOptions, str, Progress], Awaitable[tuple[int, Sequence[str]]]]


class BackupState(msgspec.Struct, frozen=True, kw_only=True):
    """
    What is known of backups; times in ms, 0 for never.

    ``made_ms`` is when the newest one was begun, ``failed_ms`` when a run failed since, for a ``reason``.
    ``checked_ms`` is when the last check ended, which fetched so many files (``fetched``) and found ``damage``;
    ``proved_ms`` when the last green one did.
    """

    id: str = ""
    destination: str = ""
    made_ms: int = 0
    took_ms: int = 0
    blobs: int = 0
    bytes: int = 0
    copied: int = 0
    copied_bytes: int = 0
    lost: int = 0
    backups: int = 0
    failed_ms: int = 0
    reason: str = ""
    checked_ms: int = 0
    proved_ms: int = 0
    fetched: int = 0
    damage: tuple[str, ...] = ()


@frozen(kw_only=True)
class BackupPlan:
    """What the settings say: ``options``, when (``schedule``, a cron text), and how to check one; None: not at all."""

    options: BackupOptions
    schedule: str
    check: Check | None


class BackupRuns:
    """Begins backups, and knows of the last ones. ``plan`` is None without a destination."""

    def __init__(
        self, *, catalog: ICatalog, clock: Clock, jobs: Jobs, writer: BackupWriter, plan: BackupPlan | None
    ) -> None:
        self.plan = plan
        self._catalog = catalog
        self._clock = clock
        self._jobs = jobs
        self._writer = writer

    async def begin(self, by: str) -> str:
        """Begin a backup as a job. Returns its id. :raises JobRunning: one runs; :raises Conflict: no destination"""
        if self.plan is None:
            raise Conflict("the server has no destination for backups (backup.destination)")
        return await begin_backup(self._jobs, self._catalog, self._clock, self._writer, self.plan, by)

    async def state(self) -> BackupState:
        """What the catalog records."""
        return await self._catalog.look(read_state)

    async def next_at(self) -> datetime | None:
        """When the next one is due; None without a destination."""
        if self.plan is None:
            return None
        followed_ms = int(await self._catalog.look(settings.get, FOLLOWED) or self._clock.now_ms())
        return parse_cron(self.plan.schedule).next_after(from_ms(followed_ms))

    async def problem(self) -> str:
        """What is wrong with the backups, as a sentence; empty if nothing is."""
        if self.plan is None:
            return ""
        state = await self.state()
        if state.failed_ms:
            return f"the last backup failed: {state.reason}"
        if state.damage:
            return f"the check of backup {state.id} is red: {first_problem(state.damage)}"
        if state.lost:
            return f"{state.lost} blobs are damaged or missing on the server, and in no backup: see pkgrepo verify"
        cron = parse_cron(self.plan.schedule)
        last_ms = state.made_ms or int(await self._catalog.look(settings.get, FOLLOWED) or self._clock.now_ms())
        if cron.next_after(cron.next_after(from_ms(last_ms))) < from_ms(self._clock.now_ms()):
            since = f"since {from_ms(last_ms):%F %H:%M} UTC" if state.made_ms else "yet"
            return f"no backup was made {since}, although backup.schedule is {self.plan.schedule!r}"
        return ""


async def begin_backup(
    jobs: Jobs, catalog: ICatalog, clock: Clock, writer: BackupWriter, plan: BackupPlan, by: str
) -> str:
    """Begin a backup, and its check, as a job. Returns the job's id. :raises JobRunning: one runs already"""

    async def work(progress: Progress) -> Mapping[str, Any]:
        begun_ms = clock.now_ms()
        state: BackupState = await catalog.look(read_state)
        options = evolve(plan.options, renew=plan.options.renew or bool(state.damage))
        try:
            report: BackupReport = await writer.run(options, progress)
        except CancelledError:  # the server stops
            raise
        except Exception as error:
            failed = replace(state, failed_ms=clock.now_ms(), reason=_reason(error))
            await catalog.write(put_state, failed)
            raise
        state = replace(
            state,
            id=report.id,
            destination=options.destination.address,
            made_ms=begun_ms,
            took_ms=clock.now_ms() - begun_ms,
            blobs=report.blobs,
            bytes=report.size,
            copied=report.copied,
            copied_bytes=report.copied_size,
            lost=report.lost,
            backups=report.backups,
            failed_ms=0,
            reason="",
            damage=(),
        )
        await catalog.write(put_state, state)
        result = {**report.to_json(), "errors": lost_sentences(report.lost)}
        if plan.check is not None:
            fetched, damage = await _checked(plan.check, options, report.id, progress)
            now_ms = clock.now_ms()
            proved_ms = state.proved_ms if damage else now_ms
            state = replace(state, checked_ms=now_ms, proved_ms=proved_ms, fetched=fetched, damage=tuple(damage))
            await catalog.write(put_state, state)
            if damage:
                raise BackupProblem(damage)
            result["fetched"] = fetched
        return result

    return await jobs.begin(BACKUP, BACKUP, {"on": plan.options.destination.address, "by": by}, work)


async def _checked(
    check: Check, options: BackupOptions, backup_id: str, progress: Progress
) -> tuple[int, Sequence[str]]:
    """What a check has found; one that could not be made is damage, too."""
    try:
        return await check(options, backup_id, progress)
    except CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the backup is not proved
        log.failure("the check of backup {id} could not be made", id=backup_id)
        return 0, [f"the check could not be made: {_reason(error)}"]


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, PkgrepoError) else "internal error; the server's log has it"


class BackupSchedule(PeriodicTask):
    """
    Looks every minute whether a backup is due, and makes it.

    A restart causes no second one, and one that was due while the server was down is made up for once.
    """

    def __init__(self, runs: BackupRuns, *, catalog: ICatalog, clock: Clock, jobs: Jobs, reactor: IReactorTime) -> None:
        super().__init__(self.run_once, reactor, every_s=EVERY_S, what="backups by schedule")
        self._runs = runs
        self._catalog = catalog
        self._clock = clock
        self._jobs = jobs

    async def run_once(self) -> None:
        """Do the work once; it may be cancelled at any await."""
        now_ms = self._clock.now_ms()
        if await self._catalog.look(settings.get, FOLLOWED) is None:
            await self._catalog.write(settings.put, FOLLOWED, str(now_ms))
            return
        due = await self._runs.next_at()
        if due is None or due > from_ms(now_ms):
            return
        try:
            uid = await self._runs.begin("schedule")
        except JobRunning:
            return  # it is checked again in a minute
        await self._catalog.write(settings.put, FOLLOWED, str(now_ms))
        job = await self._jobs.wait(uid)
        if job.state != "done":
            log.error("the backup failed: {reason}", reason="; ".join(job.result.get("errors", ())))
        else:
            log.info("made backup {id}", id=job.result["id"])


def read_state(r: Reader) -> BackupState:
    """The state in the catalog; one of another version of the program counts as none."""
    text = settings.get(r, STATE)
    try:
        return BackupState() if text is None else msgspec.json.decode(text, type=BackupState)
    except msgspec.MsgspecError:
        return BackupState()


def put_state(tx: Transaction, state: BackupState) -> None:
    """Store the state."""
    settings.put(tx, STATE, msgspec.json.encode(state).decode())


def lost_sentences(lost: int) -> list[str]:
    """What is to be said of blobs that the server had lost before."""
    if not lost:
        return []
    return [f"{lost} blobs are damaged or missing on the server, and not in the backup: see pkgrepo verify"]
