"""Signals that do not end the server."""

from __future__ import annotations

import os
import signal
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from tests.support.certificates import write_certificate
from tests.support.server_process import ServerProcess
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

Run = Callable[..., ServerProcess]


def test_a_hangup_interrupts_no_request(run_twistd: Run) -> None:
    server = run_twistd()
    url = server.wait_ready()
    with requests.Session() as session:
        session.get(f"{url}/healthz", timeout=TIMEOUT_S)
        os.kill(server.pid, signal.SIGHUP)
        server.lines("reloading", 1)
        assert session.get(f"{url}/healthz", timeout=TIMEOUT_S).status_code == 200


def test_a_hangup_loads_a_renewed_certificate(run_twistd: Run, tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    server = run_twistd(
        environ={"PKGREPO_TLS__CERT": str(certificate), "PKGREPO_TLS__KEY": str(key), "PKGREPO_TLS__RELOAD": "never"}
    )
    port = int(server.wait_ready().rpartition(":")[2])
    first = ssl.get_server_certificate(("127.0.0.1", port))
    write_certificate(tmp_path)
    assert ssl.get_server_certificate(("127.0.0.1", port)) == first
    os.kill(server.pid, signal.SIGHUP)
    server.lines("is used from now on", 1)
    assert ssl.get_server_certificate(("127.0.0.1", port)) != first
