"""
Rows of the audit log: written with the change that they tell of, or noted when there was none.

=============================  ====================================================================================
row                            when it is written
=============================  ====================================================================================
of a change                    in the change's transaction: both are durable, or neither happened
of a login, a refusal, or a    noted in memory, written within ``FLUSH_S``; a crash loses those of that time. While
failure, by a known caller     the catalog cannot be written they are kept, ``MOST_NOTED`` of them; a row "audit.lost"
                               then counts the others; a stop at such a time loses them, and the log says so
of a refusal of an unknown     counted by action and outcome in memory; one row for each kind every ``SUM_S``, so that
caller                         nobody fills the disk without credentials
=============================  ====================================================================================

So no answer waits for a row, and none fails for want of one. Whoever reads the log, and the stop of the server, has
everything written down first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import msgspec
from attrs import Factory, define, evolve, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.concurrency.fair_semaphore import FairSemaphore
from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import SYSTEM, Actor
from pkgrepo.repositories.clock import Clock, from_ms
from pkgrepo.storage.catalog.server.audit import Entry, append_entry, cut, cut_detail

log = Logger()

T = TypeVar("T")
P = ParamSpec("P")

REFUSED = "refused"
FAILED = "failed"

FLUSH_S = 1.0  # seconds
SUM_S = 300.0  # seconds; at most some ten thousand rows a day, whatever anybody sends
MOST_NOTED = 1000  # rows kept while the catalog cannot be written; some 1 MB as a rule
FLUSH_FROM = 500  # rows that do not wait for FLUSH_S
MOST_KINDS = 50  # pairs of action and outcome that are told apart in one interval
MOST_ADDRESSES = 20  # addresses that are told apart in one row


@frozen
class _Noted:
    entry: Entry
    at_ms: int


@define
class _Sum:
    """What unknown callers were refused, of one kind; ``first`` stands for all."""

    first: _Noted
    count: int = 0
    addresses: dict[str, int] = Factory(dict)

    def add(self, address: str) -> None:
        self.count += 1
        if address not in self.addresses and len(self.addresses) >= MOST_ADDRESSES:
            address = "others"
        self.addresses[address] = self.addresses.get(address, 0) + 1

    def row(self, now_ms: int) -> _Noted:
        if self.count == 1:
            return self.first
        entry = self.first.entry
        sole = len(self.addresses) == 1
        detail = {
            "reason": entry.detail.get("reason", ""),
            "count": self.count,
            "since": from_ms(self.first.at_ms).isoformat(timespec="milliseconds"),
            "addresses": self.addresses,
        }
        actor = Actor(name=entry.actor.name, address=entry.actor.address if sole else "")
        return _Noted(evolve(entry, actor=actor, object="", detail=detail), now_ms)


class AuditTrail:
    """Writes audit lines into the catalog, and a copy to ``sink`` once they are durable."""

    def __init__(
        self, catalog: ICatalog, clock: Clock, reactor: IReactorTime, sink: Callable[[bytes], None] | None = None
    ) -> None:
        self._catalog = catalog
        self._clock = clock
        self._sink = sink
        self._noted: list[_Noted] = []
        self._sums: dict[tuple[str, str], _Sum] = {}
        self._lost = 0
        self._writing = FairSemaphore(1, reactor)

    def note(self, entry: Entry) -> None:
        """Have a line written that tells of no change."""
        noted = _Noted(evolve(entry, object=cut(entry.object), detail=cut_detail(entry.detail)), self._clock.now_ms())
        if entry.actor.user_id is None:
            self._count(noted)
        elif len(self._noted) < MOST_NOTED:
            self._noted.append(noted)
            if len(self._noted) == FLUSH_FROM:
                Deferred.fromCoroutine(self.flush()).addErrback(_log_failure)
        else:
            self._lost += 1

    async def flush(self) -> None:
        """Write what was noted, whoever waits for it; what cannot be written is kept for the next time."""
        await shield(self._write_noted())

    async def sum_up(self) -> None:
        """Write the counts of what unknown callers were refused, too."""
        sums, self._sums = self._sums, {}
        now_ms = self._clock.now_ms()
        self._noted += [each.row(now_ms) for each in sums.values()]
        await self.flush()

    async def close(self) -> None:
        """Write everything down for the last time; the log says how many rows that could not be."""
        await self.sum_up()
        left = len(self._noted) + self._lost
        if left:
            log.error("{count} rows of the audit log are lost: the catalog cannot be written", count=left)

    async def write(
        self, entry: Entry, command: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a write command, with its line in the same transaction: both are durable, or neither happened."""
        result: T = await self._catalog.write(self.audited(entry, command), *args, **kwargs)
        self.copy(entry)
        return result

    def audited(
        self, entry: Entry, command: Callable[Concatenate[Transaction, P], T]
    ) -> Callable[Concatenate[Transaction, P], T]:
        """The command with the line; the caller makes the copy."""
        now_ms = self._clock.now_ms()

        def run(tx: Transaction, /, *args: P.args, **kwargs: P.kwargs) -> T:
            result = command(tx, *args, **kwargs)
            append_entry(tx, entry, now_ms)
            return result

        return run

    def copy(self, entry: Entry, at_ms: int | None = None) -> None:
        """Give a durable line to the sink."""
        if self._sink is None:
            return
        actor = entry.actor
        line = {
            "time": from_ms(self._clock.now_ms() if at_ms is None else at_ms),
            "request_id": cut(actor.request_id),
            "actor": cut(actor.name),
            "token_id": actor.token_id,
            "address": cut(actor.address),
            "action": cut(entry.action),
            "object": cut(entry.object),
            "outcome": entry.outcome,
            "detail": cut_detail(entry.detail),
        }
        self._sink(msgspec.json.encode(line) + b"\n")

    async def _write_noted(self) -> None:
        async with self._writing.hold():
            noted, lost = self._noted, self._lost
            if lost:
                entry = Entry(SYSTEM, "audit.lost", "", FAILED, {"count": lost})
                noted = [*noted, _Noted(entry, self._clock.now_ms())]
            if not noted:
                return
            self._noted, self._lost = [], 0
            try:
                await self._catalog.write(_append_all, noted)
            except (StorageFull, StorageFailed):  # which the catalog has logged
                kept = [each for each in noted if each.entry.actor is not SYSTEM] + self._noted
                self._noted, left = kept[:MOST_NOTED], kept[MOST_NOTED:]
                self._lost += lost + len(left)
                return
            for each in noted:
                self.copy(each.entry, each.at_ms)

    def _count(self, noted: _Noted) -> None:
        kind = (noted.entry.action, noted.entry.outcome)
        if kind not in self._sums and len(self._sums) >= MOST_KINDS:
            kind = ("other", noted.entry.outcome)
            noted = evolve(noted, entry=evolve(noted.entry, action="other"))
        self._sums.setdefault(kind, _Sum(noted)).add(noted.entry.actor.address)


def _log_failure(failure: Failure) -> None:
    log.failure("rows of the audit log could not be written", failure=failure)


def _append_all(tx: Transaction, noted: list[_Noted]) -> None:
    for each in noted:
        append_entry(tx, each.entry, each.at_ms)
