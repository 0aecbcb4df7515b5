"""
Sizes of socket reads while request bodies arrive, and a fair queue for the large ones.

A read has a fixed cost whatever its size: a step of a coroutine, a search for chunk heads, and the GIL, which other
threads take meanwhile and release late. So a connection whose client sends faster than we read gets large reads. These
take time; each turn of the reactor has a budget of them, and the connections beyond it are queued.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from twisted.internet import tcp
from twisted.internet.interfaces import IReactorTime

from pkgrepo.http.twisted_internals import read_at_most

USUAL_READ = 64 * 1024  # bytes, as Twisted has it
# bytes: a slice of an upload, and what chunks have around them, so that no slice is joined from several reads. It costs
# 16 uploads a tenth less than reads of 260 KiB, which cost a seventh less than 64 KiB; reads of 1 MiB cost more.
LARGE_READ = 516 * 1024
LARGE_READS = 3  # per turn of the reactor: 1.5 MiB, about 1.5 ms; 1 MiB costs a tenth more, with 2 others wait longer


class ReadScheduler:
    """
    Chooses how one connection reads its request bodies.

    While ``paused`` it reads nothing; ``on_change`` is called when that changes.
    """

    def __init__(self, queue: ReadQueue, on_change: Callable[[], None]) -> None:
        self.paused = False
        self._queue = queue
        self._on_change = on_change
        self._enlarged: tcp.Connection | None = None

    def note_read(self, count: int, socket: tcp.Connection | None) -> None:
        """Count a read of at least ``USUAL_READ`` bytes: the socket held at least as many."""
        if self._enlarged is None and socket is not None:
            self._enlarged = socket
            read_at_most(socket, LARGE_READ)
        if count > USUAL_READ and self._queue.note_large_read(self):
            self.paused = True
            self._on_change()

    def resume(self) -> None:
        """Read again."""
        self.paused = False
        self._on_change()

    def end_body(self) -> None:
        """Go back to usual reads: what follows the body may be anything."""
        if self._enlarged is not None:
            read_at_most(self._enlarged, USUAL_READ)
            self._enlarged = None


class ReadQueue:
    """The large reads of one server: ``LARGE_READS`` per turn of the reactor, in the order of arrival."""

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor
        self._left = LARGE_READS
        self._waiting: deque[ReadScheduler] = deque()
        self._scheduled = False

    def note_large_read(self, reader: ReadScheduler) -> bool:
        """
        Count a large read; whether the reader is queued now, to be resumed later.

        It is when this turn's budget is spent, and while others are queued. A resumed reader whose socket is empty
        blocks no other one.
        """
        self._schedule()
        self._left -= 1
        if self._left >= 0 and not self._waiting:
            return False
        self._waiting.append(reader)
        return True

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._reactor.callLater(0, self._begin_turn)

    def _begin_turn(self) -> None:
        self._scheduled = False
        self._left = LARGE_READS
        for _ in range(min(LARGE_READS, len(self._waiting))):
            self._waiting.popleft().resume()
        if self._waiting:
            self._schedule()
