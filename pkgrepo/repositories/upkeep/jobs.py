"""Work that outlives the request that began it."""

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

LEASE_S = 60  # seconds until a job counts as dead that nobody renews
RENEW_S = 15.0  # seconds; three renewals may come late

Work = Callable[[], Awaitable[Mapping[str, Any]]]


class Jobs(Service):
    """Runs jobs in this process; what all processes run is in the catalog. A stop breaks off what runs here."""

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
        """Break off what runs; each is noted as failed."""
        super().stopService()  # type: ignore[no-untyped-call]
        self._stopping = True
        running = list(self._running.values())
        for work in list(self._work.values()):  # alone: noting how a job ended must not be broken off
            work.cancel()
        return DeferredList(running)

    async def begin(self, kind: str, key: str, data: Mapping[str, Any], work: Work) -> str:
        """
        Start some work, whose result is kept with the job; the job's id.

        A caller that leaves meanwhile has begun it all the same.

        :raises JobRunning: one of the same kind and key runs, here or elsewhere
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
        """The job once it has ended, or as it is after so many seconds."""
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
        """The job of this id, wherever it runs, or None."""
        return await self._catalog.look(jobs.find_job, uid)

    async def last(self, kind: str, key: str) -> Job | None:
        """The job of this kind and key that began last, or None."""
        return await self._catalog.look(jobs.last_job, kind, key)

    async def _run(self, uid: str, work: Work) -> None:
        renewal = LoopingCall(self._renew, uid)
        renewal.clock = self._reactor
        renewal.start(RENEW_S, now=False).addErrback(lambda _: None)  # what fails here fails at the end too
        state, result = "failed", dict[str, Any]()
        try:
            self._work[uid] = Deferred.fromCoroutine(_result(work))
            result = dict(await self._work[uid])
            state = "done"
        except CancelledError:
            result = {"errors": ["the server was stopped"]}
        except PkgrepoError as error:
            result = {"errors": [str(error)]}
        except Exception:  # noqa: BLE001 - whoever asks for the job is told, and so is the log
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
