"""
Runs twistd in forks of a process that has imported the server, which saves each server a second of processor time.

A request is a datagram with the arguments, the environment and the working directory as JSON, and two descriptors: for
the output, and for the exit status. The answer is the process id. The status, negative for a signal, is written when
the process has ended.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any

LARGEST_REQUEST = 128 * 1024  # bytes
_STATUS = struct.Struct(">i")


class ForkedTwistd:
    """twistd in a fork, with those members of ``Popen`` that tests use; ``patches`` as of ``patched_twistd``."""

    def __init__(
        self, arguments: Sequence[str], *, environ: Mapping[str, str], folder: Path, patches: Sequence[str] = ()
    ) -> None:
        output, output_end = os.pipe()
        self._status, status_end = os.pipe()
        self.stdout: IO[str] = open(output, encoding="utf-8", errors="replace")  # noqa: SIM115 - its reader closes it
        request = json.dumps([list(arguments), dict(environ), str(folder)]).encode()
        control, _ = _forker(*patches)
        socket.send_fds(control, [request], [output_end, status_end])
        os.close(output_end)
        os.close(status_end)
        [self.pid] = _STATUS.unpack(control.recv(_STATUS.size))
        self._returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._read(0)

    def wait(self, timeout: float) -> int:
        """Wait for the end, and return the exit status."""
        status = self._read(timeout)
        if status is None:
            raise TimeoutError(f"process {self.pid} has not ended within {timeout} s")
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal unless the process has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended since
                os.kill(self.pid, number)

    def _read(self, timeout: float) -> int | None:
        if self._returncode is None and select.select([self._status], [], [], timeout)[0]:
            [self._returncode] = _STATUS.unpack(os.read(self._status, _STATUS.size))
            os.close(self._status)
        return self._returncode


@cache
def _forker(*patches: str) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Start the process that forks, once for this process and its patches; it ends when its socket is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        number = theirs.fileno()
        command = [sys.executable, "-m", __name__, str(number), *patches]
        process = subprocess.Popen(command, cwd=Path(__file__).parents[2], pass_fds=[number], stdout=subprocess.DEVNULL)
    return ours, process


def main() -> None:
    """Fork a process for each request through the socket whose number is the first argument; patches follow it."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in ("twisted.scripts._twistd_unix", "twisted.plugins.pkgrepo_plugin", "pkgrepo.tap", "pkgrepo.service"):
        import_module(name)
    if sys.argv[2:]:
        from tests.support.patched_twistd import patch

        patch(sys.argv[2:])
    gc.freeze()
    ended: dict[int, int] = {}  # descriptors for statuses by process id
    wakeup, wakeup_end = os.pipe()
    os.set_blocking(wakeup_end, False)
    signal.set_wakeup_fd(wakeup_end)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal, meant for the tests
    while True:
        ready = select.select([control, wakeup], [], [])[0]
        if wakeup in ready:
            os.read(wakeup, 4096)
            _reap(ended)
        if control in ready:
            data, descriptors, _, _ = socket.recv_fds(control, LARGEST_REQUEST, 2)
            if not data:
                return
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                os.dup2(descriptors[0], 1)
                os.dup2(descriptors[0], 2)
                for each in (control.detach(), wakeup, wakeup_end, *descriptors, *ended.values()):
                    os.close(each)
                _run(*json.loads(data))
                return
            os.close(descriptors[0])
            ended[pid] = descriptors[1]
            control.send(_STATUS.pack(pid))


def _reap(ended: dict[int, int]) -> None:
    while ended:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        descriptor = ended.pop(pid)
        os.write(descriptor, _STATUS.pack(os.waitstatus_to_exitcode(status)))
        os.close(descriptor)


def _run(arguments: list[str], environ: dict[str, str], folder: str) -> None:
    """Be twistd, in a fork."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = ["twistd", *arguments]
    _renew_state()
    from twisted.scripts.twistd import run

    run()


def _renew_state() -> None:
    """Replace what each process must have for itself."""
    from twisted.internet import reactor
    from twisted.internet.epollreactor import EPollReactor

    state: Any = reactor
    state.__dict__ = EPollReactor().__dict__  # a poll object and a waker of its own


if __name__ == "__main__":
    main()
