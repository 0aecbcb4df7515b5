"""Runs servers in processes of their own, started by twistd as users start them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

from tests.support import server_databases
from tests.support.forked_programs import ForkedTwistd
from tests.support.timeouts import TIMEOUT_S
from tests.support.workers import kill, workers_of

ADDRESS = re.compile(r"answers at (\S+?)/? ")
_PROGRAM = str(Path(sys.executable).with_name("twistd"))
PATCHES: list[str] = []  # kinds and values, see patched_twistd; --catalog-delay, --postgresql and --s3 add theirs
LAUNCHER: list[str] = []  # the beginning of the command of a server; --confined has that of unit_filters
WORKERS = ["1"]  # the number of processes of a server that does not say it; --workers replaces it
ROOT = Path(__file__).parents[2]


def clean_environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without variables that configure a server or belong to a service manager."""
    ours = re.compile(r"(PKGREPO_|NOTIFY_SOCKET$|LISTEN_|WATCHDOG_)")
    return {name: value for name, value in os.environ.items() if not ours.match(name)} | variables


def twistd_command(patches: Sequence[str] | None = None) -> list[str]:
    """Return the command without arguments; in processes of their own servers have the formats that forks have."""
    given = PATCHES if patches is None else patches
    patched = given or LAUNCHER or "coverage" in sys.modules
    return [sys.executable, "-m", "tests.support.patched_twistd", *given] if patched else [_PROGRAM]


