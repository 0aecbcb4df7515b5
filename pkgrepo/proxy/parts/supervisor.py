"""
Starts, feeds and ends the worker processes.

=======  =====================================================  ====================================================
state    of a worker                                            next states by
=======  =====================================================  ====================================================
busy     it runs one job                                        the job ends: idle, or closed if it holds too much
                                                                memory; cancellation, ``time_limit_s``: killed
idle     it waits for a job                                     a job: busy; ``idle_s``: closed; it dies: gone
closed   its channel is closed, so that it ends by itself       gone
killed   it was sent SIGKILL                                    gone
gone     its pipes are closed
=======  =====================================================  ====================================================

A worker's end is taken from its pipes and not from SIGCHLD, because a program that embeds the server may keep Twisted
from handling signals.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger
from twisted.python.failure import Failure

import pkgrepo
from pkgrepo.concurrency.fair_semaphore import FairSemaphore, QueueFull
from pkgrepo.errors import Invalid
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.staged import Staged

from .jobs import Job, NormalisingFailed, Reply
from .worker import CHANNEL, DIAGNOSTICS, LONGEST_JOB, PARTS, REPLIES

log = Logger()

WORKERS: Final = 1  # processes at a time
MOST_WAITING: Final = 256  # jobs; each has its document in a temporary file
TIME_LIMIT_S: Final = 60.0
IDLE_S: Final = 60.0
MEMORY: Final = 2 * 1024**3  # bytes of address space of a worker
KEPT_MEMORY: Final = 128 * 1024 * 1024  # bytes that an idle worker holds at most; a new one has 25 MB
HIGH_WATER: Final = 256 * 1024  # bytes received from a worker and not stored yet
KEPT_DIAGNOSTICS: Final = 4096  # bytes
_PASSED_ON: Final = ("LD_LIBRARY_PATH", "PYTHONHOME")  # without which some interpreters do not start

_MODULE: Final = "pkgrepo.proxy.parts.worker"


class Supervisor:
    """Runs jobs in worker processes, which are started when they are needed. Call ``stop`` at the end."""

    def __init__(
        self,
        reactor: Any,
        *,
        time_limit_s: float = TIME_LIMIT_S,
        idle_s: float = IDLE_S,
        memory: int = MEMORY,
        kept_memory: int = KEPT_MEMORY,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._reactor = reactor
        self._time_limit_s = time_limit_s
        self._idle_s = idle_s
        self._memory = memory
        self._kept_memory = kept_memory
        self._most_waiting = most_waiting
        self._turns = FairSemaphore(WORKERS, reactor, most_waiting=most_waiting)
        self._idle: list[_Worker] = []
        self._workers: set[_Worker] = set()
        self._stopped = False

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers."""
        return [each.transport.pid for each in self._workers]

    async def run(self, job: Job, document: int, previous: int | None, staged: Staged) -> BlobInfo:
        """
        Normalise the document in a file, and return its parts file as a staged blob.

        ``document`` and ``previous`` are open descriptors, which stay the caller's. Jobs of the upstreams take turns.

        :raises Invalid: the document cannot be used, or takes too much time or memory
        :raises NormalisingFailed: the worker ended or could not be started, too many jobs wait, or ``stop`` was called
        :raises StorageFull: or ``StorageFailed``
        """
        descriptors = [document] if previous is None else [document, previous]
        try:
            async with self._turns.hold((urlsplit(job.context.url).hostname,)):
                worker = self._take()
                try:
                    async with aclosing(worker.run(job, descriptors, self._time_limit_s)) as parts:
                        return await staged.receive(parts)
                finally:
                    self._put_back(worker)
        except QueueFull:
            raise NormalisingFailed(f"{self._most_waiting} documents wait for a worker") from None

    async def stop(self) -> None:
        """Kill the workers, and wait until they have gone; what runs or waits fails."""
        self._stopped = True
        workers = list(self._workers)
        for worker in workers:
            worker.kill()
        for worker in workers:
            await worker.gone

    def _take(self) -> _Worker:
        if self._stopped:
            raise NormalisingFailed("the server stops")
        if self._idle:
            return self._idle.pop()
        try:
            worker = _Worker.start(self._reactor, self._memory)
        except OSError as error:
            raise NormalisingFailed(f"no worker could be started: {error}") from error
        self._workers.add(worker)
        worker.gone.addCallback(self._forget, worker)
        return worker

    def _put_back(self, worker: _Worker) -> None:
        if worker.memory > self._kept_memory:
            worker.close()
        elif worker.is_usable:
            self._idle.append(worker)
            worker.close_after(self._idle_s)

    def _forget(self, _: None, worker: _Worker) -> None:
        self._workers.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)


