"""
Runs twistd and pkgrepo in forks of a process that has imported them, which saves each a second of processor time.

A request is a datagram with the program, the arguments, the environment and the working directory as JSON, and four
descriptors: standard input, output and error, and one for the exit status. The answer is the process id. The status,
negative for a signal, is written when the process has ended.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

from tests.support.added_formats import add_formats
from tests.support.quick_starts import compile_routes, make_catalog, quicken
from tests.support.timeouts import TIMEOUT_S

LARGEST_REQUEST = 128 * 1024  # bytes
_STATUS = struct.Struct(">i")
_PROGRAM = str(Path(sys.executable).with_name("pkgrepo"))
_AS_FORKS = (  # with what forks have
    "import sys; sys.argv[0] = 'pkgrepo'; from tests.support.added_formats import add_formats; add_formats();"
    "from pkgrepo.cli import main; main()"
)
_OF_INTERPRETER = ("PYTHON", "LD_", "MALLOC_", "LC_", "LANG")  # beginnings of variables that are read at its start
_OF_OTHERS = ("PYTHONPATH", "PYTHON_KEYRING_BACKEND")  # of forks and of other programs


class ForkedProcess:
    """
    A program in a fork, with those members of ``Popen`` that tests use.

    ``command`` begins with ``twistd`` or ``pkgrepo``; ``streams`` are descriptors for its standard input, output and
    error; ``patches`` as of ``patched_twistd``.
    """

    def __init__(
        self,
        command: Sequence[str],
        streams: tuple[int, int, int],
        *,
        environ: Mapping[str, str],
        folder: Path,
        patches: Sequence[str] = (),
    ) -> None:
        self._status, status_end = os.pipe()
        request = json.dumps([list(command), dict(environ), str(folder)]).encode()
        try:
            self.pid = _forker(*patches).fork(request, [*streams, status_end])
        finally:
            os.close(status_end)
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
            data = os.read(self._status, _STATUS.size)
            os.close(self._status)
            if not data:
                raise RuntimeError(f"the process that forks has ended, so the end of process {self.pid} is not known")
            [self._returncode] = _STATUS.unpack(data)
        return self._returncode


class ForkedTwistd(ForkedProcess):
    """twistd in a fork; ``stdout`` is what it writes to its standard output and error."""

    def __init__(
        self, arguments: Sequence[str], *, environ: Mapping[str, str], folder: Path, patches: Sequence[str] = ()
    ) -> None:
        output, end = os.pipe()
        self.stdout: IO[str] = open(output, encoding="utf-8", errors="replace")  # noqa: SIM115 - its reader closes it
        try:
            with open(os.devnull, "rb") as nothing:
                streams = (nothing.fileno(), end, end)
                super().__init__(["twistd", *arguments], streams, environ=environ, folder=folder, patches=patches)
        finally:
            os.close(end)


def run_pkgrepo(
    *arguments: str | Path, environ: Mapping[str, str], folder: Path | None = None, told: str = ""
) -> subprocess.CompletedProcess[str]:
    """
    Run ``pkgrepo`` until it exits; ``told`` is its standard input.

    It is a fork, unless coverage is measured or variables for the interpreter differ from those of this process.
    """
    command, place = list(map(str, arguments)), folder or Path.cwd()
    given = [each for each in environ if each.startswith(_OF_INTERPRETER) and each not in _OF_OTHERS]
    if "coverage" in sys.modules or any(os.environ.get(each) != environ[each] for each in given):
        measured = "coverage" in sys.modules
        return subprocess.run(
            [*([sys.executable, "-c", _AS_FORKS] if measured else [_PROGRAM]), *command],
            env={**environ, "PYTHONPATH": str(Path(__file__).parents[2])} if measured else dict(environ),
            cwd=place,
            input=told,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    with TemporaryFile() as question, TemporaryFile() as output, TemporaryFile() as errors:
        question.write(told.encode())
        question.seek(0)
        streams = (question.fileno(), output.fileno(), errors.fileno())
        process = ForkedProcess(["pkgrepo", *command], streams, environ=environ, folder=place)
        try:
            status = process.wait(TIMEOUT_S)
        finally:
            process.send_signal(signal.SIGKILL)
        for each in (output, errors):
            each.seek(0)
        return subprocess.CompletedProcess(command, status, output.read().decode(), errors.read().decode())


class _Forker:
    """The process that forks; it ends when its socket is closed. Threads may use it at the same time."""

    def __init__(self, patches: Sequence[str]) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(TIMEOUT_S)
        self._lock = threading.Lock()
        with theirs:
            number = theirs.fileno()
            command = [sys.executable, "-m", __name__, str(number), *patches]
            self._process = subprocess.Popen(
                command,
                cwd=Path(__file__).parents[2],
                pass_fds=[number],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def fork(self, request: bytes, descriptors: Sequence[int]) -> int:
        """Return the id of a new process."""
        with self._lock:
            try:
                socket.send_fds(self._control, [request], descriptors)
                answer = self._control.recv(_STATUS.size)
            except BaseException:  # a late answer would be taken for that to the next request
                self._process.kill()
                _forker.cache_clear()
                raise
        if not answer:
            raise RuntimeError(f"the process that forks has ended with {self._process.wait(TIMEOUT_S)}")
        [pid] = _STATUS.unpack(answer)
        return int(pid)


@cache
def _forker(*patches: str) -> _Forker:
    """One for this process and these patches."""
    return _Forker(patches)


def main() -> None:
    """Fork a process for each request through the socket whose number is the first argument; patches follow it."""
    control = socket.socket(fileno=int(sys.argv[1]))
    _import_programs()
    add_formats()
    quicken()
    compile_routes()
    with TemporaryDirectory() as folder:
        make_catalog(Path(folder))
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
            data, descriptors, _, _ = socket.recv_fds(control, LARGEST_REQUEST, 4)
            if not data:
                return
            *streams, status = descriptors
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for number, each in enumerate(streams):
                    os.dup2(each, number)
                for each in (control.detach(), wakeup, wakeup_end, *descriptors, *ended.values()):
                    os.close(each)
                _run(*json.loads(data))
                return
            for each in streams:
                os.close(each)
            ended[pid] = status
            control.send(_STATUS.pack(pid))


def _import_programs() -> None:
    from pkgrepo import client, commands

    for name in ("twisted.scripts._twistd_unix", "twisted.plugins.pkgrepo_plugin", "pkgrepo.tap", "pkgrepo.service"):
        import_module(name)
    for package in (client, commands):
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(each.name)


def _reap(ended: dict[int, int]) -> None:
    while ended:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        descriptor = ended.pop(pid)
        with suppress(BrokenPipeError):  # the test does not want to know
            os.write(descriptor, _STATUS.pack(os.waitstatus_to_exitcode(status)))
        os.close(descriptor)


def _run(command: list[str], environ: dict[str, str], folder: str) -> None:
    """Be the program, in a fork."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    _renew_state()
    if command[0] == "twistd":
        sys.argv = command
        from twisted.scripts.twistd import run
    else:
        sys.argv = [_PROGRAM, *command[1:]]
        sys.modules["__main__"].__package__ = None  # of which click would make the name of the program
        from pkgrepo.cli import main as run
    try:
        run()
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        _end(ended.code or 0)
    _end(0)


def _end(status: int) -> None:
    """
    End as an interpreter does, and as forks of multiprocessing do: without destroying all modules.

    That costs five times the processor time of a command.
    """
    threading._shutdown()  # waits for threads
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(status)  # which says that the output is lost
    os._exit(status)


def _renew_state() -> None:
    """Replace what each process must have for itself."""
    from twisted.internet import reactor
    from twisted.internet.epollreactor import EPollReactor

    state: Any = reactor
    state.__dict__ = EPollReactor().__dict__  # a poll object and a waker of its own


if __name__ == "__main__":
    main()
