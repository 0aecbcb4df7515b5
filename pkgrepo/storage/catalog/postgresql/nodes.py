"""
The processes of all nodes, of which this is one: who uses the database, who does the work of one, and news.

All locks are advisory locks of one connection. The server releases them when the connection ends, so none has a time
that a clock could misjudge.

=========================  ==============================================  ==========================================
lock                       held by                                         lost when
=========================  ==============================================  ==========================================
presence, shared           every process that serves                       the process ends, or its connection; with a
                                                                           new connection it is taken again
work, exclusive            the one that does the work in the background    the same; another process takes it, and this
                                                                           one notices within a second that it has lost
lease of a name           the one that fetches something for all           it is released, or with the connection
=========================  ==============================================  ==========================================

For up to ``LOST_AFTER_MS`` after a network was divided two processes may do that work, or have one lease. All of it may
be done twice.

News are given up when the database cannot be reached: nothing may depend on them.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final, TypeVar

import psycopg
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads

from pkgrepo.concurrency.pools import Pool
from pkgrepo.storage.catalog.postgresql.sessions import SERVER_ERRORS, Address, Session, explain, open_member
from pkgrepo.storage.process_lock import number_of

CHANNEL: Final = "pkgrepo_news"
PART: Final = 7_500  # characters of base64 in a part
MOST_SENDERS: Final = 1_000  # whose unfinished news are kept


T = TypeVar("T")
PRESENCE: Final = 0x706B6772_70726573  # "pkgrpres"
WORK: Final = 0x706B6772_776F726B  # "pkgrwork"
OWN: Final = "(SELECT oid FROM pg_database WHERE datname = current_database())"
DATABASE: Final = f"SELECT system_identifier, {OWN} FROM pg_control_system()"
COUNT_PRESENT: Final = f"""
SELECT count(*) FROM pg_locks
WHERE locktype = 'advisory' AND granted AND mode = 'ShareLock' AND objsubid = 1
    AND database = {OWN}
    AND (classid::bigint << 32) + objid::bigint = $1
