"""
The thread that writes, and the queue before it.

========  ============================================================================================
state     what moves it on
========  ============================================================================================
queued    the writer takes the command into its batch
run       within a savepoint of the batch's transaction; an error undoes this command alone
pending   the batch's one COMMIT, which waits for the disk
answered  the result is delivered in the reactor thread, after the COMMIT
========  ============================================================================================

A batch is whatever waits when the writer comes round, and what arrives while it runs: concurrent publishes share one
wait for the disk. A crash loses commands that were not answered, and nothing else. When the disk refuses, every
command of the batch fails, and the connection is made anew for the next. The log says that once, and once that it is
over; so whoever gets C{StorageFull} or C{StorageFailed} from a write need not log it again.
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
from pkgrepo.storage.catalog.server.settings import grow

from .connections import open_writer
from .failures import STORAGE_ERRORS, explain
from .transactions import SqliteTransaction
from .write_lock import WriteLock

log = Logger()

T = TypeVar("T")
P = ParamSpec("P")

BATCH = 256  # commands; bounds what one failing commit takes with it
BATCH_S = 0.02  # seconds of commands; writers of other processes wait that long for their hold
CHECKPOINT_IDLE = 1000  # pages in the log from which it is copied back in a quiet moment; 8 MiB
CHECKPOINT_BUSY = 8000  # pages from which it is copied back although commands wait; 64 MiB
FAILED_COMMITS = "failed_commits"  # the setting that counts them
QUIET_S = 0.05  # seconds without a command are a quiet moment


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
    """End of the queue: ``drained`` fires when everything before it was answered, ``closed`` after ``close`` is set."""

    drained: Deferred[None] = field(factory=Deferred)
    close: threading.Event = field(factory=threading.Event)
    closed: Deferred[None] = field(factory=Deferred)


class Writer:
    """Runs commands, in the order in which they come, on a thread of its own."""

    def __init__(self, path: Path, reactor: IReactorFromThreads) -> None:
        self._path = path
        self._reactor = reactor
        self._queue: SimpleQueue[_Command | _Shutdown] = SimpleQueue()
        self._shutdown = _Shutdown()
        self._running = False
        self._thread = threading.Thread(target=self._run_thread, name="pkgrepo-catalog-writer", daemon=True)
        self._lock = WriteLock(path)
        self._reader: SqliteTransaction | None = None
        self._log_pages = 0
        self._failures = FailureLog(log, "the catalog cannot be written")
        # of the reactor's thread:
        self._unanswered = 0
        self._idle_waiters: list[Deferred[None]] = []

    def start(self) -> None:
        """Begin to work; the database has been made and upgraded before."""
        self._running = True
        self._thread.start()

    def submit(
        self, command: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Deferred[T]:
        """
        The command's result, once it is durable.

        Cancelling only drops the result: the command runs all the same.
        """
        if not self._running:
            return fail(RuntimeError("the catalog does not run"))
        outcome: Deferred[T] = Deferred()
        self._unanswered += 1
        self._queue.put(_Command(lambda tx: command(tx, *args, **kwargs), outcome))
        return outcome

    async def wait_idle(self) -> bool:
        """Wait until every command that was taken is answered; whether there was any."""
        if not self._unanswered:
            return False
        idle: Deferred[None] = Deferred()
        self._idle_waiters.append(idle)
        await idle
        return True

    def drain(self) -> Deferred[None]:
        """Take nothing more; fires when everything taken was answered."""
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
        """What comes next, or None when it is time to use a quiet moment."""
        try:
            return self._queue.get(timeout=QUIET_S if self._log_pages >= CHECKPOINT_IDLE else None)
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
        reader = self._connect()
        reader.execute("BEGIN IMMEDIATE")
        until = time.monotonic() + BATCH_S
        command: _Command | None = first
        while command is not None:
            taken.append(command)
            _run(reader, command)
            more = len(taken) < BATCH and time.monotonic() < until
            command = self._next_waiting() if more else None
        reader.execute("COMMIT")

    def _next_waiting(self) -> _Command | None:
        try:
            found = self._queue.get_nowait()
        except Empty:
            return None
        if isinstance(found, _Command):
            return found
        self._queue.put(found)  # the end of the queue stays its end, since nothing is taken after it
        return None

    def _overwrite_failed_commit(self) -> None:
        """
        Write over what a failed commit may have left in the log.

        When only the last step of it failed, the log holds the whole transaction, and recovery after a crash would
        bring back what everybody was told had failed, and whose blobs are removed by then.
        """
        try:
            with self._lock.hold():
                reader = self._connect()
                reader.execute("BEGIN IMMEDIATE")
                grow(reader, FAILED_COMMITS)
                reader.execute("COMMIT")
        except (apsw.Error, OSError):
            self._disconnect()

    def _checkpoint_when_idle(self) -> None:
        try:
            with self._lock.hold():
                self._checkpoint()
        except OSError:
            log.failure("the catalog's log could not be copied back")

    def _checkpoint(self) -> None:
        self._log_pages = 0  # until the next commit tells anew how long the log is
        try:
            self._connect().connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:
            # Nothing is lost: what was committed stays in the log, and there will be another time.
            self._failures.failed(error, full=isinstance(error, apsw.FullError))

    def _connect(self) -> SqliteTransaction:
        if self._reader is None:
            connection = open_writer(self._path)
            connection.set_wal_hook(self._committed)
            self._reader = SqliteTransaction(connection)
        return self._reader

    def _committed(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        self._failures.succeeded()
        return apsw.SQLITE_OK

    def _disconnect(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.connection.close(force=True)


def _run(reader: SqliteTransaction, command: _Command) -> None:
    reader.execute("SAVEPOINT command")
    try:
        command.result = command.run(reader)
    except STORAGE_ERRORS:
        raise
    except Exception as error:  # noqa: BLE001 - a command is somebody else's code, and its error is somebody else's news
        command.error = error
        reader.execute("ROLLBACK TO command")
    reader.execute("RELEASE command")
