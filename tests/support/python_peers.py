"""Other Python indexes as upstreams: devpi and pypiserver."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from tests.support.client_programs import client, client_environment, run_client
from tests.support.peer_process import peer_process
from tests.support.ports import closed_port
from tests.support.timeouts import TIMEOUT_S

DEVPI_USER = "tests"
DEVPI_PASSWORD = "an index for tests"
# devpi derives the key of its tokens with 8 s of processor time otherwise, at each start.
DEVPI_COSTS = ("--argon2-time-cost", "1", "--argon2-memory-cost", "1024", "--argon2-parallelism", "1")


@contextmanager
def pypiserver(folder: Path, files: Path) -> Iterator[str]:
    """Run pypiserver on a folder of distributions, and return the URL of its root."""
    port = closed_port()
    url = f"http://127.0.0.1:{port}"
    where = ["-p", str(port), "-i", "127.0.0.1", "--disable-fallback", "--log-stream", "none"]
    with peer_process([client("pypiserver", "pypi-server"), "run", *where, files], folder, f"{url}/simple/"):
        yield url


@contextmanager
def devpi(folder: Path, files: Path) -> Iterator[str]:
    """Run devpi-server with an index of the distributions in a folder, and return the URL of its simple index."""
    state, port = folder / "state", closed_port()
    url = f"http://127.0.0.1:{port}"
    environ = client_environment(folder / "home")
    run_client([client("devpi", "devpi-init"), "--no-root-pypi", "--serverdir", state], environ=environ, folder=folder)
    command = [client("devpi", "devpi-server"), "--serverdir", state, "--host", "127.0.0.1", "--port", str(port)]
    with peer_process([*command, "--offline-mode", *DEVPI_COSTS], folder, f"{url}/+api"):
        _make_index(url)
        index = f"{url}/{DEVPI_USER}/dev"
        login = ["-u", DEVPI_USER, "-p", DEVPI_PASSWORD]
        upload = [client("twine"), "upload", "--repository-url", f"{index}/", *login, *sorted(files.iterdir())]
        run_client(upload, environ=environ, folder=folder)
        yield f"{index}/+simple"


def _make_index(url: str) -> None:
    for path, body in (
        (DEVPI_USER, {"password": DEVPI_PASSWORD}),
        (f"{DEVPI_USER}/dev", {"type": "stage", "bases": [], "volatile": False}),
    ):
        root = requests.post(f"{url}/+login", json={"user": "root", "password": ""}, timeout=TIMEOUT_S).json()
        answer = requests.put(
            f"{url}/{path}",
            json=body,
            headers={"X-Devpi-Auth": _token("root", root["result"]["password"])},
            timeout=TIMEOUT_S,
        )
        assert answer.status_code in (200, 201), answer.text


def _token(user: str, password: str) -> str:
    return b64encode(f"{user}:{password}".encode()).decode()
