"""Runs two nodes on one PostgreSQL database and one folder of storages, behind HAProxy, which takes them in turn."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from pkgrepo.storage.secret_box import SecretBox
from tests.support.client_programs import absent, client_environment
from tests.support.postgresql import as_url
from tests.support.server_process import ServerProcess, twistd_process
from tests.support.timeouts import TIMEOUT_S

HAPROXY = "/usr/sbin/haproxy"
BALANCING = """
global
    maxconn 500
defaults
    mode http
    timeout connect 5s
    timeout client 5m
    timeout server 5m
    retries 2
    option redispatch
    option forwardfor
frontend clients
    bind fd@{socket}
    http-request set-var(txn.expects) req.hdr(expect)
    http-response set-header Connection close if {{ var(txn.expects) -m found }} {{ status ge 400 }}
    default_backend nodes
backend nodes
    balance roundrobin
    option httpchk GET /readyz
    default-server check inter 200ms fall 2 rise 1
{nodes}
"""
CONFIGURATION = """
[limits]
login_failures = 4
[[bootstrap.repositories]]
name = "py"
format = "python"
[[bootstrap.repositories]]
name = "npm"
format = "npm"
[[bootstrap.repositories]]
name = "images"
format = "docker"
"""


class Nodes:
    """
    Two nodes with data folders of their own. ``database`` is a connection string, ``storages`` is the shared folder;
    ``environ`` has more variables of both.

    ``processes`` are those that run, by the number of the node. With ``failing`` something that they need will fail,
    which they may log as errors; no request may end with an error that they did not expect.
    """

    def __init__(
        self,
        folder: Path,
        database: str,
        configuration: str = CONFIGURATION,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.storages = folder / "storages"
        self.database = database
        self.processes: dict[int, ServerProcess] = {}
        self.written: list[str] = []
        self.failing = False
        self._configuration = configuration
        self._environ = environ or {}
        for number in range(2):
            self.data(number).mkdir(parents=True)
        key = self.data(0) / "credentials.key"
        SecretBox.load(key)
        shutil.copy(key, self.data(1))

    def data(self, number: int) -> Path:
        """The data folder of a node."""
        return self.folder / f"node{number}" / "data"

    @property
    def settings(self) -> dict[str, str]:
        """The settings of what both share."""
        return {"data.storages": str(self.storages), "database.url": as_url(self.database)}

    def begin(
        self, number: int, environ: Mapping[str, str] | None = None, launcher: Sequence[str] | None = None
    ) -> ServerProcess:
        """Begin to start a node, with more variables of its environment; ``launcher`` as of ``twistd_process``."""
        folder = self.data(number).parent
        (folder / "pkgrepo.toml").write_text(self._configuration)
        variables = {
            **{f"PKGREPO_{name.upper().replace('.', '__')}": value for name, value in self.settings.items()},
            "PKGREPO_SERVER__TRUSTED_PROXIES": '["127.0.0.1/32"]',
            **self._environ,
            **(environ or {}),
        }
        process = twistd_process(
            folder,
            "--config",
            "pkgrepo.toml",
            environ=variables,
            patched=False,
            on_line=self.written.append,
            launcher=launcher,
        )
        self.processes[number] = process
        return process

    def start(self, number: int, environ: Mapping[str, str] | None = None) -> ServerProcess:
        """Start a node."""
        process = self.begin(number, environ)
        process.wait_ready()
        return process

    def start_all(self) -> None:
        """Start both."""
        for number in range(2):
            self.begin(number)
        for process in self.processes.values():
            process.wait_ready()

    def stop_one(self, number: int) -> None:
        """Stop a node as a service manager does."""
        process = self.processes.pop(number)
        assert process.stop() in (0, -signal.SIGTERM), process.output

    def kill(self, number: int) -> None:
        """Kill a node."""
        self.processes.pop(number).kill()

    def url(self, number: int) -> str:
        """The address of a node."""
        return self.processes[number].url

    @property
    def output(self) -> str:
        """What all nodes have written, in the order in which it came."""
        return "".join(self.written)

    def stop(self) -> None:
        """Stop both nodes as a service manager does; a traceback in the output of any is an error."""
        for number in list(self.processes):
            self.stop_one(number)
        errors = re.findall(r"request \S+ failed" if self.failing else "Traceback", self.output)
        assert not errors, self.output


class BalancedNodes:
    """Two nodes as one server: ``url`` is the address of HAProxy; the rest is as of ``ServerProcess``."""

    node_count = 2

    def __init__(self, nodes: Nodes, url: str) -> None:
        self.nodes = nodes
        self.url = url.rstrip("/")
        self.folder = nodes.folder
        self.storages = nodes.storages

    @property
    def output(self) -> str:
        return self.nodes.output

    @property
    def catalog_options(self) -> list[str]:
        """See ``ServerProcess``."""
        values = {"data.dir": self.nodes.data(0), **self.nodes.settings}
        return [option for name, value in values.items() for option in ("--set", f"{name}={value}")]

    def lines(self, text: str, count: int) -> list[str]:
        """Wait until ``text`` was written ``count`` times by both together; the lines that contain it."""
        ends_at = time.monotonic() + TIMEOUT_S
        while self.output.count(text) < count and time.monotonic() < ends_at:
            time.sleep(0.02)
        return [line for line in self.output.splitlines() if text in line]

    @property
    def pid(self) -> int:
        """The process of the first node."""
        return self.nodes.processes[0].pid


@contextmanager
def two_nodes(
    folder: Path, server: str, configuration: str = CONFIGURATION, environ: Mapping[str, str] | None = None
) -> Iterator[Nodes]:
    """Run two nodes on a new database of a PostgreSQL server; they are stopped at the end."""
    name = f"nodes_{time.monotonic_ns()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    nodes = Nodes(folder, server.replace("dbname=postgres", f"dbname={name}"), configuration, environ)
    try:
        nodes.start_all()
        yield nodes
        nodes.stop()
    finally:
        for process in nodes.processes.values():
            process.kill()
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def balanced(nodes: Nodes) -> Iterator[str]:
    """Run HAProxy before nodes that run. Yields its address; of two requests, one goes to each node."""
    if not Path(HAPROXY).exists():
        absent(f"there is no {HAPROXY} (bin/test installs it when it runs as root)")
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    places = [urlsplit(process.url).netloc for process in nodes.processes.values()]
    lines = "\n".join(f"    server node{number} {place}" for number, place in enumerate(places))
    settings = nodes.folder / "haproxy.cfg"
    settings.write_text(BALANCING.format(socket=listening.fileno(), nodes=lines))
    with (nodes.folder / "haproxy.log").open("wb") as log:
        process = subprocess.Popen(
            [HAPROXY, "-db", "-f", settings],
            env=client_environment(nodes.folder),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[listening.fileno()],
        )
    try:
        yield "http://{}:{}".format(*listening.getsockname())
    finally:
        process.kill()
        process.wait(TIMEOUT_S)
        listening.close()
