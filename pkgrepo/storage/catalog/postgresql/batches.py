"""
Runs batches of commands, one at a time over all nodes.

Commands were written for an engine with one writer: one may look whether a row is there, and add it if not. So each
batch holds an advisory lock until its commit, as a batch on the embedded engine holds a file lock. Commits are
therefore made in the order of their numbers, which each announces to all nodes.

When the connection breaks during a COMMIT, a new one asks what became of that transaction. A server that has crashed
meanwhile cannot tell: the number of a transaction of which nothing had reached the disk is given to another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import psycopg
from twisted.logger import Logger

from pkgrepo.failure_log import FailureLog
from pkgrepo.storage.catalog.engine.commands import Batch
from pkgrepo.storage.catalog.postgresql.sessions import RETRIED, SERVER_ERRORS, explain

from .sessions import PACE, Address, Pace, Session, open_writer
from .transactions import PostgresTransaction

log = Logger()

CHANNEL: Final = "pkgrepo_commits"
LOCK: Final = 0x706B6772_636F6D6D  # "pkgrcomm": what the batches of all nodes lock in turn
OUTCOME_S: Final = 20.0  # how long it is asked what became of a transaction whose connection broke
OUTCOME_PAUSE_S: Final = 0.25
BEGIN: Final = f"BEGIN; SELECT pg_current_xact_id()::text, pg_advisory_xact_lock({LOCK})"
ANNOUNCE: Final = f"""
WITH counted AS (UPDATE catalog_state SET commits = commits + 1 RETURNING commits)
SELECT commits, pg_notify('{CHANNEL}', commits::text) FROM counted
"""
# What a crash of a server changes, or of one of its processes: then it begins its statistics anew.
RUN: Final = "SELECT concat_ws(' ', pg_postmaster_start_time(), (SELECT stats_reset FROM pg_stat_bgwriter))"
OUTCOME: Final = "SELECT pg_xact_status($1::text::xid8), commits FROM catalog_state"


class PostgresBatches:
    """
    Implements L{pkgrepo.storage.catalog.engine.commands.Batches}.

    ``on_commit`` is called with the number of each commit, before its commands are answered.
    """

    def __init__(self, address: Address, on_commit: Callable[[int], None], pace: Pace = PACE) -> None:
        self._attempts = pace.attempts
        self._address = address
        self._on_commit = on_commit
        self._session: Session | None = None
        self._run = ""  # of the server that the session is with
        self._begun = False
        self._failures = FailureLog(log, "the catalog cannot be written")

    def run(self, batch: Batch) -> None:
        """Run the commands, and commit, while other nodes wait for their turn."""
        for attempt in range(1, self._attempts + 1):
            try:
                number = self._transaction(batch)
            except RETRIED as error:
                self.disconnect()
                if attempt == self._attempts:
                    self._failed(batch, error)
            except psycopg.Error as error:  # those of a command itself are its caller's, and do not come here
                lost_idle = attempt == 1 and self._was_lost_before()
                self.disconnect()
                if not lost_idle:
                    self._failed(batch, error)
                    return
            else:
                self._failures.succeeded()
                self._on_commit(number)
                batch.succeeded()
                return

    def pause_s(self) -> float | None:
        """Return None: there is nothing to do without commands."""
        return None

    def idle(self) -> None:
        """Do nothing."""

    def disconnect(self) -> None:
        """Give up the connection; the next batch uses a new one."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def close(self) -> None:
        """Disconnect."""
        self.disconnect()

    def _transaction(self, batch: Batch) -> int:
        session = self._connect()
        self._begun = False
        begun = session.execute(BEGIN)
        begun.nextset()
        (transaction, _) = _row(begun)
        self._begun = True
        tx = PostgresTransaction(session)
        for command in batch:
            command.run(tx, SERVER_ERRORS)
        try:
            return commit(session)
        except SERVER_ERRORS:
            number = self._committed_as(transaction) if session.broken else None
            if number is None:
                raise
            log.info("a commit whose connection broke was made")
            return number

    def _was_lost_before(self) -> bool:
        """Whether the connection had been lost while it was idle, so that a new one may do better."""
        return not self._begun and self._session is not None and self._session.broken

    def _committed_as(self, transaction: str) -> int | None:
        """
        Ask a new connection what became of a transaction.

        Returns None if it was not committed, or if that is unknown because the server has crashed. Otherwise returns a
        number of a commit that is not older.

        :raises psycopg.Error: no server can be asked; whether it was committed stays unknown
        """
        run = self._run
        until = time.monotonic() + OUTCOME_S
        while True:
            self.disconnect()
            try:
                status, number = _row(self._connect().execute(OUTCOME, (transaction,)))
            except SERVER_ERRORS:
                if time.monotonic() > until:
                    raise
            else:
                if self._run != run:
                    return None
                if status != "in progress" or time.monotonic() > until:
                    return int(number) if status == "committed" else None
            time.sleep(OUTCOME_PAUSE_S)

    def _failed(self, batch: Batch, error: psycopg.Error) -> None:
        explained = explain(error)
        self._failures.failed(explained, full=False)
        batch.failed(explained)

    def _connect(self) -> Session:
        if self._session is None:
            session = open_writer(self._address)
            try:
                (self._run,) = _row(session.execute(RUN))
            except BaseException:
                session.close()
                raise
            self._session = session
        return self._session


def commit(session: Session) -> int:
    """
    Commit, and announce that. Returns the number of the commit.

    :raises psycopg.Error: it was not committed, or the connection broke, so that this is unknown
    """
    with session.pipeline():
        announced = session.execute(ANNOUNCE)
        session.execute("COMMIT")
    return int(_row(announced)[0])


def _row(cursor: psycopg.Cursor[tuple[Any, ...]]) -> tuple[Any, ...]:
    row = cursor.fetchone()
    assert row is not None
    return row