"""


class NewsParts:
    """
    Divides the news of this process into payloads of notifications, and joins those of others.

    A notification is a text of less than 8000 bytes. The server delivers those of one connection in order; news that
    lack a part, since a connection was lost, are dropped.
    """

    def __init__(self) -> None:
        self._own = secrets.token_hex(8)
        self._numbers = count()
        self._unfinished: dict[str, tuple[int, list[str]]] = {}

    def split(self, data: bytes) -> Iterator[str]:
        """The payloads of one piece of news."""
        number, text = next(self._numbers), base64.b64encode(data).decode("ascii")
        parts = [text[at : at + PART] for at in range(0, len(text), PART)] or [""]
        for index, part in enumerate(parts):
            yield f"{self._own} {number} {len(parts) - index - 1} {part}"

    def join(self, payload: str) -> bytes | None:
        """The news that are complete with this payload; None if they are not, or are of this process or no news."""
        try:
            sender, number, left, part = payload.split(" ")
            if sender == self._own:
                return None
            return self._add(sender, int(number), int(left), part)
        except (ValueError, binascii.Error):
            return None

    def _add(self, sender: str, number: int, left: int, part: str) -> bytes | None:
        found, parts = self._unfinished.pop(sender, (number, []))
        if found != number:
            parts = []
        parts.append(part)
        if not left:
            return base64.b64decode("".join(parts), validate=True)
        while len(self._unfinished) >= MOST_SENDERS:
            del self._unfinished[next(iter(self._unfinished))]
        self._unfinished[sender] = (number, parts)
        return None


class Nodes:
    """Needs a connection of its own, on which one call runs at a time."""

    def __init__(self, address: Address, reactor: IReactorFromThreads) -> None:
        self._address = address
        self._reactor = reactor
        self._thread = Pool(reactor, "catalog-nodes", 1)
        self._session: Session | None = None
        self._runs = False
        self._present = False
        self._works = False
        self._leases: set[int] = set()
        self._parts = NewsParts()
        self._receive: Callable[[bytes], None] = lambda _: None
        self._listens = False

    def start(self) -> None:
        """Accept calls from now on."""
        self._thread.start()
        self._runs = True

    def mute(self) -> None:
        """Ignore the news of others from now on."""
        self._listens = False

    async def stop(self) -> None:
        """Finish the accepted calls, and release everything."""
        self.mute()
        self._runs = False
        await self._thread.stop()
        self._disconnect()

    def enter(self) -> Deferred[bool]:
        """
        Be present, and heed the news of others, from now on. Returns whether no other process was present.

        :raises StorageFailed: the database cannot be reached
        """
        self._listens = True
        return self._thread(self._explained, self._enter)

    def leave(self) -> Deferred[bool]:
        """
        Be present no more, unless no other process is. Returns whether that is so, False if it cannot be known.

        Of several that leave at the same time, one at most is the last one. It stays present, until L{stop}.
        """
        return self._thread(self._tried, self._leave)

    def hold_work(self) -> Deferred[bool]:
        """Take or keep the right to do the work in the background. Returns whether this process has it."""
        return self._thread(self._tried, self._hold_work)

    def release_work(self) -> Deferred[bool]:
        """Let another process do that work."""
        return self._thread(self._tried, self._release_work)

    def acquire_lease(self, name: str) -> Deferred[bool]:
        """
        Take the lease of a name, which this process must not have. Returns False if another process has it.

        If the database cannot be reached, True. A caller that is cancelled must release the lease.
        """
        return self._thread(self._tried, lambda: self._acquire_lease(number_of(name)), failed=True)

    def release_lease(self, name: str) -> None:
        """Release a lease; what is sent later arrives when it is free."""
        if self._runs:  # the end of the connection releases it, too
            self._thread(self._tried, lambda: self._release_lease(number_of(name)))

    def count_others(self) -> Deferred[int]:
        """
        Return how many other processes are present.

        :raises StorageFailed: the database cannot be reached
        """
        return self._thread(self._explained, self._count_others)

    def database(self) -> Deferred[str]:
        """
        Return a text that differs for each database, also for a copy; a standby's is that of its primary.

        :raises StorageFailed: the database cannot be reached
        """
        return self._thread(self._explained, self._database)

    def send(self, news: bytes) -> None:
        """Send news to all other processes."""
        if self._runs:  # what is left at the end of a process may still have news
            self._thread(self._tried, lambda: self._send(news))

    def subscribe(self, receive: Callable[[bytes], None]) -> None:
        """Have a function called in the reactor's thread with the news of others, between L{enter} and L{mute}."""
        self._receive = receive

    def received(self, payload: str) -> None:
        """Handle a notification; in the thread that listens."""
        news = self._parts.join(payload)
        if news is not None:
            self._reactor.callFromThread(self._deliver, news)

    def _deliver(self, news: bytes) -> None:
        if self._listens:
            self._receive(news)

    def _enter(self) -> bool:
        session = self._connect()
        first = _try(session, "pg_try_advisory_lock", PRESENCE)
        self._take_presence(session)
        if first:
            session.execute("SELECT pg_advisory_unlock($1)", (PRESENCE,))
        self._present = True
        return first

    def _leave(self) -> bool:
        session = self._connect()
        if not self._present:
            return False
        session.execute("SELECT pg_advisory_unlock_shared($1)", (PRESENCE,))
        self._present = False
        if not _try(session, "pg_try_advisory_lock", PRESENCE):
            return False
        self._take_presence(session)
        session.execute("SELECT pg_advisory_unlock($1)", (PRESENCE,))
        return True

    def _hold_work(self) -> bool:
        session = self._connect()
        if self._works:
            session.execute("SELECT 1")  # the connection may have been lost
        else:
            self._works = _try(session, "pg_try_advisory_lock", WORK)
        return self._works

    def _release_work(self) -> bool:
        if self._works:
            self._works = False
            self._connect().execute("SELECT pg_advisory_unlock($1)", (WORK,))
        return True

    def _acquire_lease(self, number: int) -> bool:
        if not _try(self._connect(), "pg_try_advisory_lock", number):
            return False
        self._leases.add(number)
        return True

    def _release_lease(self, number: int) -> bool:
        if number in self._leases:
            self._leases.remove(number)
            self._connect().execute("SELECT pg_advisory_unlock($1)", (number,))
        return True

    def _count_others(self) -> int:
        ((count,),) = self._connect().execute(COUNT_PRESENT, (PRESENCE,)).fetchall()
        return max(int(count) - int(self._present), 0)

    def _database(self) -> str:
        ((database, address),) = self._connect().execute(DATABASE).fetchall()
        return f"postgresql:{database}/{address}"

    def _send(self, news: bytes) -> bool:
        session = self._connect()
        for payload in self._parts.split(news):
            session.execute("SELECT pg_notify($1, $2)", (CHANNEL, payload))
        return True

    def _take_presence(self, session: Session) -> None:
        session.execute("SELECT pg_advisory_lock_shared($1)", (PRESENCE,))

    def _explained(self, work: Callable[[], T]) -> T:
        try:
            return self._again(work)
        except SERVER_ERRORS as error:
            raise explain(error) from error

    def _tried(self, work: Callable[[], bool], *, failed: bool = False) -> bool:
        try:
            return self._again(work)
        except SERVER_ERRORS:  # the listener for changes, which has the same problem, logs it
            return failed

    def _again(self, work: Callable[[], T]) -> T:
        """Run work, again on a new connection if an idle one turns out to be lost."""
        is_new = self._session is None
        try:
            return work()
        except SERVER_ERRORS:
            self._disconnect()
            if is_new:
                raise
        try:
            return work()
        except SERVER_ERRORS:
            self._disconnect()
            raise

    def _connect(self) -> Session:
        if self._session is None:
            session = open_member(self._address)
            try:
                if self._present:
                    self._take_presence(session)
            except psycopg.Error:
                session.close()
                raise
            self._session = session
        return self._session

    def _disconnect(self) -> None:
        self._works = False
        self._leases.clear()
        session, self._session = self._session, None
        if session is not None:
            session.close()


def _try(session: Session, function: str, lock: int) -> bool:
    return session.execute(f"SELECT {function}($1)", (lock,)).fetchone() == (True,)
