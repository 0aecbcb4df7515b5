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

from tests.bench.clients.load import LoadFailed, basic, send_json
from tests.bench.measure import ProcessTree

ROOT = Path(__file__).resolve().parents[3]
START_LIMIT_S = 120.0
STOP_LIMIT_S = 30.0
FILL_LIMIT_S = 1800.0
LOOPBACK = "127.0.0.1"


class Unavailable(Exception):
    """A contestant cannot run here; the text says what is missing."""


CONTESTANTS: dict[str, type[Contestant]] = {}  # all of the modules that were imported, by name


class Program:
    """
    A process that serves, in a folder of its own, where C{output.log} has what it says.

    C{options} are those of C{Popen}.
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
        """
        Return when it accepts connections.

        :raises Unavailable: it has ended, or does not in two minutes
        """
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

    C{name} is what tables call it. C{version} says what ran, once it has been started.
    """

    name: str
    version: str = ""

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
        The program and its arguments, to listen at C{port}; may write its configuration below C{folder} first.

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
        """End it and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


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


class Pkgrepo(Contestant):
    """This checkout, started by ``bin/serve`` with one process and without an access log, as its peers run."""

    user = "admin"
    password = "a-bench-of-our-own"
    storage = "main"

    def command(self) -> Sequence[str]:
        serve = ROOT / "bin" / "serve"
        if not serve.exists():
            raise Unavailable("bin/serve is missing")
        self.version = _revision()
        return [str(serve)]

    def environment(self) -> Mapping[str, str]:
        return {
            "PKGREPO_ADMIN_USER": self.user,
            "PKGREPO_ADMIN_PASSWORD": self.password,
            "PKGREPO_DATA__DIR": str(self.data),
            "PKGREPO_SERVER__LISTEN": f'["tcp:{self.port}:interface={LOOPBACK}"]',
            "PKGREPO_SERVER__WORKERS": "1",
            "PKGREPO_LOG__ACCESS": "false",
            "PKGREPO_LOG__LEVEL": "warn",
        }

    @property
    def data(self) -> Path:
        """Where it keeps everything."""
        return self.folder / "data"

    @property
    def admin(self) -> Mapping[str, str]:
        """The header fields of its administrator."""
        return basic(self.user, self.password)

    def ask(self, path: str, value: object) -> Any:
        """The answer of the management API to a POST by the administrator. :raises LoadFailed: it was refused"""
        return send_json("POST", f"{self.base_url}/api/{path}", value, self.admin)

    def add_repository(self, name: str, format_name: str, visibility: str = "public", **config: object) -> None:
        """Make a repository, hosted unless C{config} says otherwise."""
        values = {"name": name, "format": format_name, "visibility": visibility, "config": {"type": "Hosted", **config}}
        self.ask("repository", {"storage": self.storage, **values})

    def make_token(self, repositories: str) -> str:
        """A token that may read from and write to repositories of this pattern ("storage/name")."""
        reach = [{"repository": repositories, "actions": ["read", "write"]}]
        token: str = self.ask("user/token", {"name": "bench", "repositories": reach})["token"]
        return token


class PkgrepoHosting(Pkgrepo):
    """One with a repository of a format, and a token that may write to it, as a build machine has one."""

    repository = ""
    format = ""
    visibility = "public"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.token = ""

    def prepare(self) -> None:
        if not self.token:
            self.add_repository(self.repository, self.format, self.visibility)
            self.token = self.make_token(f"{self.storage}/{self.repository}")

    @property
    def repository_url(self) -> str:
        """The address of the repository, with no slash at its end."""
        return f"{self.base_url}/repositories/{self.storage}/{self.repository}"


class Filled(PkgrepoHosting):
    """One whose repository has C{releases} releases of other packages from the start."""

    releases = 0
    first = 0  # the number of the first one

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._filled = False

    def start(self) -> None:
        """
        As any contestant; at its first start, fill its catalog.

        The releases go through the project's own publishing command, a few hundred to a transaction, with no files
        behind them: a hundred thousand uploads would take the better part of an hour.
        """
        super().start()
        if not self._filled:
            self._filled = True
            self.stop()
            self.fill(str(self.releases))
            super().start()

    def fill(self, *arguments: str) -> None:
        """Publish releases in the repository of the stopped server, see L{fill}."""
        self.run_module("fill", str(self.data), f"{self.storage}/{self.repository}", *arguments)

    def run_module(self, module: str, *arguments: str) -> None:
        """
        Run a module of the benchmarks in the project's environment.

        :raises Unavailable: it fails
        """
        command = [str(ROOT / ".venv" / "bin" / "python"), "-m", f"tests.bench.{module}", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=FILL_LIMIT_S, check=False)
        if done.returncode:
            raise Unavailable(f"filling the catalog: {done.stderr.decode(errors='replace')[-300:]}")


def venv_program(name: str) -> str:
    """
    The path of a program that was installed with the peers.

    :raises Unavailable: it is not there
    """
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        raise Unavailable(f"{name} is not installed beside {sys.executable}")
    return str(path)


BUILT = ROOT / ".cache" / "bench"  # where bin/bench builds peers from their sources


def built(toolchain: str, name: str) -> str:
    """
    The path of a program.

    :raises Unavailable: it is not there; with the last line of what the build said
    """
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


def _revision() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    return done.stdout.strip()


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