class ServerProcess:
    """
    A running command that announces an address on its standard output; with ``forked`` it is twistd, see ForkedTwistd.

    ``url`` is that address without its last slash; ``output`` is everything written so far; ``folder`` is its working
    directory, and ``storages`` has the storages made without a path. ``on_line`` is called with each line of the
    output, in a thread.
    """

    node_count = 1

    def __init__(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str],
        folder: Path,
        pass_fds: Sequence[int] = (),
        forked: bool = False,
        patches: Sequence[str] = (),
        on_line: Callable[[str], object] = str,
    ) -> None:
        self._written = StringIO()  # to append to a text of many MB would copy it for each line
        self._on_line = on_line
        self.folder = folder
        self.storages = folder / "data" / "storages"
        self._announced = threading.Event()
        self._grown = threading.Condition()
        self._process: subprocess.Popen[str] | ForkedTwistd
        if forked:
            arguments = command[command.index("--nodaemon") :]
            self._process = ForkedTwistd(arguments, environ=environ, folder=folder, patches=patches)
        else:
            self._process = subprocess.Popen(
                command,
                env=dict(environ),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                pass_fds=pass_fds,
            )
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_ready(self) -> str:
        """Wait for the address, and return it; AssertionError with the output if the process exits before that."""
        self._announced.wait(TIMEOUT_S)
        found = ADDRESS.search(self.output)
        if found is None:
            self.kill()
            raise AssertionError(f"the server announced no address:\n{self.output}")
        return found[1]

    @property
    def output(self) -> str:
        return self._written.getvalue()

    @property
    def url(self) -> str:
        return self.wait_ready()

    @property
    def catalog_options(self) -> list[str]:
        """Options of commands that work without the server, on its catalog."""
        data = self.folder / "data"
        urls = [f"database.url={server_databases.url_of(each, data)}" for each in server_databases.SERVER]
        return [option for each in (f"data.dir={data}", *urls) for option in ("--set", each)]

    def lines(self, text: str, count: int) -> list[str]:
        """Wait until ``text`` was written ``count`` times, and return the lines of the output that contain it."""
        with self._grown:
            self._grown.wait_for(lambda: self.output.count(text) >= count, TIMEOUT_S)
        return [line for line in self.output.splitlines() if text in line]

    def stop(self) -> int:
        """Send SIGTERM, as a service manager does, and wait. Returns the exit status."""
        return self.end(signal.SIGTERM)

    def kill(self) -> int:
        """
        Send SIGKILL, with C{--workers} also to the workers, and wait. Returns the exit status.

        The workers of a master that is killed alone would stop in order.
        """
        if WORKERS != ["1"] and self._process.poll() is None:
            for pid in [self.pid, *workers_of(self.pid)]:
                kill(pid)
        return self.end(signal.SIGKILL)

    def end(self, number: int) -> int:
        """Send a signal unless the process has exited, and wait. Returns the exit status, negative for a signal."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        status = self._process.wait(TIMEOUT_S)
        self._reader.join(TIMEOUT_S)
        return status

    def wait(self) -> int:
        """Wait until the process exits by itself. Returns the exit status."""
        status = self._process.wait(TIMEOUT_S)
        self._reader.join(TIMEOUT_S)
        return status

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                with self._grown:
                    self._written.write(line)
                    self._on_line(line)
                    self._grown.notify_all()
                if ADDRESS.search(line):
                    self._announced.set()
        self._announced.set()


def twistd_process(
    folder: Path,
    *options: str,
    environ: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    patched: bool = True,
    on_line: Callable[[str], object] = str,
    launcher: Sequence[str] | None = None,
) -> ServerProcess:
    """
    Start ``twistd -n pkgrepo`` from this checkout, with its data below ``folder``, on a free port.

    ``environ`` has additional variables; an empty value removes a variable that is set by default. The process is a
    fork, unless ``pass_fds``, ``launcher`` or variables for the interpreter need one of its own, or coverage is
    measured. Without ``patched``, options of the tests that patch catalogs do not apply. For ``on_line`` see
    ``ServerProcess``. ``launcher`` is the beginning of a command that runs the process, such as one that confines it.
    """
    patches = PATCHES if patched else []
    launcher = LAUNCHER if launcher is None else launcher
    own = bool(pass_fds or launcher) or any(name.startswith(("PYTHON", "LD_", "MALLOC_")) for name in environ or ())
    defaults = {
        "PYTHONPATH": str(ROOT),
        "PKGREPO_DATA__DIR": str(folder / "data"),
        "PKGREPO_SERVER__LISTEN": "tcp:0:interface=127.0.0.1",
        "PKGREPO_ADMIN_PASSWORD": "correct horse battery",
        "PKGREPO_PROXY__STORE_DELAY": "0",
        "PKGREPO_SERVER__WORKERS": WORKERS[0],
    }
    settings = defaults | dict(environ or {})
    if patched and settings["PKGREPO_SERVER__WORKERS"] != "1":  # each worker reads the settings, too
        for server in server_databases.SERVER:
            url = server_databases.url_of(server, Path(settings["PKGREPO_DATA__DIR"]))
            settings.setdefault("PKGREPO_DATABASE__URL", url)
    variables = {name: value for name, value in settings.items() if value}
    return ServerProcess(
        [*launcher, *twistd_command(patches), "--nodaemon", "--pidfile=", "pkgrepo", *options],
        environ=clean_environment(**variables),
        folder=folder,
        pass_fds=pass_fds,
        on_line=on_line,
        forked=not own and "coverage" not in sys.modules,
        patches=patches,
    )


@contextmanager
def restarts(
    folder: Path, configuration: str = "", environ: Mapping[str, str] | None = None
) -> Iterator[Callable[..., ServerProcess]]:
    """
    Start servers on one data folder, one after another or at the same time; they are killed at the end.

    Yields ``start(configuration)``. A traceback in the output of any of them fails the test. ``environ`` has additional
    variables, see ``twistd_process``.
    """
    settings = folder / "pkgrepo.toml"
    processes: list[ServerProcess] = []

    def start(configuration: str = configuration) -> ServerProcess:
        settings.write_text(configuration)
        processes.append(twistd_process(folder, "--config", str(settings), environ=environ))
        processes[-1].wait_ready()
        return processes[-1]

    try:
        yield start
    finally:
        for process in processes:
            process.kill()
    for process in processes:
        assert "Traceback" not in process.output, process.output


@contextmanager
def running(folder: Path, configuration: str = "", environ: Mapping[str, str] | None = None) -> Iterator[ServerProcess]:
    """
    Run one server with this configuration, and stop it with SIGTERM; a traceback in its output fails the test.

    ``environ`` has additional variables, see ``twistd_process``.
    """
    with restarts(folder, configuration, environ) as start:
        process = start()
        yield process
        assert process.stop() in (0, -signal.SIGTERM), process.output  # twistd re-raises the signal that stopped it
