"""Runs a PostgreSQL server for tests, from Debian's package, with a temporary folder and only a Unix socket."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.client_programs import absent, client_environment
from tests.support.timeouts import TIMEOUT_S

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
UNPRIVILEGED = {"user": "nobody", "group": "nogroup", "extra_groups": []}  # PostgreSQL refuses to be run by root
# The default collation is not bytewise, so that tests find a column that lacks COLLATE "C".
LOCALE = ("--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US")
SETTINGS = {
    "listen_addresses": "",
    "max_connections": 300,
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}


@contextmanager
def postgresql() -> Iterator[str]:
    """
    Run a server with an empty database; yields its connection string.

    If PostgreSQL is not installed, the test is skipped, or fails if ``PKGREPO_REQUIRE_CLIENTS`` is 1.
    """
    if not (PROGRAMS / "postgres").exists():
        absent(f"there is no PostgreSQL in {PROGRAMS} (bin/test installs it when it runs as root)")
    with tempfile.TemporaryDirectory(prefix="pg") as name:  # paths of Unix sockets have at most 107 bytes
        folder = Path(name)
        owner = _owner(folder)
        _initdb(folder, owner)
        options = [f"--{name}={value}" for name, value in {**SETTINGS, "unix_socket_directories": folder}.items()]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [PROGRAMS / "postgres", "-D", folder / "data", *options],
                env=client_environment(folder / "home"),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                **owner,
            )
        try:
            yield _answering(server, f"host={folder} user=pkgrepo dbname=postgres", folder / "log")
        finally:
            server.send_signal(signal.SIGINT)  # fast shutdown: it does not wait for clients
            server.wait(TIMEOUT_S)


def _owner(folder: Path) -> dict[str, Any]:
    """Return the arguments of ``Popen`` that run the cluster as the current user, or unprivileged instead of root."""
    if os.geteuid():
        return {}
    shutil.chown(folder, UNPRIVILEGED["user"], UNPRIVILEGED["group"])
    return UNPRIVILEGED


def _initdb(folder: Path, owner: dict[str, Any]) -> None:
    result = subprocess.run(
        [PROGRAMS / "initdb", "-D", folder / "data", "--no-sync", "--auth=trust", "--username=pkgrepo", *LOCALE],
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
        pytest.fail(f"initdb exited with {result.returncode}:\n{result.stdout}{result.stderr}")


def _answering(server: subprocess.Popen[bytes], address: str, log: Path) -> str:
    until = time.monotonic() + TIMEOUT_S
    while server.poll() is None and time.monotonic() < until:
        try:
            psycopg.connect(address).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return address
    pytest.fail(f"PostgreSQL does not start:\n{log.read_text(errors='replace')}")
