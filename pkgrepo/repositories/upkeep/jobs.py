"""Jobs: work that continues after the request that started it, and how its progress is reported."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from attrs import asdict, define
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.services import Service
from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import ICatalog
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.server import jobs
from pkgrepo.storage.catalog.server.jobs import Job
from pkgrepo.storage.process_lock import KeyLeases

MOST_PARTS: Final = 50  # parts that are kept; the oldest are forgotten first

log = Logger()
LEASE_S = 60  # seconds without renewal until a job counts as dead
RENEW_S = 15.0  # seconds; three renewals may come late
NOTE_S = 2.0  # seconds between two writes of a job's progress, which people watch


class Progress(Protocol):
    """Called by long work; implemented by what shows the progress."""

    def begin(self, label: str, total: int) -> None:
        """Begin a part of ``total`` steps, 0 if the number is not known."""

    def step(self, count: int = 1) -> None:
        """Count finished steps."""

    def end(self) -> None:
        """End the part."""


class NoProgress:
    """Ignores all progress."""

    def begin(self, label: str, total: int) -> None:
        """Do nothing."""

    def step(self, count: int = 1) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""


@define
class Part:
    """A part of the work: ``done`` of ``total`` steps (0: not known). ``ended_ms`` is None while it runs."""

    label: str
    total: int
    begun_ms: int
    done: int = 0
    ended_ms: int | None = None


class JobProgress:
    """Keeps the parts that work has begun; ``changed`` tells whether they have changed since the last ``to_json``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._parts: list[Part] = []
        self.changed = False

    def begin(self, label: str, total: int) -> None:
        """Begin a part; the oldest of more than ``MOST_PARTS`` is forgotten."""
        self._parts = [*self._parts[1 - MOST_PARTS :], Part(label, total, self._clock.now_ms())]
        self.changed = True

    def step(self, count: int = 1) -> None:
        """Count finished steps of the last part."""
        self._parts[-1].done += count
        self.changed = True

    def end(self) -> None:
        """Note the time at which the last part ended."""
        self._parts[-1].ended_ms = self._clock.now_ms()
        self.changed = True

    def to_json(self) -> list[Mapping[str, Any]]:
        """Return the form in which the job's row stores them."""
        self.changed = False
        return [asdict(each) for each in self._parts]


Work = Callable[[Progress], Awaitable[Mapping[str, Any]]]


