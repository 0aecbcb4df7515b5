"""
Static twins that the server keeps up to date: when each is due, and what the catalog records of it.

=====================  ===============================================================================================
state                  when it is written
=====================  ===============================================================================================
never written          at once
written                when an event of its repository came since (of a virtual one or a proxy: any event), but not
                       more often than every ``every_s``; and each day, since rules and rights have no events
failed                 again after ``RETRY_S``, until it succeeds; the server is degraded meanwhile
its settings changed   at once
=====================  ===============================================================================================

The work itself is that of ``pkgrepo export``; see L{pkgrepo.composition.twins}.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from attrs import frozen
from msgspec.structs import replace
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import NotFound, PkgrepoError
from pkgrepo.interfaces import ICatalog, Reader, Transaction
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.upkeep.jobs import Jobs, Progress
from pkgrepo.storage.catalog.packages.events import last_seq, last_seq_of_repository
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.server.jobs import JobRunning

KIND: Final = "twin"  # of the job, whose key is the name of the twin
LOOK_S: Final = 2.0
RETRY_S: Final = 60.0
DAY_S: Final = 86_400.0

log = Logger()


@frozen(kw_only=True)
class TwinPlan:
    """What the settings say of a twin; ``arguments`` are those of ``pkgrepo export`` beside repository and target."""

    name: str
    repository: str
    target: str
    every_s: float
    arguments: Sequence[str] = ()

    @property
    def mark(self) -> str:
        """A digest that changes with the settings."""
        text = "\0".join((self.repository, self.target, *self.arguments))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class TwinState(msgspec.Struct, frozen=True, kw_only=True):
    """
    What is known of a twin; times in ms, 0 for never.

    ``mark`` is that of the settings of the last run, ``seq`` the event up to which it is complete.
    ``failed_ms`` is when a run failed since it was written, for a ``reason``.
    """

    mark: str = ""
    seq: int = 0
    written_ms: int = 0
    took_ms: int = 0
    files: int = 0
    written: int = 0
    removed: int = 0
    withheld: int = 0
    signed: bool = False
    failed_ms: int = 0
    reason: str = ""


class Exported(msgspec.Struct, frozen=True):
    """What ``pkgrepo export`` says of a run; see its documentation."""

    files: int
    written: int
    removed: int
    withheld: int
    signed: bool


Write = Callable[[TwinPlan, Progress], Awaitable[Exported]]


class Twins:
    """The twins of the settings, which ``write`` writes."""

    def __init__(
        self,
        plans: Sequence[TwinPlan],
        write: Write,
        *,
        catalog: ICatalog,
        registry: Registry,
        clock: Clock,
        jobs: Jobs,
    ) -> None:
        self.plans = {each.name: each for each in plans}
        self._write = write
        self._catalog = catalog
        self._registry = registry
        self._clock = clock
        self._jobs = jobs

    async def state(self, name: str) -> TwinState:
        """What the catalog records of a twin."""
        return await self._catalog.look(read_state, name)

    async def begin(self, name: str, by: str) -> str:
        """Begin to write a twin as a job. Returns its id. :raises NotFound: there is none; :raises JobRunning"""
        plan = self.plans.get(name)
        if plan is None:
            raise NotFound("twin", name)

        async def work(progress: Progress) -> Mapping[str, Any]:
            begun_ms, seq = self._clock.now_ms(), await self._last_seq(plan)
            try:
                found = await self._write(plan, progress)
            except CancelledError:  # the server stops
                raise
            except Exception as error:
                known = isinstance(error, PkgrepoError)
                reason = str(error) if known else "internal error; the server's log has it"
                before = await self.state(name)
                state = replace(before, mark=plan.mark, failed_ms=self._clock.now_ms(), reason=reason)
                await self._catalog.write(put_state, name, state)
                raise
            now_ms = self._clock.now_ms()
            fields = msgspec.to_builtins(found)
            took_ms = now_ms - begun_ms
            state = TwinState(mark=plan.mark, seq=seq, written_ms=now_ms, took_ms=took_ms, **fields)
            await self._catalog.write(put_state, name, state)
            return {**fields, "errors": []}

        return await self._jobs.begin(KIND, name, {"on": f"{plan.repository} in {plan.target}", "by": by}, work)

    async def is_due(self, plan: TwinPlan) -> bool:
        """Whether a twin is to be written now; see above."""
        state, now_ms = await self.state(plan.name), self._clock.now_ms()
        if state.mark != plan.mark:
            return True
        if state.failed_ms:
            return now_ms - state.failed_ms >= RETRY_S * 1000
        age_ms = now_ms - state.written_ms
        changed = await self.is_behind(plan)
        return age_ms >= (plan.every_s if changed else DAY_S) * 1000

    async def is_behind(self, plan: TwinPlan) -> bool:
        """Whether the repository has changed since a twin was written."""
        state = await self.state(plan.name)
        return not state.written_ms or await self._last_seq(plan) != state.seq

    async def problem(self) -> str:
        """What is wrong with the twins, as a sentence; empty if nothing is."""
        states = [(name, await self.state(name)) for name in self.plans]
        return "; ".join(f"twin {name} cannot be written: {each.reason}" for name, each in states if each.failed_ms)

    async def _last_seq(self, plan: TwinPlan) -> int:
        """The number of the last event that may have changed the repository."""
        await self._registry.refresh()
        storage, _, name = plan.repository.partition("/")
        repository = self._registry.find(storage, name)
        if repository is None or repository.type != "Hosted":
            return await self._catalog.look(last_seq)
        return await self._catalog.look(last_seq_of_repository, repository.id)


class TwinSchedule(PeriodicTask):
    """Looks every few seconds which twins are due, and writes them, one after the other."""

    def __init__(self, twins: Twins, jobs: Jobs, reactor: IReactorTime) -> None:
        super().__init__(self.run_once, reactor, every_s=LOOK_S, what="keeping twins up to date")
        self._twins = twins
        self._jobs = jobs

    async def run_once(self) -> None:
        """Do the work once; it may be cancelled at any await."""
        for plan in self._twins.plans.values():
            if not await self._twins.is_due(plan):
                continue
            try:
                uid = await self._twins.begin(plan.name, "schedule")
            except JobRunning:
                continue
            job = await self._jobs.wait(uid)
            if job.state != "done":
                reason = "; ".join(job.result.get("errors", ()))
                log.error("twin {name} was not written: {reason}", name=plan.name, reason=reason)


def read_state(r: Reader, name: str) -> TwinState:
    """The state in the catalog; one of another version of the program counts as none."""
    text = settings.get(r, f"{KIND}:{name}")
    try:
        return TwinState() if text is None else msgspec.json.decode(text, type=TwinState)
    except msgspec.MsgspecError:
        return TwinState()


def put_state(tx: Transaction, name: str, state: TwinState) -> None:
    """Store the state."""
    settings.put(tx, f"{KIND}:{name}", msgspec.json.encode(state).decode())
