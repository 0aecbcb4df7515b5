"""
How much of a body is read at once, and whose turn it is while many arrive.

Whatever it brings, a read costs a coroutine's step, a look for the heads of chunks, and the interpreter's lock, which
other threads take meanwhile and give back late. So who sends faster than we read is read in large pieces. Those take
time, and are taken in turn: a few, then what else there is to do, however many bodies arrive.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from twisted.internet import tcp
from twisted.internet.interfaces import IReactorTime

from pkgrepo.http.twisted_internals import read_at_most

USUAL_READ = 64 * 1024  # bytes, as Twisted has it
LARGE_READ = 260 * 1024  # bytes: 256 KiB, and what chunks have around them; 16 uploads cost a seventh less than by 64
LARGE_READS = 6  # in a turn of the reactor: 1.5 MiB, about 1.5 ms; 4 cost a tenth more, with 8 others wait longer


class Pace:
    """
    How one connection reads the bodies it gets.

    While ``awaits_turn`` it reads nothing; ``steer`` is called when that has changed.
    """

    def __init__(self, turns: Turns, steer: Callable[[], None]) -> None:
        self.awaits_turn = False
        self._turns = turns
        self._steer = steer
        self._enlarged: tcp.Connection | None = None

    def took(self, count: int, socket: tcp.Connection | None) -> None:
        """Note a read of at least ``USUAL_READ`` bytes: more was there, or could have been."""
        if self._enlarged is None and socket is not None:
            self._enlarged = socket
            read_at_most(socket, LARGE_READ)
        if count > USUAL_READ and self._turns.took_large(self):
            self.awaits_turn = True
            self._steer()

    def take_turn(self) -> None:
        """Read on."""
        self.awaits_turn = False
        self._steer()

    def end(self) -> None:
        """The body is over: what comes now may be anything."""
        if self._enlarged is not None:
            read_at_most(self._enlarged, USUAL_READ)
            self._enlarged = None


class Turns:
    """The turns of one site's connections."""

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor
        self._left = LARGE_READS
        self._waiting: deque[Pace] = deque()
        self._going_round = False

    def took_large(self, reader: Pace) -> bool:
        """
        Note a large read; whether the reader now waits until it is told to take its turn.

        It does when there were enough large reads in this turn of the reactor, and while others wait. Nobody waits for
        one who has its turn and nothing to read.
        """
        self._go_round()
        self._left -= 1
        if self._left >= 0 and not self._waiting:
            return False
        self._waiting.append(reader)
        return True

    def _go_round(self) -> None:
        if not self._going_round:
            self._going_round = True
            self._reactor.callLater(0, self._begin)

    def _begin(self) -> None:
        self._going_round = False
        self._left = LARGE_READS
        for _ in range(min(LARGE_READS, len(self._waiting))):
            self._waiting.popleft().take_turn()
        if self._waiting:
            self._go_round()
