"""A server in a process of its own, started as its users start it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.timeouts import TIMEOUT_S

ADDRESS = re.compile(r"answers at (\S+?)/? ")
TWISTD = [str(Path(sys.executable).with_name("twistd"))]  # the command, which --catalog-delay replaces
ROOT = Path(__file__).parents[2]


def clean_environment(**variables: str) -> dict[str, str]:
    """This process's environment without anything that would configure a server or speak to a service manager."""
    ours = re.compile(r"(PKGREPO_|NOTIFY_SOCKET$|LISTEN_|WATCHDOG_)")
    return {name: value for name, value in os.environ.items() if not ours.match(name)} | variables


class ServerProcess:
    """
    A running command that announces an address on its standard output.

    ``url`` is that address without its last slash; ``output`` is all that it has written so far; ``folder`` is where it
    runs.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str],
        folder: Path,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.output = ""
        self.folder = folder
        self._announced = threading.Event()
        self._grown = threading.Condition()
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
        """The address, once it was announced; an AssertionError with the output when the process ends before that."""
        self._announced.wait(TIMEOUT_S)
        found = ADDRESS.search(self.output)
        if found is None:
            self.kill()
            raise AssertionError(f"the server announced no address:\n{self.output}")
        return found[1]

    @property
    def url(self) -> str:
        return self.wait_ready()

    def lines(self, text: str, count: int) -> list[str]:
        """The lines of its output that hold ``text``, once there are ``count`` of them (the log is flushed in time)."""
        with self._grown:
            self._grown.wait_for(lambda: self.output.count(text) >= count, TIMEOUT_S)
        return [line for line in self.output.splitlines() if text in line]

    def stop(self) -> int:
        """Ask it to end as a service manager would; its exit status."""
        return self.end(signal.SIGTERM)

    def kill(self) -> int:
        """End it without warning."""
        return self.end(signal.SIGKILL)

    def end(self, number: int) -> int:
        """Send the signal unless it has ended already; its exit status, negative for a signal."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        status = self._process.wait(TIMEOUT_S)
        self._reader.join(TIMEOUT_S)
        return status

    def wait(self) -> int:
        """Its exit status, once it ends by itself."""
        status = self._process.wait(TIMEOUT_S)
        self._reader.join(TIMEOUT_S)
        return status

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                with self._grown:
                    self.output += line
                    self._grown.notify_all()
                if ADDRESS.search(line):
                    self._announced.set()
        self._announced.set()


def twistd_process(
    folder: Path, *options: str, environ: Mapping[str, str] | None = None, pass_fds: Sequence[int] = ()
) -> ServerProcess:
    """
    ``twistd -n pkgrepo`` from this checkout, with its data below ``folder``, on a free port.

    ``environ`` changes its settings; an empty value leaves out what is set here otherwise.
    """
    defaults = {
        "PYTHONPATH": str(ROOT),
        "PKGREPO_DATA__DIR": str(folder / "data"),
        "PKGREPO_SERVER__LISTEN": "tcp:0:interface=127.0.0.1",
        "PKGREPO_ADMIN_PASSWORD": "correct horse battery",
    }
    variables = {name: value for name, value in (defaults | dict(environ or {})).items() if value}
    return ServerProcess(
        [*TWISTD, "--nodaemon", "--pidfile=", "pkgrepo", *options],
        environ=clean_environment(**variables),
        folder=folder,
        pass_fds=pass_fds,
    )


@contextmanager
def restarts(folder: Path, configuration: str = "") -> Iterator[Callable[..., ServerProcess]]:
    """
    Starts servers, one after the other or beside each other, on one data folder; kills them all.

    ``start(configuration)`` starts one with another configuration. None of them may have written a traceback.
    """
    settings = folder / "pkgrepo.toml"
    processes: list[ServerProcess] = []

    def start(configuration: str = configuration) -> ServerProcess:
        settings.write_text(configuration)
        processes.append(twistd_process(folder, "--config", str(settings)))
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
def running(folder: Path, configuration: str = "") -> Iterator[ServerProcess]:
    """One server with this configuration; it is stopped as a service manager would, and without a traceback."""
    with restarts(folder, configuration) as start:
        process = start()
        yield process
        assert process.stop() in (0, -signal.SIGTERM), process.output  # twistd ends by the signal it got
