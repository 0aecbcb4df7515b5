"""
A server that takes part: started on loopback with a folder of its own, watched as a process tree, stopped by its id.

What it is loaded with, and at which addresses, belongs to a format; see ``python``.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.clients.load import LoadFailed, Target
from tests.bench.measure import ProcessTree

ROOT = Path(__file__).resolve().parents[3]
START_LIMIT_S = 120.0
STOP_LIMIT_S = 30.0
LARGE_FILE = 1 << 20  # bytes
LOOPBACK = "127.0.0.1"


class Unavailable(Exception):
    """A contestant cannot run here; the text says what is missing."""


CONTESTANTS: dict[str, type[Contestant]] = {}  # all of the modules that were imported, by name


class Program:
    """
    A process that serves, in a folder of its own, where ``output.log`` has what it says.

    ``options`` are those of ``Popen``.
    """

    def __init__(self, folder: Path, command: Sequence[str | Path], **options: Any) -> None:
        self._folder = folder
        with (folder / "output.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(each) for each in command],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **options,
            )
        self.pid = self._process.pid

    def await_socket(self, family: int, address: Any) -> None:
        """Return when it accepts connections. :raises Unavailable: it has ended, or does not in two minutes"""
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError), socket.socket(family) as probe:
                probe.settimeout(1)
                probe.connect(address)
                return
            time.sleep(0.02)
        self.stop()
        raise Unavailable(f"{self._folder.name} does not answer: {self.last_lines()}")

    def last_lines(self) -> str:
        """The end of what it said."""
        text = (self._folder / "output.log").read_text(errors="replace")
        return " / ".join(text.strip().splitlines()[-3:])

    def stop(self) -> None:
        """End it, with its group if it does not end in time."""
        self._process.terminate()
        try:
            self._process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)  # a session of its own: nobody else is in the group
            self._process.wait(STOP_LIMIT_S)


class Contestant(ABC):
    """
    One server process with its folder, from L{start} to L{stop}.

    ``name`` is what tables call it. ``version`` says what ran, once it has been started. ``places`` are the paths of
    its repositories by kind of packages, where these are not at its root.
    """

    name: str
    version: str = ""
    places: Mapping[str, str] = {}
    pages = "/simple"  # where the simple pages of Python projects are, below their repository

    def __init_subclass__(cls) -> None:
        if "name" in cls.__dict__:
            CONTESTANTS[cls.name] = cls

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self._process: Program | None = None

    @abstractmethod
    def command(self) -> Sequence[str]:
        """
        The program and its arguments, to listen at ``port``; may write its configuration below ``folder`` first.

        :raises Unavailable: it is not installed
        """

    def environment(self) -> Mapping[str, str]:
        """Variables that it needs besides ours."""
        return {}

    def prepare(self) -> None:  # noqa: B027 - most need nothing
        """Do what is to be done once it answers, such as making accounts."""

    @property
    def base_url(self) -> str:
        """Its address, with no slash at its end."""
        return f"http://{LOOPBACK}:{self.port}"

    def place(self, kind: str) -> str:
        """The address of its repository for a kind of packages, with no slash at its end."""
        return f"{self.base_url}{self.places.get(kind, '')}"

    def target(self, kind: str) -> Target:
        """Where packages of a kind are published, and what writers send; nothing by default."""
        return Target(self.place(kind))

    def page_url(self, project: str) -> str:
        """The address of a Python project's simple page, in its canonical spelling."""
        return f"{self.place('python')}{self.pages}/{project}/"

    @property
    def tree(self) -> ProcessTree:
        """Its processes; it must have been started."""
        if self._process is None:
            raise LoadFailed(f"{self.name} is not running")
        return ProcessTree(self._process.pid)

    def start(self) -> None:
        """
        Run it in its folder, and return when it answers and is prepared.

        :raises Unavailable: it is not installed, or ended, or did not answer in two minutes
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._process = process = Program(self.folder, self.command(), env={**os.environ, **self.environment()})
        try:
            process.await_socket(socket.AF_INET, (LOOPBACK, self.port))
            self.prepare()
        except (LoadFailed, OSError, http.client.HTTPException) as problem:
            self.stop()
            raise Unavailable(f"{self.name}: {problem}; it said: {process.last_lines()}") from problem
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it; its folder stays. Does nothing when it is not running."""
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    def discard(self) -> None:
        """
        End it and remove its large files. The others are removed at the end of all, with the folder that it is in.

        For a minute ext4 gives no new file the inode of a removed one, and looks at each: after some thousand were
        removed, publishes of whoever is measured next take twice the processor time.
        """
        self.stop()
        for where, _, names in os.walk(self.folder):
            for name in names:
                with contextlib.suppress(OSError):
                    path = Path(where, name)
                    if path.lstat().st_size >= LARGE_FILE:
                        path.unlink()


def variant(name: str, *bases: type[Contestant], **values: Any) -> type[Any]:
    """A contestant of these classes under a name of its own, with other values of their class attributes."""
    return type(name, bases, {"name": name, **values})


class Nginx(Contestant):
    """
    The floor: files served by one worker with sendfile, no log.

    What it serves is put there by L{mirror}, so that it answers with the very bytes of another contestant's answer.
    """

    name = "nginx"
    directives = ""  # further lines of the server's configuration

    def command(self) -> Sequence[str]:
        program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if program is None:
            raise Unavailable("nginx is not installed")
        self.version = _last_word(program, "-v").removeprefix("nginx/")
        (self.folder / "files").mkdir(exist_ok=True)
        configuration = self.folder / "nginx.conf"
        values = {"host": LOOPBACK, "port": self.port, "user": _user_line(), "directives": self.directives}
        configuration.write_text(_NGINX.format(folder=self.folder, **values))
        return [program, "-p", str(self.folder), "-c", str(configuration), "-e", str(self.folder / "error.log")]

    def mirror(self, name: str, content: bytes | Path) -> str:
        """The address at which these bytes, or the bytes of this file, are served from now on."""
        path = self.folder / "files" / name
        path.unlink(missing_ok=True)
        if isinstance(content, Path):
            path.symlink_to(content)
        else:
            path.write_bytes(content)
        return f"{self.base_url}/{name}"


def venv_program(name: str) -> str:
    """The path of a program that was installed with the peers. :raises Unavailable: it is not there"""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise Unavailable(f"{name} is not installed beside {sys.executable}")
    return str(path)


BUILT = ROOT / ".cache" / "bench"  # where bin/bench builds peers from their sources


def built(toolchain: str, name: str) -> str:
    """The path of a program. :raises Unavailable: it is not there; with the last line of what the build said"""
    program = BUILT / toolchain / "bin" / name
    if not program.exists():
        log = BUILT / toolchain / f"{name}.log"
        lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
        raise Unavailable(f"{name} is not built: {lines[-1] if lines else 'bin/bench was not asked to, see there'}")
    return str(program)


def built_version(toolchain: str, name: str) -> str:
    """The version that was built, or nothing."""
    stamp = BUILT / toolchain / f"{name}.installed"
    return stamp.read_text().split()[0].partition("@")[2].removeprefix("v") if stamp.exists() else ""


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens at."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _last_word(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    return (done.stdout + done.stderr).split()[-1]


def _user_line() -> str:
    # Started by root, a worker would change to a user who may not enter our folders.
    return "user root;" if os.geteuid() == 0 else ""


_NGINX = """
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
events {{ worker_connections 512; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    default_type application/octet-stream;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {host}:{port};
        root {folder}/files;
        {directives}
    }}
}}
"""
