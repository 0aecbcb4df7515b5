"""
Writes rows of the audit log: in the transaction of the change that they record, or later from a queue in memory;
and the file with a copy of them.

=============================  ====================================================================================
row                            when it is written
=============================  ====================================================================================
of a change                    in the transaction of the change: both are committed, or neither
of a login, a refusal or a     queued in memory, written within ``FLUSH_S``; a crash loses the queue. While the
failure, by a known user       catalog cannot be written the queue keeps ``QUEUE_LIMIT`` rows; a later row
                               "audit.lost" counts those that did not fit. If the server stops meanwhile, the
                               queue is lost, and the number of rows is logged
of a refusal of an anonymous   counted in memory by action and outcome; one row for each kind every ``COUNTS_S``, so
caller                         that anonymous callers cannot fill the disk
=============================  ====================================================================================

No answer waits for a row, and no request fails because a row cannot be written. Before the log is read through the API,
and when the server stops, the queue and the counts are written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar, TypeVarTuple

import msgspec
from attrs import Factory, define, evolve, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.fair_semaphore import FairSemaphore
from pkgrepo.concurrency.services import spawn
from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.failure_log import FailureLog, is_out_of_descriptors
from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import SYSTEM, Actor, Repository
from pkgrepo.repositories.clock import Clock, from_ms
from pkgrepo.small_files import private_opener, tighten
from pkgrepo.storage.catalog.server.audit import Entry, append_entry, truncate, truncate_detail

log = Logger()

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
P = ParamSpec("P")

REFUSED = "refused"
FAILED = "failed"

FLUSH_S = 1.0  # seconds
COUNTS_S = 300.0  # seconds; with MAX_KINDS, at most some ten thousand rows a day
QUEUE_LIMIT = 1000  # rows; usually about 1 MB
FLUSH_AT = 500  # rows; a queue of this length is written without waiting for FLUSH_S
MAX_KINDS = 50  # pairs of action and outcome that are counted separately in one interval
MAX_ADDRESSES = 20  # addresses that are counted separately in one row


@frozen
class _Row:
    entry: Entry
    at_ms: int


@define
class _Count:
    """Refusals of anonymous callers with one action and outcome; the row has the reason of the ``first``."""

    first: _Row
    count: int = 0
    addresses: dict[str, int] = Factory(dict)

    def add(self, address: str) -> None:
        self.count += 1
        if address not in self.addresses and len(self.addresses) >= MAX_ADDRESSES:
            address = "others"
        self.addresses[address] = self.addresses.get(address, 0) + 1

    def row(self, now_ms: int) -> _Row:
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
        return _Row(evolve(entry, actor=actor, object="", detail=detail), now_ms)


class AuditLog:
    """
    Writes rows to the catalog; ``sink`` is given a copy of each as a line of JSON once the row is durable.

    ``flush_others`` has the other processes of a server write their rows.
    """

    def __init__(
        self,
        catalog: ICatalog,
        clock: Clock,
        reactor: IReactorTime,
        sink: Callable[[bytes], None] | None = None,
        *,
        flush_others: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._flush_others = flush_others
        self._catalog = catalog
        self._clock = clock
        self._sink = sink
        self._queue: list[_Row] = []
        self._counts: dict[tuple[str, str], _Count] = {}
        self._lost = 0
        self._writing = FairSemaphore(1, reactor)

    def enqueue(self, entry: Entry) -> None:
        """Queue or count a row that records no change (see the table above)."""
        row = _Row(
            evolve(entry, object=truncate(entry.object), detail=truncate_detail(entry.detail)), self._clock.now_ms()
        )
        if entry.actor.user_id is None:
            self._count(row)
        elif len(self._queue) < QUEUE_LIMIT:
            self._queue.append(row)
            if len(self._queue) == FLUSH_AT:
                spawn(self.flush(), "rows of the audit log could not be written")
        else:
            self._lost += 1

    async def flush(self) -> None:
        """Write the queue, also when the waiting task is cancelled; rows that cannot be written stay in the queue."""
        await shield(self._write_queue())

    async def flush_all(self) -> None:
        """Write the queues and the counts of refusals of anonymous callers, of all processes."""
        if self._flush_others is not None:
            await self._flush_others()
        await self.flush_own()

    async def flush_own(self) -> None:
        """Write the queue and the counts of this process."""
        counts, self._counts = self._counts, {}
        now_ms = self._clock.now_ms()
        self._queue += [each.row(now_ms) for each in counts.values()]
        await self.flush()

    async def close(self) -> None:
        """Write the queue and the counts for the last time; log how many rows could not be written."""
        await self.flush_own()
        left = len(self._queue) + self._lost
        if left:
            log.error("{count} rows of the audit log are lost: the catalog cannot be written", count=left)

    async def write(
        self, entry: Entry, command: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a write command and write its row in the same transaction: both are committed, or neither."""
        result: T = await self._catalog.write(self.with_row(entry, command), *args, **kwargs)
        self.copy(entry)
        return result

    def with_row(
        self, entry: Entry, command: Callable[Concatenate[Transaction, P], T]
    ) -> Callable[Concatenate[Transaction, P], T]:
        """A command that also writes the row; the caller calls L{copy} once it is committed."""
        now_ms = self._clock.now_ms()

        def run(tx: Transaction, /, *args: P.args, **kwargs: P.kwargs) -> T:
            result = command(tx, *args, **kwargs)
            append_entry(tx, entry, now_ms)
            return result

        return run

    def with_row_of(
        self, entry: Entry, command: Callable[[Transaction, Repository, *Ts, int], T]
    ) -> Callable[[Transaction, Repository, *Ts, int], T]:
        """The same of a command that changes the content of a repository, see L{ContentWriter.change}."""
        now_ms = self._clock.now_ms()

        def run(tx: Transaction, repository: Repository, /, *args: *tuple[*Ts, int]) -> T:
            result = command(tx, repository, *args)
            append_entry(tx, entry, now_ms)
            return result

        return run

    def copy(self, entry: Entry, at_ms: int | None = None) -> None:
        """Pass a row that is durable to the sink, as a line of JSON."""
        if self._sink is None:
            return
        actor = entry.actor
        line = {
            "time": from_ms(self._clock.now_ms() if at_ms is None else at_ms),
            "request_id": truncate(actor.request_id),
            "actor": truncate(actor.name),
            "token_id": actor.token_id,
            "address": truncate(actor.address),
            "action": truncate(entry.action),
            "object": truncate(entry.object),
            "outcome": entry.outcome,
            "detail": truncate_detail(entry.detail),
        }
        self._sink(msgspec.json.encode(line) + b"\n")

    async def _write_queue(self) -> None:
        async with self._writing.hold():
            rows, lost = self._queue, self._lost
            if lost:
                entry = Entry(SYSTEM, "audit.lost", "", FAILED, {"count": lost})
                rows = [*rows, _Row(entry, self._clock.now_ms())]
            if not rows:
                return
            self._queue, self._lost = [], 0
            try:
                await self._catalog.write(_append_all, rows)
            except (StorageFull, StorageFailed):  # the catalog has logged it
                kept = [each for each in rows if each.entry.actor is not SYSTEM] + self._queue
                self._queue, left = kept[:QUEUE_LIMIT], kept[QUEUE_LIMIT:]
                self._lost += lost + len(left)
                return
            for each in rows:
                self.copy(each.entry, each.at_ms)

    def _count(self, row: _Row) -> None:
        kind = (row.entry.action, row.entry.outcome)
        if kind not in self._counts and len(self._counts) >= MAX_KINDS:
            kind = ("other", row.entry.outcome)
            row = evolve(row, entry=evolve(row.entry, action="other"))
        self._counts.setdefault(kind, _Count(row)).add(row.entry.actor.address)


def _append_all(tx: Transaction, rows: list[_Row]) -> None:
    for each in rows:
        append_entry(tx, each.entry, each.at_ms)


class AuditFile:
    """
    Appends lines to a file that is opened for each line, so that log rotation may rename it at any time.

    A line is written to the page cache, which takes microseconds, without fsync. A line that cannot be written is lost
    and the failure is logged: the catalog has the row.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failures = FailureLog(log, f"lines cannot be written to {path}")

    def restrict_permissions(self) -> None:
        """Restrict an existing file to its owner; earlier releases created it with wider permissions."""
        tighten(self._path)

    def append(self, line: bytes) -> None:
        """Append one line, which ends with a line feed."""
        try:
            with open(self._path, "ab", opener=private_opener) as file:
                file.write(line)
        except OSError as error:
            if not is_out_of_descriptors(error):
                self._failures.failed(error)
        else:
            self._failures.succeeded()
