"""
Notices the commits of all nodes.

=============================  ================================================================================
what happens                   the generation
=============================  ================================================================================
a batch of this node commits   changes before its commands are answered
another node commits           changes when its notification arrives, which that node waits for, see L{witnesses}
a notification is lost         changes within ``RECHECK_S``: the number of the last commit is asked for
the server cannot be asked     stays for ``TRUSTED_S``, so that what is in memory is served; then it changes with
                               each question, so that nothing is answered from memory
the server answers again       changes if there were commits
another program changes rows   does not change
=============================  ================================================================================
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Final

import psycopg
from psycopg import Notify
from twisted.logger import Logger

from pkgrepo.failure_log import FailureLog

from . import news, witnesses
from .batches import CHANNEL
from .server_clock import ServerClock
from .sessions import Address, Session, open_listener
from .witnesses import BYE, HELLO, SEEN, Witnesses

log = Logger()

RECHECK_S: Final = 1.0
TRUSTED_S: Final = 4.0  # a token that another node revokes is dead here within this and RECHECK_S
TURN_S: Final = 0.1  # until the thread looks whether it is to end
PAUSE_S: Final = 0.25  # before the next attempt to connect
LAST_COMMIT: Final = "SELECT commits, (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM catalog_state"


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
    ) -> None:
        self.server_clock = ServerClock(clock)
        self._witnesses = Witnesses()
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
        self._first_look.wait(TRUSTED_S)

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
                    session.execute(f"LISTEN {CHANNEL}; LISTEN {news.CHANNEL}; LISTEN {witnesses.CHANNEL}")
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
            row = session.execute(LAST_COMMIT).fetchone()
            assert row is not None
            self.server_clock.measured(row[1], asked, self._clock())
            if self._learned(row[0]) or not said:
                self._tell(session, SEEN if said else HELLO)
                said = True
            self._trusted_until = asked + TRUSTED_S
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
        if notification.channel == witnesses.CHANNEL:
            return self._witnesses.hear(notification.payload)
        self._on_news(notification.payload)
        return False

    def _tell(self, session: Session, kind: str) -> None:
        session.execute(*self._witnesses.statement(kind, self._last_commit))