class _Worker(ProcessProtocol):
    """One process; ``gone`` fires when it has ended."""

    def __init__(self, reactor: Any, channel: socket.socket) -> None:
        self.gone: Deferred[None] = Deferred()
        self.transport: Any = None
        self.memory = 0  # bytes that it held after its last job
        self._reactor = reactor
        self._channel = channel
        self._open = {PARTS, REPLIES}
        self._ended_by_us = False
        self._timer: Any = None
        self._timed_out = False
        self._changed: Deferred[None] | None = None
        self._received = 0
        self._waiting: list[bytes] = []  # parts that the job has not taken
        self._paused = False
        self._reply = b""
        self._diagnostics = b""

    @property
    def is_usable(self) -> bool:
        """Whether it can do another job."""
        return bool(self._open) and not self._ended_by_us

    @classmethod
    def start(cls, reactor: Any, memory: int) -> _Worker:
        """Start a process. :raises OSError: there are no processes or descriptors left"""
        ours, theirs = socket.socketpair()
        with theirs:
            worker = cls(reactor, ours)
            try:
                ours.setblocking(False)
                reactor.spawnProcess(
                    worker,
                    sys.executable,
                    # -P: neither the current folder nor the module's is searched for modules.
                    [sys.executable, "-P", "-X", "utf8", "-m", _MODULE, str(memory)],
                    env=_environment(),
                    childFDs={CHANNEL: theirs.fileno(), PARTS: "r", DIAGNOSTICS: "r", REPLIES: "r"},
                )
            except BaseException:
                ours.close()
                raise
        return worker

    async def run(self, job: Job, descriptors: Sequence[int], time_limit_s: float) -> AsyncGenerator[bytes]:
        """
        Iterate over the bytes of the parts file of a job; leaving the iteration early kills the worker.

        :raises Invalid, NormalisingFailed: see L{Supervisor.run}
        """
        self._cancel_timer()
        self._received, self._reply = 0, b""
        self._timer = self._reactor.callLater(time_limit_s, self._time_out)
        response = None
        try:
            self._send(job, descriptors)
            while response is None:
                if self._waiting:
                    parts, self._waiting = b"".join(self._waiting), []
                    self._resume()
                    yield parts
                    continue
                response = self._complete()
                if response is None:
                    self._check_alive(time_limit_s)
                    self._changed = Deferred()
                    await self._changed
        finally:
            self._cancel_timer()
            if response is None:
                self.kill()
        self.memory = response.memory
        if response.invalid is not None:
            raise Invalid(response.invalid, response.pointer)
        if response.failed is not None:
            raise NormalisingFailed(response.failed)

    def close_after(self, idle_s: float) -> None:
        """Close the worker unless it gets a job before."""
        self._timer = self._reactor.callLater(idle_s, self.close)

    def close(self) -> None:
        """Let the worker end; also twice."""
        self._ended_by_us = True
        self._channel.close()

    def kill(self) -> None:
        """End the worker at once; also twice."""
        self._cancel_timer()
        self.close()
        self._resume()
        with suppress(ProcessExitedAlready):
            self.transport.signalProcess("KILL")

    # ProcessProtocol

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Keep what the process has written."""
        if childFD == PARTS:
            self._received += len(data)
            self._waiting.append(data)
            if sum(map(len, self._waiting)) >= HIGH_WATER:
                self._paused = True
                self.transport.pauseProducing()
        elif childFD == REPLIES:
            self._reply += data
        else:
            self._diagnostics = (self._diagnostics + data)[-KEPT_DIAGNOSTICS:]
        self._wake()

    def childConnectionLost(self, childFD: int) -> None:
        """Notice the end of the process."""
        self._open.discard(childFD)
        if not self._open and not self.gone.called:
            self.kill()
            self.gone.callback(None)
        self._wake()

    def processEnded(self, reason: Failure) -> None:
        """Log an end that this process did not ask for."""
        if not self._ended_by_us:
            log.error(
                "a worker process ended: {reason}; {diagnostics}",
                reason=reason.getErrorMessage(),
                diagnostics=self._diagnostics.decode("utf-8", "replace"),
            )

    # Below

    def _send(self, job: Job, descriptors: Sequence[int]) -> None:
        line = msgspec.json.encode(job) + b"\n"
        try:
            # The buffer is empty, and much longer: the worker has read all earlier jobs.
            if len(line) > LONGEST_JOB or socket.send_fds(self._channel, [line], descriptors) != len(line):
                raise NormalisingFailed("the job cannot be sent to the worker")
        except OSError as error:
            raise NormalisingFailed(f"the job cannot be sent to the worker: {error}") from error

    def _complete(self) -> Reply | None:
        """Return the reply if the job has ended and all its bytes have arrived."""
        if not self._reply.endswith(b"\n"):
            return None
        response = msgspec.json.decode(self._reply, type=Reply)
        return response if response.size == self._received else None

    def _check_alive(self, time_limit_s: float) -> None:
        if self._timed_out:
            raise Invalid(f"the document takes longer than {time_limit_s:g} seconds to process")
        if not self._open:
            raise NormalisingFailed("the worker process ended")

    def _time_out(self) -> None:
        self._timed_out = True
        self._wake()

    def _cancel_timer(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _resume(self) -> None:
        if self._paused:
            self._paused = False
            self.transport.resumeProducing()

    def _wake(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.callback(None)


def _environment() -> dict[str, str]:
    """Return the environment of a worker, which finds the same modules as this process."""
    paths = [each for each in sys.path if os.path.isabs(each)]
    ours = str(Path(pkgrepo.__file__).parent.parent)
    if ours not in paths:
        paths.append(ours)
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(paths)}
