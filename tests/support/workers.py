"""Servers of several worker processes, and connections to each of them."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlsplit

from tests.support.http_client import Reply, basic
from tests.support.timeouts import TIMEOUT_S

AUTH = ("admin", "correct horse battery")
LEASE = "background-work"


class Connection:
    """A kept connection to one worker, ``worker``, which is known by the beginning of the ids of its requests."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
        self.worker = self.ask("GET", "/healthz").headers["x-request-id"].partition("-")[0]

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        auth: tuple[str, str] | None = AUTH,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request, and return the response; the worker must not change."""
        self._connection.request(method, path, body, {**basic(auth), **(headers or {})})
        answer = self._connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        reply = Reply(answer.status, answer.reason, found, answer.read())
        worker = reply.headers.get("x-request-id", "").partition("-")[0]
        assert getattr(self, "worker", worker) == worker, "the connection was closed, and another one opened"
        return reply

    def ask_json(self, method: str, path: str, value: object = None) -> Any:
        """Send a value as JSON; the answer, which must be a success, is JSON, too."""
        body = None if value is None else json.dumps(value).encode()
        reply = self.ask(method, path, body, headers={"Content-Type": "application/json"})
        assert 200 <= reply.status < 300, reply.text
        return reply.json if reply.body else None

    def begin(self, path: str) -> http.client.HTTPResponse:
        """Send a GET without credentials; the body of the response is to be read."""
        self._connection.request("GET", path)
        return self._connection.getresponse()

    @property
    def port(self) -> int:
        """The port at this end."""
        return int(self._connection.sock.getsockname()[1])

    @property
    def server_port(self) -> int:
        """The port at the server's end."""
        return int(self._connection.sock.getpeername()[1])

    def abort(self) -> None:
        """Close the connection, in the middle of a response, too."""
        self._connection.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._connection.close()


def connect_to_each(url: str, count: int = 2) -> list[Connection]:
    """One connection to each worker."""
    found: dict[str, Connection] = {}
    ends_at = monotonic() + TIMEOUT_S
    while len(found) < count:
        assert monotonic() < ends_at, "not all workers get connections"
        connection = Connection(url)
        if connection.worker in found:
            connection.close()
        found.setdefault(connection.worker, connection)
    return list(found.values())


def workers_of(master: int) -> list[int]:
    """The ids of the worker processes of a master."""
    return [int(pid) for pid in Path(f"/proc/{master}/task/{master}/children").read_text().split()]


def wait_for_workers(master: int, count: int = 2, *, without: int = 0) -> list[int]:
    """Wait until a master has so many workers, none of which is ``without``."""
    ends_at = monotonic() + TIMEOUT_S
    while len(found := workers_of(master)) != count or without in found:
        assert monotonic() < ends_at, found
        sleep(0.05)
    return found


def holder_of_lease(data: Path) -> int | None:
    """
    The process that does the work in the background, by the locks of the kernel.

    The list of locks changes while it is read, so that None may be returned although a process has the lease.
    """
    lease = (data / LEASE).resolve()
    try:
        inode = lease.stat().st_ino
    except FileNotFoundError:  # no process has asked for it yet
        return None
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        # Files of other file systems may have the same inode.
        if fields[1] == "FLOCK" and fields[5].endswith(f":{inode}") and _has_open(int(fields[4]), str(lease)):
            return int(fields[4])
    return None


def wait_for_holder(data: Path, *, without: int | None = None) -> int:
    """Wait until a process does the work in the background, which is not ``without``."""
    ends_at = monotonic() + TIMEOUT_S
    while (found := holder_of_lease(data)) in (None, without):
        assert monotonic() < ends_at, found
        sleep(0.05)
    assert found is not None
    return found


def worker_of(master: int, connection: Connection) -> int:
    """The process at the other end of a connection, by the sockets of the kernel."""
    # Both ports are compared: connections to other servers may have the same port at this end.
    ends = [connection.server_port, connection.port]
    ends_at = monotonic() + TIMEOUT_S
    while monotonic() < ends_at:  # the list of sockets changes while it is read, and may lack some
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        for inode in {row[9] for row in rows if [int(end[-4:], 16) for end in row[1:3]] == ends}:
            for pid in workers_of(master):
                if _has_open(pid, f"socket:[{inode}]"):
                    return pid
    raise AssertionError("no worker has the connection")


def _has_open(pid: int, target: str) -> bool:
    """Whether a process has a file or a socket open; False if it has ended, or belongs to somebody else."""
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        return target in open_paths(pid)
    return False


def open_paths(pid: int) -> list[str]:
    """What the descriptors of a process are open on."""
    return [_target(each) for each in Path(f"/proc/{pid}/fd").iterdir()]


def _target(descriptor: Path) -> str:
    """What a descriptor of a process is open on; empty if it was closed meanwhile."""
    try:
        return os.readlink(descriptor)
    except FileNotFoundError:
        return ""


def is_running(pid: int) -> bool:
    """Whether a process exists that has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # the second: it ends between the opening and the reading
        return False


def wait_until_ended(pids: list[int]) -> None:
    """Wait until processes have ended that this one did not start."""
    ends_at = monotonic() + TIMEOUT_S
    while any(map(is_running, pids)):
        assert monotonic() < ends_at, pids
        sleep(0.05)


def kill(pid: int) -> None:
    os.kill(pid, 9)
