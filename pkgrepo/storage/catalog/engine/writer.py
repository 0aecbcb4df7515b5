"""
Runs batches of commands on the SQLite file.

When a commit fails, the next batch uses a new connection. The log has one line when failures begin and one when they
end, so callers that get ``StorageFull`` or ``StorageFailed`` from a write need not log it.
"""

from __future__ import annotations

from pathlib import Path

import apsw
from twisted.logger import Logger

from pkgrepo.failure_log import FailureLog
from pkgrepo.storage.catalog.engine.connections import STORAGE_ERRORS, SqliteTransaction, explain
from pkgrepo.storage.catalog.engine.generation import WriteLock
from pkgrepo.storage.catalog.server.settings import increment

from .commands import Batch
from .connections import open_writer

log = Logger()

CHECKPOINT_IDLE = 1000  # pages in the log from which it is checkpointed when the queue is empty; 8 MiB
CHECKPOINT_BUSY = 8000  # pages from which it is checkpointed although commands wait; 64 MiB
FAILED_COMMITS = "failed_commits"  # the setting that counts them
IDLE_S = 0.05  # seconds without a command before a checkpoint


class SqliteBatches:
    """Implements L{pkgrepo.storage.catalog.engine.commands.Batches}."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = WriteLock(path)
        self._tx: SqliteTransaction | None = None
        self._log_pages = 0
        self._failures = FailureLog(log, "the catalog cannot be written")

    def run(self, batch: Batch) -> None:
        """Run the commands, and commit, while other processes wait for the lock; they go on before the answers."""
        try:
            with self._lock.hold():
                self._transaction(batch)
        except (apsw.Error, OSError) as error:
            self._failures.failed(error, full=isinstance(error, apsw.FullError))
            self.disconnect()
            self._overwrite_failed_commit()
            batch.failed(explain(error))
            return
        # To wake the reactor gives up the GIL, for as long as the reactor keeps it.
        batch.succeeded()
        if self._log_pages >= CHECKPOINT_BUSY:
            self.idle()

    def pause_s(self) -> float | None:
        """Return after how many seconds without a command a checkpoint is due; None: none is."""
        return IDLE_S if self._log_pages >= CHECKPOINT_IDLE else None

    def idle(self) -> None:
        """Copy the log back into the database."""
        try:
            with self._lock.hold():
                self._checkpoint()
        except OSError:
            log.failure("the catalog's log could not be copied back")

    def disconnect(self) -> None:
        """Give up the connection; the next batch uses a new one."""
        tx, self._tx = self._tx, None
        if tx is not None:
            tx.connection.close(force=True)

    def close(self) -> None:
        """Disconnect."""
        self.disconnect()
        self._lock.close()

    def _transaction(self, batch: Batch) -> None:
        tx = self._connect()
        tx.execute("BEGIN IMMEDIATE")
        for command in batch:
            command.run(tx, STORAGE_ERRORS)
        with self._lock.count_commit():
            tx.execute("COMMIT")

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
            self.disconnect()

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