class Jobs(Service):
    """Runs jobs in this process; the catalog has the jobs of all processes. A stop cancels those of this process."""

    def __init__(
        self, *, catalog: ICatalog, clock: Clock, reactor: IReactorTime, leases: KeyLeases | None = None
    ) -> None:
        self._catalog = catalog
        self._clock = clock
        self._reactor = reactor
        self._leases = leases
        self._holder = "" if leases is not None else secrets.token_hex(8)
        self._stopping = False
        self._running: dict[str, Deferred[None]] = {}
        self._work: dict[str, Deferred[Mapping[str, Any]]] = {}
        self._cancelled: set[str] = set()
        self._waiting: dict[str, list[Deferred[None]]] = {}

    def stopService(self) -> Deferred[Any]:
        """Cancel the running jobs; each is recorded as failed."""
        super().stopService()
        self._stopping = True
        running = list(self._running.values())
        for work in list(self._work.values()):  # not the whole job: recording its end must not be cancelled
            work.cancel()
        return DeferredList(running)

    async def begin(self, kind: str, key: str, data: Mapping[str, Any], work: Work) -> str:
        """
        Start work whose result, and progress meanwhile, are stored with the job. Returns the job's id.

        The job also starts if the caller is cancelled meanwhile.

        :raises JobRunning: a job of this kind and key runs in some process
        """
        return await shield(self._begin(kind, key, data, work))

    async def _begin(self, kind: str, key: str, data: Mapping[str, Any], work: Work) -> str:
        if self._leases is not None and not self._holder:  # of this process, which may be a fork
            self._holder = self._leases.mark_alive()
        uid = str(uuid.uuid4())
        try:
            await self._add(uid, kind, key, data)
        except jobs.JobRunning as error:
            if not await self._end_if_lost(error.job):
                raise
            await self._add(uid, kind, key, data)
        self._waiting[uid] = []
        self._running[uid] = Deferred.fromCoroutine(self._run(uid, work))
        self._running[uid].addErrback(_report_unnoted)
        self._running[uid].addBoth(self._ended, uid)
        if self._stopping and uid in self._work:
            self._work[uid].cancel()
        return uid

    async def _add(self, uid: str, kind: str, key: str, data: Mapping[str, Any]) -> None:
        now_ms = self._clock.now_ms()
        await self._catalog.write(
            jobs.begin_job,
            uid=uid,
            kind=kind,
            key=key,
            data=data,
            holder=self._holder,
            until_ms=now_ms + LEASE_S * 1000,
            now_ms=now_ms,
        )

    async def _end_if_lost(self, job: Job) -> bool:
        """End a job whose process was killed, as far as that is known before its lease ends; whether that is so."""
        holder = await self._catalog.look(jobs.find_holder, job.uid)
        if self._leases is None or not self._leases.is_over(holder):
            return False
        await self._catalog.write(jobs.end_job_of, job.uid, holder, self._clock.now_ms())
        return True

    async def wait(self, uid: str, seconds: float | None = None) -> Job:
        """Wait until a job has ended, or for ``seconds`` at most, and return the job."""
        waiting = self._waiting.get(uid)
        if waiting is not None and seconds != 0:
            mine: Deferred[None] = Deferred()
            waiting.append(mine)
            late = None if seconds is None else self._reactor.callLater(seconds, self._leave, waiting, mine)
            try:
                await mine
            finally:
                if mine in waiting:
                    waiting.remove(mine)
                if late is not None and late.active():
                    late.cancel()
        return await self._catalog.look(jobs.get_job, uid)

    async def cancel(self, uid: str) -> Job:
        """
        End a job, in whatever process it runs: there it ends when its progress or its lease is next noted.

        :raises NotFound: there is no such job; :raises Conflict: it has ended
        """
        await self._catalog.write(jobs.cancel_job, uid, self._clock.now_ms())
        self._stop_work(uid)
        return await self.wait(uid, NOTE_S)

    async def find(self, uid: str) -> Job | None:
        """Return the job with this id, in whatever process it runs, or None."""
        return await self._catalog.look(jobs.find_job, uid)

    async def list_page(self, **wanted: Any) -> list[Job]:
        """A page of the jobs of all processes, see L{jobs.list_jobs}."""
        return await self._catalog.scan(jobs.list_jobs, **wanted)

    async def last(self, kind: str, key: str) -> Job | None:
        """Return the latest job of this kind and key, or None."""
        return await self._catalog.look(jobs.last_job, kind, key)

    async def _run(self, uid: str, work: Work) -> None:
        progress = JobProgress(self._clock)
        renewal = LoopingCall(self._renew, uid, progress, [self._reactor.seconds()])
        renewal.clock = self._reactor
        renewal.start(NOTE_S, now=False).addErrback(lambda _: None)  # a catalog that fails here fails at the end too
        state, result = "failed", dict[str, Any]()
        try:
            self._work[uid] = Deferred.fromCoroutine(_result(work, progress))
            result = dict(await self._work[uid])
            state = "done"
        except CancelledError:
            state = "cancelled" if uid in self._cancelled else "failed"
            result = {"errors": ["the job was cancelled" if uid in self._cancelled else "the server was stopped"]}
        except PkgrepoError as error:
            result = {"errors": [str(error)]}
        except Exception:  # noqa: BLE001 - reported in the job's result, and logged
            log.failure("job {uid} failed", uid=uid)
            result = {"errors": [f"internal error; the server's log has it under job {uid}"]}
        finally:
            del self._work[uid]
            self._cancelled.discard(uid)
            if renewal.running:
                renewal.stop()
        await self._catalog.write(
            jobs.end_job,
            uid,
            self._holder,
            state=state,
            result=result,
            progress=progress.to_json(),
            now_ms=self._clock.now_ms(),
        )

    async def _renew(self, uid: str, progress: JobProgress, renewed: list[float]) -> None:
        """Note the progress, if there is any, and renew the lease; ``renewed`` has the time of the last time."""
        if not progress.changed and self._reactor.seconds() - renewed[0] < RENEW_S:
            return
        renewed[0] = self._reactor.seconds()
        until_ms = self._clock.now_ms() + LEASE_S * 1000
        if await self._catalog.write(jobs.renew_job, uid, self._holder, until_ms, progress.to_json()):
            self._stop_work(uid)

    def _stop_work(self, uid: str) -> None:
        work = self._work.get(uid)
        if work is not None:
            self._cancelled.add(uid)
            work.cancel()

    def _ended(self, _: object, uid: str) -> None:
        del self._running[uid]
        for each in self._waiting.pop(uid):
            each.callback(None)

    def _leave(self, waiting: list[Deferred[None]], mine: Deferred[None]) -> None:
        if mine in waiting:
            waiting.remove(mine)
            mine.callback(None)


def _report_unnoted(failure: Failure) -> None:
    if failure.check(PkgrepoError):  # the job counts as dead once its lease has ended
        log.warn("a job's end could not be noted: {reason}", reason=str(failure.value))
    else:
        log.failure("a job's end could not be noted", failure=failure)


async def _result(work: Work, progress: Progress) -> Mapping[str, Any]:
    return await work(progress)
