"""Runs a PostgreSQL server for tests, from Debian's package, with a temporary folder and only a Unix socket."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.client_programs import absent, client_environment
from tests.support.timeouts import TIMEOUT_S
from tests.support.workers import workers_of

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
UNPRIVILEGED = {"user": "nobody", "group": "nogroup", "extra_groups": []}  # PostgreSQL refuses to be run by root
# The default collation is not bytewise, so that tests find a column that lacks COLLATE "C".
LOCALE = ("--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US")
NEW = (PROGRAMS / "initdb", "-D", "data", "--no-sync", "--auth=trust", "--username=pkgrepo", *LOCALE)
NEW_ON_DISK = tuple(each for each in NEW if each != "--no-sync")
SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "max_connections": 300,
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_keep_size": "256MB",  # for a replica that is away; each database that is created or dropped is a checkpoint
}
# With these a power cut loses nothing that was committed.
SAFE = {
    "recovery_init_sync_method": "syncfs",
    "autovacuum": "on",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
}
# On tmpfs where the folders of tests are: a database has 700 files, which cost much processor time on a disk.
PLACE = os.environ.get("PYTEST_DEBUG_TEMPROOT")


class PostgresServer:
    """
    A server, which can be killed and started again; ``address`` is the connection string of an empty database.

    ``settings`` replace some of ``SETTINGS``.
    """

    def __init__(self, folder: Path, make: Sequence[str | Path], settings: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._settings = {**SETTINGS, **(settings or {}), "unix_socket_directories": str(folder)}
        self.address = f"host={folder} port={self._settings['port']} user=pkgrepo dbname=postgres"
        self._owner = _owner(folder)
        folder.chmod(0o755)  # clients that have given up the rights of root need the socket
        _make(folder, self._owner, make)
        self._process = self._spawn()

    def wait_ready(self) -> None:
        """Wait until it answers."""
        until = time.monotonic() + TIMEOUT_S
        while time.monotonic() < until:
            try:
                psycopg.connect(self.address).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
            if self._process.poll() is not None:
                break
        pytest.fail(f"PostgreSQL does not start:\n{(self._folder / 'log').read_text(errors='replace')}")

    def kill(self) -> None:
        """Kill it with SIGKILL: connections break, and what was not written to the file system is lost."""
        self.signal(signal.SIGKILL)
        self._process.wait(TIMEOUT_S)

    def restart(self) -> None:
        """Start it again after it was killed."""
        until = time.monotonic() + TIMEOUT_S
        self._process = self._spawn()
        while self._ended_soon() and time.monotonic() < until:  # processes of the earlier one have not ended yet
            self._process = self._spawn()
        self.wait_ready()

    def stop(self, number: int = signal.SIGINT) -> None:
        """Stop it; it does not wait for clients. With SIGQUIT it does not even write what it has in memory."""
        self._process.send_signal(number)
        self._process.wait(TIMEOUT_S)

    @property
    def pids(self) -> list[int]:
        """All its processes, the one that starts the others first; none when that has ended."""
        pid = self._process.pid
        return [] if self._process.poll() is not None else [pid, *workers_of(pid)]

    def signal(self, number: int) -> None:
        """Send a signal to all its processes, each of which has a session of its own."""
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def admit(self, network: str) -> None:
        """Let clients of a network in, as those of the socket, when it starts next."""
        with (self._folder / "data" / "pg_hba.conf").open("a") as file:
            file.write(f"host all all {network} trust\n")
            file.flush()
            os.fsync(file.fileno())

    def _ended_soon(self) -> bool:
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _spawn(self) -> subprocess.Popen[bytes]:
        options = [f"--{name}={value}" for name, value in self._settings.items()]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [PROGRAMS / "postgres", "-D", self._folder / "data", *options],
                env=client_environment(self._folder / "home"),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **self._owner,
            )


@contextmanager
def postgresql_server() -> Iterator[PostgresServer]:
    """
    Run a server with an empty database.

    If PostgreSQL is not installed, the test is skipped, or fails if ``PKGREPO_REQUIRE_CLIENTS`` is 1.
    """
    if not (PROGRAMS / "postgres").exists():
        absent(f"there is no PostgreSQL in {PROGRAMS} (bin/test installs it when it runs as root)")
    with tempfile.TemporaryDirectory(prefix="pg", dir=PLACE) as name:  # paths of Unix sockets have at most 107 bytes
        server = PostgresServer(Path(name), NEW)
        try:
            server.wait_ready()
            yield server
        finally:
            server.stop()


@contextmanager
def replica_of(primary: PostgresServer) -> Iterator[PostgresServer]:
    """Run a streaming replica of a server."""
    with tempfile.TemporaryDirectory(prefix="pg", dir=PLACE) as name:
        command = [PROGRAMS / "pg_basebackup", "-D", "data", "--write-recovery-conf", "--checkpoint=fast", "--no-sync"]
        server = PostgresServer(Path(name), [*command, f"--dbname={primary.address}"])
        try:
            server.wait_ready()
            yield server
        finally:
            server.signal(signal.SIGCONT)
            server.stop()


def as_url(address: str) -> str:
    """Return a connection string in the form that ``database.url`` has."""
    return "postgresql:///?" + urlencode(conninfo_to_dict(address))


def _owner(folder: Path) -> dict[str, Any]:
    """Return the arguments of ``Popen`` that run the cluster as the current user, or unprivileged instead of root."""
    if os.geteuid():
        return {}
    shutil.chown(folder, UNPRIVILEGED["user"], UNPRIVILEGED["group"])
    return UNPRIVILEGED


def _make(folder: Path, owner: dict[str, Any], command: Sequence[str | Path]) -> None:
    """Run a command that makes the data of a server in C{data} below the folder."""
    result = subprocess.run(
        command,
        env=client_environment(folder / "home"),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        **owner,
    )
    if result.returncode:
        pytest.fail(f"{command[0]} exited with {result.returncode}:\n{result.stdout}{result.stderr}")
