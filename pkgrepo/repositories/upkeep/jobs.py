"""Jobs: work that continues after the request that started it."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import ICatalog
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.server import jobs
from pkgrepo.storage.catalog.server.jobs import Job

log = Logger()

LEASE_S = 60  # seconds without renewal until a job counts as dead
RENEW_S = 15.0  # seconds; three renewals may come late

Work = Callable[[], Awaitable[Mapping[str, Any]]]


class Jobs(Service):
    """Runs jobs in this process; the catalog has the jobs of all processes. A stop cancels those of this process."""

    def __init__(self, *, catalog: ICatalog, clock: Clock, reactor: IReactorTime) -> None:
        self._catalog = catalog
        self._clock = clock
        self._reactor = reactor
        self._holder = secrets.token_hex(8)
        self._stopping = False
        self._running: dict[str, Deferred[None]] = {}
        self._work: dict[str, Deferred[Mapping[str, Any]]] = {}
        self._waiting: dict[str, list[Deferred[None]]] = {}

    def stopService(self) -> Deferred[Any]:
        """Cancel the running jobs; each is recorded as failed."""
        super().stopService()  # type: ignore[no-untyped-call]
        self._stopping = True
        running = list(self._running.values())
        for work in list(self._work.values()):  # not the whole job: recording its end must not be cancelled
            work.cancel()
        return DeferredList(running)

    async def begin(self, kind: str, key: str, data: Mapping[str, Any], work: Work) -> str:
        """
        Start work whose result is stored with the job. Returns the job's id.

        The job also starts if the caller is cancelled meanwhile.

        :raises JobRunning: a job of this kind and key runs in some process
        """
        return await shield(self._begin(kind, key, data, work))

    async def _begin(self, kind: str, key: str, data: Mapping[str, Any], work: Work) -> str:
        uid = str(uuid.uuid4())
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
        self._waiting[uid] = []
        self._running[uid] = Deferred.fromCoroutine(self._run(uid, work))
        self._running[uid].addErrback(_report_unnoted)
        self._running[uid].addBoth(self._ended, uid)
        if self._stopping and uid in self._work:
            self._work[uid].cancel()
        return uid

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

    async def find(self, uid: str) -> Job | None:
        """Return the job with this id, in whatever process it runs, or None."""
        return await self._catalog.look(jobs.find_job, uid)

    async def last(self, kind: str, key: str) -> Job | None:
        """Return the latest job of this kind and key, or None."""
        return await self._catalog.look(jobs.last_job, kind, key)

    async def _run(self, uid: str, work: Work) -> None:
        renewal = LoopingCall(self._renew, uid)
        renewal.clock = self._reactor
        renewal.start(RENEW_S, now=False).addErrback(lambda _: None)  # a catalog that fails here fails at the end too
        state, result = "failed", dict[str, Any]()
        try:
            self._work[uid] = Deferred.fromCoroutine(_result(work))
            result = dict(await self._work[uid])
            state = "done"
        except CancelledError:
            result = {"errors": ["the server was stopped"]}
        except PkgrepoError as error:
            result = {"errors": [str(error)]}
        except Exception:  # noqa: BLE001 - reported in the job's result, and logged
            log.failure("job {uid} failed", uid=uid)
            result = {"errors": [f"internal error; the server's log has it under job {uid}"]}
        finally:
            del self._work[uid]
            renewal.stop()
        await self._catalog.write(jobs.end_job, uid, self._holder, state, result, self._clock.now_ms())

    def _renew(self, uid: str) -> Awaitable[bool]:
        until_ms = self._clock.now_ms() + LEASE_S * 1000
        renewed: Awaitable[bool] = self._catalog.write(jobs.renew_job, uid, self._holder, until_ms)
        return renewed

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


async def _result(work: Work) -> Mapping[str, Any]:
    return await work()
