"""
Notices the commits of all nodes, and says which ones this process has noticed.

=============================  ================================================================================
what happens                   the generation
=============================  ================================================================================
a batch of this node commits   changes before its commands are answered
another node commits           changes when its notification arrives, which that node waits for, see L{Witnesses}
a notification is lost         changes within ``RECHECK_S``: the number of the last commit is asked for
the server cannot be asked     stays for ``trusted_s``, so that what is in memory is served; then it changes with
                               each question, so that nothing is answered from memory
the server answers again       changes if there were commits
another program changes rows   does not change
=============================  ================================================================================

Each process serves documents from its memory until it is notified of a commit. A client that has published at one node
and reads at another could be faster than the notification. So each process says which commit it has noticed last, and
one that commits responds to its clients when all others have said so of that commit. A process that says nothing for
``patience_s`` is left out until it is heard again; it may serve what it has in memory for as long as the table says.

==============  ===========================================================  ==========================================
what is said    when                                                         what others do
==============  ===========================================================  ==========================================
``ID hello N``  a process begins to listen                                   they say what they have noticed
``ID seen N``   it has noticed commit N                                      they wait for it from now on
``ID bye N``    it stops                                                     they do not wait for it any more
==============  ===========================================================  ==========================================
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Final

import psycopg
from psycopg import Notify
from twisted.logger import Logger

from pkgrepo.failure_log import FailureLog
from pkgrepo.storage.catalog.postgresql import nodes
from pkgrepo.storage.catalog.postgresql.batches import CHANNEL
from pkgrepo.storage.catalog.postgresql.sessions import PACE, Address, Pace, Session, open_listener

SEEN_CHANNEL: Final = "pkgrepo_seen"
MOST: Final = 1_000  # processes that are waited for

HELLO: Final = "hello"
SEEN: Final = "seen"
BYE: Final = "bye"


DRIFT: Final = 0.001  # by how much of the time since a measurement its error may have grown
log = Logger()
RECHECK_S: Final = 1.0
TURN_S: Final = 0.1  # until the thread looks whether it is to end
PAUSE_S: Final = 0.25  # before the next attempt to connect
LAST_COMMIT: Final = "SELECT commits, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM catalog_state"


class Witnesses:
    """The other processes, by ids that they have made up, and the last commit that each has told of."""

    def __init__(self, pace: Pace = PACE) -> None:
        self._pace = pace
        self._own = secrets.token_hex(8)
        self._seen: dict[str, int] = {}
        self._heard = threading.Condition()

    def statement(self, kind: str, commit: int) -> tuple[str, tuple[str, str]]:
        """The statement with its parameters that tells the others about this process."""
        return "SELECT pg_notify($1, $2)", (SEEN_CHANNEL, f"{self._own} {kind} {commit}")

    def hear(self, payload: str) -> bool:
        """Take in what a process has told. Returns whether it wants to know what this one knows."""
        try:
            process, kind, text = payload.split(" ")
            commit = int(text)
        except ValueError:
            return False
        if process == self._own:
            return False
        with self._heard:
            if kind == BYE:
                self._seen.pop(process, None)
            elif process in self._seen or len(self._seen) < MOST:
                self._seen[process] = max(commit, self._seen.get(process, commit))
            self._heard.notify_all()
        return kind == HELLO

    def wait(self, commit: int) -> None:
        """Wait until all others know of a commit, and leave out the slow ones; not in the reactor's thread."""
        until = time.monotonic() + self._pace.patience_s
        with self._heard:
            while late := [process for process, seen in self._seen.items() if seen < commit]:
                left = until - time.monotonic()
                if left <= 0:
                    for process in late:
                        del self._seen[process]
                    return
                self._heard.wait(left)


