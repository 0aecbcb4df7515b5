"""
One worker process, as its master sees it.

=========  =============================  ===============================================================
state      begins with                    ends with
=========  =============================  ===============================================================
starting   the process, and ``Begin``     ``Ready``; its end, with or without ``Failed`` before
serving    ``Ready``                      a stop; its end, which was not asked for
ending     a stop: SIGTERM                its end, when its last transfers are done
=========  =============================  ===============================================================

The process has these descriptors beside standard error: the access log and what it prints go to 1, its log to ``LOG``;
``CHANNEL`` is its end of the socket pair, and its listening sockets follow from ``FIRST_SOCKET`` on.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import IO, Any, Final

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger
from twisted.python.failure import Failure

from pkgrepo.errors import PkgrepoError

from .fork import Fork
from .messages import Alive, Begin, Channel, ChannelFactory, Counted, Cover, Failed, Message, Ready, Uncover

LOG: Final = 3
CHANNEL: Final = 4
FIRST_SOCKET: Final = 5
LONGEST_LINE: Final = 1024 * 1024  # bytes without a line feed that are passed on all the same


_log = Logger()


class WorkerFailed(PkgrepoError):  # noqa: N818 - the domain's errors say what happened
    """A worker could not start; the message says why."""


@frozen
class Outputs:
    """
    The files that the lines of workers are written to.

    Without a file for their log, because twistd's options choose another kind of log, they become events of this log.
    """

    printed: IO[bytes]
    logged: IO[str] | None

    def print(self, lines: bytes) -> None:
        """Write lines of the access log, or other output."""
        with suppress(OSError):  # of a full disk; the workers cannot do anything about it
            self.printed.write(lines)
            self.printed.flush()

    def log(self, lines: bytes) -> None:
        """Write lines of the log."""
        text = lines.decode("utf-8", "replace")
        if self.logged is None:
            for line in text.splitlines():
                _log.info("{line}", line=line)
            return
        with suppress(OSError):
            self.logged.write(text)
            self.logged.flush()


class Lines:
    """Passes on whole lines."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._rest = b""

    def add(self, data: bytes) -> None:
        """Take bytes, and pass on what is complete."""
        whole, feed, rest = data.rpartition(b"\n")
        if feed:
            self._write(self._rest + whole + feed)
            self._rest = rest
        else:
            self._rest += rest
            if len(self._rest) > LONGEST_LINE:
                self.end()

    def end(self) -> None:
        """Pass on a last line without an end."""
        if self._rest:
            self._write(self._rest + b"\n")
            self._rest = b""


class Child(ProcessProtocol):
    """
    A worker process of a ``slot``.

    ``ready`` fires with its first message, or fails with WorkerFailed; ``ended`` fires with the reason of its end.
    ``counted`` are the metrics that it has reported last. ``heard_at`` is the time of its last message, ``stopped_at``
    that of the stop.
    """

    def __init__(self, slot: int, outputs: Outputs, seconds: Callable[[], float]) -> None:
        self.slot = slot
        self.ready: Deferred[Ready] = Deferred()
        self.ended: Deferred[str] = Deferred()
        self.serving = False
        self.stopped_at: float | None = None
        self.counted = b""
        self.heard_at = self.started_at = seconds()
        self.on_message: Callable[[Child, Message], None] = lambda _child, _message: None
        self._seconds = seconds
        self._printed = Lines(outputs.print)
        self._logged = Lines(outputs.log)
        self._channel = Channel(self._receive, lambda: None)
        self._process: Any = None

    @property
    def pid(self) -> int | None:
        """The id of the process while it runs."""
        return None if self._process is None else self._process.pid

    def start(self, reactor: Any, run: Callable[[int], int], descriptors: Sequence[int]) -> None:
        """
        Start the process, which calls ``run`` with the number of its listening sockets, ``descriptors``.

        :raises OSError: there can be no other process
        """
        ours, theirs = socket.socketpair()
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            ours.setblocking(False)
            theirs.setblocking(False)
            reactor.adoptStreamConnection(ours.fileno(), socket.AF_UNIX, ChannelFactory(self._channel))
            sockets = {FIRST_SOCKET + number: each for number, each in enumerate(descriptors)}
            self._process = Fork(
                reactor,
                self,
                partial(run, len(descriptors)),
                {0: null, 1: "r", 2: 2, LOG: "r", CHANNEL: theirs.fileno(), **sockets},
            )
        finally:
            ours.close()
            theirs.close()
            os.close(null)

    def begin(self) -> None:
        """Have the worker open the catalog, and serve."""
        self._channel.send(Begin())

    def send(self, message: Message) -> None:
        """Send the worker a message."""
        self._channel.send(message)

    def cover(self, slot: int, descriptors: Sequence[int]) -> None:
        """Have the worker accept connections at the sockets of another slot, too."""
        self._channel.send(Cover(slot, len(descriptors)), descriptors)

    def uncover(self, slot: int) -> None:
        """Have the worker leave the sockets of another slot to its new worker."""
        self._channel.send(Uncover(slot))

    def stop(self) -> None:
        """Have the worker end when its last transfers are done; also twice."""
        if self.stopped_at is None:
            self.stopped_at, self.serving = self._seconds(), False
            self._signal("TERM")

    def kill(self) -> None:
        """End the worker at once."""
        self._signal("KILL")

    # ProcessProtocol

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Pass on what the worker prints and logs."""
        (self._logged if childFD == LOG else self._printed).add(data)

    def processEnded(self, reason: Failure) -> None:
        """Notice the end."""
        self.serving = False
        self._printed.end()
        self._logged.end()
        if self._channel.transport is not None:
            self._channel.transport.loseConnection()
        sentence = reason.getErrorMessage()
        if not self.ready.called:
            self.ready.errback(WorkerFailed(f"a worker ended while it started: {sentence}"))
        self.ended.callback(sentence)

    # Below

    def _receive(self, message: Message) -> None:
        self.heard_at = self._seconds()
        match message:
            case Alive():
                return
            case Counted(text):
                self.counted = text
            case Ready():
                self.serving = self.stopped_at is None
                self.ready.callback(message)
            case Failed(reason):
                if not self.ready.called:
                    self.ready.errback(WorkerFailed(reason))
            case _:
                self.on_message(self, message)

    def _signal(self, name: str) -> None:
        if self._process is not None:
            with suppress(ProcessExitedAlready):
                self._process.signalProcess(name)
