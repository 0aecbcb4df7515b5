"""Start by systemd: with an inherited listening socket, and a notification socket."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.support.server_process import ROOT, WORKERS, ServerProcess, clean_environment, twistd_command
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

# As systemd between fork and exec: the first socket is descriptor 3, and LISTEN_PID is the new process.
AS_SYSTEMD = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture
def listening():
    """The listening socket, which stays open when the service restarts."""
    with socket.create_server(("127.0.0.1", 0)) as line:
        yield line


@pytest.fixture
def manager(tmp_path):
    """The service manager's notification socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(tmp_path / "notify"))
        line.settimeout(TIMEOUT_S)
        yield line


@pytest.fixture
def start(tmp_path, listening, manager):
    processes = []

    def start(program=None, **variables) -> ServerProcess:
        program = program or [*twistd_command(), "--nodaemon", "--pidfile=", "pkgrepo"]
        command = [sys.executable, "-c", AS_SYSTEMD, str(listening.fileno()), *program]
        command += ["--set", "server.listen=systemd:domain=INET:index=0"]
        environ = clean_environment(
            PYTHONPATH=str(ROOT),
            PKGREPO_DATA__DIR=str(tmp_path / "data"),
            NOTIFY_SOCKET=str(tmp_path / "notify"),
            WATCHDOG_USEC="200000",
            PKGREPO_SERVER__WORKERS=WORKERS[0],
            **({"LISTEN_FDS": "1", "LISTEN_FDNAMES": "pkgrepo.socket"} | variables),
        )
        processes.append(ServerProcess(command, environ=environ, folder=tmp_path, pass_fds=[listening.fileno()]))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()


def receive_until(manager: socket.socket, wanted: str) -> None:
    while wanted not in manager.recv(4096).decode().split("\n"):
        pass


def test_an_inherited_socket_is_served_and_readiness_notified(start, listening, manager):
    server = start()
    server.wait_ready()
    receive_until(manager, "READY=1")
    port = listening.getsockname()[1]
    assert requests.get(f"http://127.0.0.1:{port}/", timeout=TIMEOUT_S).headers["Server"].startswith("pkgrepo/")
    receive_until(manager, "WATCHDOG=1")
    # Read while it stops: watchdog messages continue, and messages to a full queue are lost.
    os.kill(server.pid, signal.SIGTERM)
    receive_until(manager, "STOPPING=1")
    server.wait()


def test_a_request_made_during_a_restart_waits_and_is_answered(start, listening, manager):
    first = start()
    first.wait_ready()
    first.stop()
    with socket.create_connection(listening.getsockname(), timeout=TIMEOUT_S) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        start()
        assert client.recv(9) == b"HTTP/1.1 "


def test_the_script_accepts_sockets_without_names(start, listening):
    # systemd-socket-activate does not name sockets, but Twisted requires names.
    server = start([str(ROOT / "bin" / "serve")], LISTEN_FDNAMES="", PKGREPO_VENV=sys.prefix)
    assert server.wait_ready().endswith(f":{listening.getsockname()[1]}")


@pytest.mark.parametrize("count", ["0", "1"])
def test_a_missing_or_unnamed_socket_is_reported(start, count):
    server = start(LISTEN_FDS=count, LISTEN_FDNAMES="")
    assert server.wait() == 1
    assert "server.listen: there is nothing to listen at for 'systemd:domain=INET:index=0'" in server.output
    assert "no socket was passed, or one without a name" in server.output
    assert "list index" not in server.output
    assert "Traceback" not in server.output


def test_the_units_are_valid_and_confined(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not on the path")
    for name in ("pkgrepo.service", "pkgrepo.socket"):
        # The program of the example need not exist here.
        text = (
            Path(ROOT, "pkgrepo", "systemd", name).read_text().replace("/opt/pkgrepo/bin/twistd", shutil.which("env"))
        )
        (tmp_path / name).write_text(text)
    service = str(tmp_path / "pkgrepo.service")
    verified = analyze("verify", service, str(tmp_path / "pkgrepo.socket"))
    assert (verified.returncode, verified.stderr) == (0, "")
    confined = analyze("security", "--offline=yes", "--threshold=20", service)
    assert confined.returncode == 0, confined.stdout


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {"SYSTEMD_PAGER": ""}
    command = ["systemd-analyze", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
