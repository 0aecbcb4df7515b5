"""
The queue of write commands, and the thread that runs them in batches.

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
batch fails; so it does after an error that the engine does not expect, and the next batch begins on a new connection.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from attrs import define, field
from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IReactorFromThreads
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.errors import PkgrepoError, StorageFailed
from pkgrepo.interfaces import Transaction

log = Logger()

T = TypeVar("T")
P = ParamSpec("P")

BATCH = 256  # commands; limits how many fail with one commit
BATCH_S = 0.02  # seconds of commands; writers of other processes wait that long for the lock


class CommandTransaction(Transaction, Protocol):
    """A transaction with a savepoint before each command."""

    def begin_command(self) -> None:
        """Set the savepoint."""

    def end_command(self) -> None:
        """Run all that was sent, and release the savepoint."""

    def undo_command(self) -> None:
        """Undo what the command did, and release the savepoint."""


@define(eq=False)
class Command:
    """A function over a transaction, and what came of it."""

    call: Callable[[Transaction], Any]
    outcome: Deferred[Any]
    result: Any = None
    error: Exception | None = None

    def run(self, tx: CommandTransaction, fatal: tuple[type[Exception], ...]) -> None:
        """
        Run in a savepoint, so that an error undoes this command alone and is kept for its caller.

        :raises Exception: one of ``fatal``, after which the transaction cannot go on
        """
        self.result, self.error = None, None
        tx.begin_command()
        try:
            self.result = self.call(tx)
            tx.end_command()  # here, because it may raise an error of what was only sent
        except fatal:
            raise
        except Exception as error:  # noqa: BLE001 - passed on to the caller of the command
            self.result, self.error = None, error
            tx.undo_command()

    def answer(self) -> None:
        """Deliver the result; in the reactor's thread."""
        if self.error is None:
            self.outcome.callback(self.result)
        else:
            self.outcome.errback(Failure(self.error))


class Batch:
    """
    Commands of one transaction: iterating gives the first one, and those that wait or arrive meanwhile.

    ``next_waiting`` takes a command from the queue, without waiting for one; ``answer`` is told all that are done.
    Iterating again, after the transaction was rolled back, begins with those that it gave before.
    """

    def __init__(
        self,
        first: Command,
        next_waiting: Callable[[], Command | None],
        answer: Callable[[Sequence[Command]], None],
    ) -> None:
        self.answered = False
        self._commands = [first]
        self._next_waiting = next_waiting
        self._answer = answer

    def __iter__(self) -> Iterator[Command]:
        until = time.monotonic() + BATCH_S
        yield from self._commands
        while len(self._commands) < BATCH and time.monotonic() < until and (more := self._next_waiting()):
            self._commands.append(more)
            yield more

    def succeeded(self) -> None:
        """The transaction is durable: answer every command."""
        self.answered = True
        self._answer(self._commands)

    def failed(self, error: PkgrepoError) -> None:
        """The transaction changed nothing: every command without an error of its own fails with this one."""
        for command in self._commands:
            command.error = command.error or error
        self.answered = True
        self._answer(self._commands)


class Batches(Protocol):
    """What the queue needs of an engine; every method is called in the writer's thread."""

    def run(self, batch: Batch) -> None:
        """Run a batch in one transaction, and call ``succeeded`` or ``failed`` of it. What it raises is a fault."""

    def pause_s(self) -> float | None:
        """After how many seconds without a command ``idle`` is to be called; None: not at all."""

    def idle(self) -> None:
        """Use the time without commands."""

    def disconnect(self) -> None:
        """Give up the connection, in whatever state it is; the next batch uses a new one."""

    def close(self) -> None:
        """Disconnect."""


@define(eq=False)
class _Shutdown:
    """Ends the queue: ``drained`` fires when all commands are answered, ``closed`` after ``close`` was set."""

    drained: Deferred[None] = field(factory=Deferred)
    close: threading.Event = field(factory=threading.Event)
    closed: Deferred[None] = field(factory=Deferred)


class CommandQueue:
    """Runs commands in order on a thread of its own."""

    def __init__(self, batches: Batches, reactor: IReactorFromThreads) -> None:
        self._batches = batches
        self._reactor = reactor
        self._queue: SimpleQueue[Command | _Shutdown] = SimpleQueue()
        self._shutdown = _Shutdown()
        self._running = False
        self._thread = threading.Thread(target=self._run_thread, name="pkgrepo-catalog-writer", daemon=True)
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
        self._queue.put(Command(lambda tx: command(tx, *args, **kwargs), outcome))
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
                self._run(first)
            self._reactor.callFromThread(self._shutdown.drained.callback, None)
            self._shutdown.close.wait()
        finally:
            self._batches.close()
        self._reactor.callFromThread(self._shutdown.closed.callback, None)

    def _run(self, first: Command | None) -> None:
        """Run a batch that begins with a command, or what there is to do without one; it does not end the thread."""
        batch = None if first is None else Batch(first, self._next_waiting, self._deliver)
        try:
            if batch is None:
                self._batches.idle()
            else:
                self._batches.run(batch)
        except Exception as error:  # noqa: BLE001 - whatever it is, callers must not wait for ever
            log.failure("unexpected fault of the thread that writes the catalog")
            if batch is not None and not batch.answered:  # it is unknown whether it was committed
                unknown = StorageFailed("catalog")
                unknown.__cause__ = error
                batch.failed(unknown)
            self._batches.disconnect()

    def _next_or_idle(self) -> Command | _Shutdown | None:
        """Return the next item of the queue, or None when the engine has work and the queue was empty for a while."""
        try:
            return self._queue.get(timeout=self._batches.pause_s())
        except Empty:
            return None

    def _next_waiting(self) -> Command | None:
        try:
            found = self._queue.get_nowait()
        except Empty:
            return None
        if isinstance(found, Command):
            return found
        self._queue.put(found)  # it stays the last item, because nothing is queued after a shutdown
        return None

    def _deliver(self, commands: Sequence[Command]) -> None:
        self._reactor.callFromThread(self._answer, commands)

    def _answer(self, commands: Sequence[Command]) -> None:
        for command in commands:
            command.answer()
        self._unanswered -= len(commands)
        if not self._unanswered:
            waiters, self._idle_waiters = self._idle_waiters, []
            for idle in waiters:
                idle.callback(None)
