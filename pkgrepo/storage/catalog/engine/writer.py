"""
The writer thread and its queue of commands.

========  ============================================================================================
state     next
========  ============================================================================================
queued    the writer takes the command into its batch
run       in a savepoint of the batch's transaction; an error undoes this command alone
pending   one COMMIT for the whole batch, which waits for the disk
answered  the result is delivered in the reactor thread, after the COMMIT
========  ============================================================================================

A batch has the commands that are queued when the writer is free, and those that arrive while it runs: concurrent
publishes share one fsync. A crash loses only commands that were not answered. When a commit fails, every command of the
batch fails, and the next batch uses a new connection. The log has one line when failures begin and one when they end,
so callers that get C{StorageFull} or C{StorageFailed} from a write need not log it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw
from attrs import define, field
from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IReactorFromThreads
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.diagnostics.failure_log import FailureLog
from pkgrepo.interfaces import Transaction
from pkgrepo.storage.catalog.server.settings import increment

from .connections import open_writer
from .failures import STORAGE_ERRORS, explain
from .transactions import SqliteTransaction
from .write_lock import WriteLock

log = Logger()

T = TypeVar("T")
P = ParamSpec("P")

BATCH = 256  # commands; limits how many fail with one commit
BATCH_S = 0.02  # seconds of commands; writers of other processes wait that long for the lock
CHECKPOINT_IDLE = 1000  # pages in the log from which it is checkpointed when the queue is empty; 8 MiB
CHECKPOINT_BUSY = 8000  # pages from which it is checkpointed although commands wait; 64 MiB
FAILED_COMMITS = "failed_commits"  # the setting that counts them
IDLE_S = 0.05  # seconds without a command before a checkpoint


@define(eq=False)
class _Command:
    run: Callable[[Transaction], Any]
    outcome: Deferred[Any]
    result: Any = None
    error: Exception | None = None

    def answer(self) -> None:
        if self.error is None:
            self.outcome.callback(self.result)
        else:
            self.outcome.errback(Failure(self.error))


@define(eq=False)
class _Shutdown:
    """Ends the queue: ``drained`` fires when all commands are answered, ``closed`` after ``close`` was set."""

    drained: Deferred[None] = field(factory=Deferred)
    close: threading.Event = field(factory=threading.Event)
    closed: Deferred[None] = field(factory=Deferred)


class Writer:
    """Runs commands in order on a thread of its own."""

    def __init__(self, path: Path, reactor: IReactorFromThreads) -> None:
        self._path = path
        self._reactor = reactor
        self._queue: SimpleQueue[_Command | _Shutdown] = SimpleQueue()
        self._shutdown = _Shutdown()
        self._running = False
        self._thread = threading.Thread(target=self._run_thread, name="pkgrepo-catalog-writer", daemon=True)
        self._lock = WriteLock(path)
        self._tx: SqliteTransaction | None = None
        self._log_pages = 0
        self._failures = FailureLog(log, "the catalog cannot be written")
        # used by the reactor's thread only:
        self._unanswered = 0
        self._idle_waiters: list[Deferred[None]] = []

    def start(self) -> None:
        """Start the thread; the database must have been created and upgraded before."""
        self._running = True
        self._thread.start()

    def submit(
        self, command: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Deferred[T]:
        """
        Queue a command, and return its result once it is durable.

        Cancelling only drops the result: the command runs anyway.
        """
        if not self._running:
            return fail(RuntimeError("the catalog does not run"))
        outcome: Deferred[T] = Deferred()
        self._unanswered += 1
        self._queue.put(_Command(lambda tx: command(tx, *args, **kwargs), outcome))
        return outcome

    async def wait_idle(self) -> bool:
        """Wait until all queued commands are answered. Returns whether there were any."""
        if not self._unanswered:
            return False
        idle: Deferred[None] = Deferred()
        self._idle_waiters.append(idle)
        await idle
        return True

    def drain(self) -> Deferred[None]:
        """Refuse new commands; fires when all queued commands are answered."""
        self._running = False
        self._queue.put(self._shutdown)
        return self._shutdown.drained

    def close(self) -> Deferred[None]:
        """Close the connection and end the thread, after ``drain``; fires when that is done."""
        self._shutdown.close.set()
        return self._shutdown.closed

    def _run_thread(self) -> None:
        try:
            while not isinstance(first := self._next_or_idle(), _Shutdown):
                if first is None:
                    self._checkpoint_when_idle()
                else:
                    self._batch(first)
            self._reactor.callFromThread(self._shutdown.drained.callback, None)
            self._shutdown.close.wait()
        finally:
            self._disconnect()
            self._lock.close()
        self._reactor.callFromThread(self._shutdown.closed.callback, None)

    def _next_or_idle(self) -> _Command | _Shutdown | None:
        """Return the next item of the queue, or None when a checkpoint is due and the queue was empty for a while."""
        try:
            return self._queue.get(timeout=IDLE_S if self._log_pages >= CHECKPOINT_IDLE else None)
        except Empty:
            return None

    def _batch(self, first: _Command) -> None:
        taken: list[_Command] = []
        try:
            with self._lock.hold():
                self._transaction(first, taken)
                self._reactor.callFromThread(self._answer, taken)
                if self._log_pages >= CHECKPOINT_BUSY:
                    self._checkpoint()
        except (apsw.Error, OSError) as error:
            self._failures.failed(error, full=isinstance(error, apsw.FullError))
            self._disconnect()
            self._overwrite_failed_commit()
            explained = explain(error)
            for command in taken or [first]:
                command.error = command.error or explained
            self._reactor.callFromThread(self._answer, taken or [first])

    def _answer(self, commands: Sequence[_Command]) -> None:
        for command in commands:
            command.answer()
        self._unanswered -= len(commands)
        if not self._unanswered:
            waiters, self._idle_waiters = self._idle_waiters, []
            for idle in waiters:
                idle.callback(None)

    def _transaction(self, first: _Command, taken: list[_Command]) -> None:
        tx = self._connect()
        tx.execute("BEGIN IMMEDIATE")
        until = time.monotonic() + BATCH_S
        command: _Command | None = first
        while command is not None:
            taken.append(command)
            _run(tx, command)
            more = len(taken) < BATCH and time.monotonic() < until
            command = self._next_waiting() if more else None
        with self._lock.count_commit():
            tx.execute("COMMIT")

    def _next_waiting(self) -> _Command | None:
        try:
            found = self._queue.get_nowait()
        except Empty:
            return None
        if isinstance(found, _Command):
            return found
        self._queue.put(found)  # it stays the last item, because nothing is queued after a shutdown
        return None

    def _overwrite_failed_commit(self) -> None:
        """
        Overwrite the pages that a failed commit may have left in the write-ahead log.

        If only its last step failed, the log has the whole transaction. Recovery after a crash would then apply a
        transaction that was answered as failed, and whose blobs have been removed.
        """
        try:
            with self._lock.hold():
                tx = self._connect()
                tx.execute("BEGIN IMMEDIATE")
                increment(tx, FAILED_COMMITS)
                with self._lock.count_commit():
                    tx.execute("COMMIT")
        except (apsw.Error, OSError):
            self._disconnect()

    def _checkpoint_when_idle(self) -> None:
        try:
            with self._lock.hold():
                self._checkpoint()
        except OSError:
            log.failure("the catalog's log could not be copied back")

    def _checkpoint(self) -> None:
        self._log_pages = 0  # until the next commit reports the length of the log
        try:
            self._connect().connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:
            # Nothing is lost: commits stay in the log, and the next checkpoint copies them.
            self._failures.failed(error, full=isinstance(error, apsw.FullError))

    def _connect(self) -> SqliteTransaction:
        if self._tx is None:
            connection = open_writer(self._path)
            connection.set_wal_hook(self._committed)
            self._tx = SqliteTransaction(connection)
        return self._tx

    def _committed(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        self._failures.succeeded()
        return apsw.SQLITE_OK

    def _disconnect(self) -> None:
        tx, self._tx = self._tx, None
        if tx is not None:
            tx.connection.close(force=True)


def _run(tx: SqliteTransaction, command: _Command) -> None:
    tx.execute("SAVEPOINT command")
    try:
        command.result = command.run(tx)
    except STORAGE_ERRORS:
        raise
    except Exception as error:  # noqa: BLE001 - passed on to the caller of the command
        command.error = error
        tx.execute("ROLLBACK TO command")
    tx.execute("RELEASE command")