class ServerClock:
    """
    The time of the server: the steady clock of this machine, and how far the server's is ahead of it.

    Until the first measurement it is the time of this machine. ``steady`` gives seconds from any beginning.
    """

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._ahead_ms = time.time() * 1000 - steady() * 1000
        self._error_ms = math.inf
        self._measured_s = steady()

    def now_ms(self) -> int:
        """Return the milliseconds since the epoch, UTC; from any thread."""
        return int(self._steady() * 1000 + self._ahead_ms)

    def measured(self, server_ms: int, asked_s: float, answered_s: float) -> None:
        """
        Use the server's answer to a question between two times of the steady clock, unless an earlier one is better.

        The response is wrong by half of the time that it took at most. One that contradicts an earlier response counts:
        the server's clock was set, or it is another server.
        """
        ahead_ms = server_ms - (asked_s + answered_s) * 500
        error_ms = (answered_s - asked_s) * 500 + 1
        earlier_ms = self._error_ms + (answered_s - self._measured_s) * 1000 * DRIFT
        if error_ms <= earlier_ms or abs(ahead_ms - self._ahead_ms) > error_ms + earlier_ms:
            self._ahead_ms, self._error_ms, self._measured_s = ahead_ms, error_ms, answered_s


class Changes:
    """
    The number of the present generation, kept by a thread with a connection of its own. ``clock`` gives seconds.

    The thread also passes each piece of news of other processes to ``on_news``, and measures ``server_clock``.
    """

    def __init__(
        self,
        address: Address,
        clock: Callable[[], float] = time.monotonic,
        *,
        on_news: Callable[[str], None] = lambda _: None,
        pace: Pace = PACE,
    ) -> None:
        self._pace = pace
        self.server_clock = ServerClock(clock)
        self._witnesses = Witnesses(pace)
        self._on_news = on_news
        self._address = address
        self._clock = clock
        self._numbers = count(1)
        self._number = 0
        self._last_commit = -1
        self._trusted_until = 0.0
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._first_look = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pkgrepo-catalog-listener", daemon=True)
        self._failures = FailureLog(log, "the catalog cannot be asked for changes")

    def __call__(self) -> int:
        """Return the present generation."""
        if self._clock() > self._trusted_until:
            self._number = next(self._numbers)
        return self._number

    def known_commit(self) -> int | None:
        """Return the number of the newest commit; None if a newer one may have escaped this process."""
        return self._last_commit if self._clock() <= self._trusted_until else None

    def committed(self, commit: int) -> None:
        """Begin a new generation, and wait until all processes have; in the thread that has committed."""
        self._learned(commit)
        self._witnesses.wait(commit)

    def start(self) -> None:
        """Begin to listen, and wait until that is so, or cannot be; not in the reactor's thread."""
        self._thread.start()
        self._first_look.wait(self._pace.trusted_s)

    def stop(self) -> None:
        """End the thread; not in the reactor's thread."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _learned(self, commit: int) -> bool:
        """Begin a new generation if this commit is newer than those before. Returns whether it is; from any thread."""
        with self._lock:
            is_new = commit > self._last_commit
            if is_new:
                self._last_commit = commit
                self._number = next(self._numbers)
            return is_new

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with open_listener(self._address) as session:
                    session.execute(f"LISTEN {CHANNEL}; LISTEN {nodes.CHANNEL}; LISTEN {SEEN_CHANNEL}")
                    self._follow(session)
                    self._tell(session, BYE)
            except (psycopg.Error, OSError) as error:
                self._failures.failed(error)
                self._first_look.set()
                self._stopping.wait(PAUSE_S)

    def _follow(self, session: Session) -> None:
        said = False
        while not self._stopping.is_set():
            asked = self._clock()
            ((commit, server_s),) = session.execute(LAST_COMMIT).fetchall()
            self.server_clock.measured(server_s, asked, self._clock())
            if self._learned(commit) or not said:
                self._tell(session, SEEN if said else HELLO)
                said = True
            self._trusted_until = asked + self._pace.trusted_s
            self._failures.succeeded()
            self._first_look.set()
            while not self._stopping.is_set() and self._clock() < asked + RECHECK_S:
                is_new = [self._heed(each) for each in session.notifies(timeout=TURN_S, stop_after=1)]
                if any(is_new):
                    self._tell(session, SEEN)

    def _heed(self, notification: Notify) -> bool:
        """Handle a notification. Returns whether others are to be told what this process knows."""
        if notification.channel == CHANNEL:
            return self._learned(int(notification.payload))
        if notification.channel == SEEN_CHANNEL:
            return self._witnesses.hear(notification.payload)
        self._on_news(notification.payload)
        return False

    def _tell(self, session: Session, kind: str) -> None:
        session.execute(*self._witnesses.statement(kind, self._last_commit))
