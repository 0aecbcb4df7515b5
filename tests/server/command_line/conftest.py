"""The program itself, as a child process, against one server process for all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.command_line import Program
from tests.support.configurations import hosted
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, running

REPOSITORIES = {"npm": "node", "maven": "java", "ruby": "gems", "conda": "channel", "docker": "images"}
HOSTED = 'config = { type = "Hosted" }'
DECLARED = "".join(hosted(format_, **{name: HOSTED}) for format_, name in {"python": "py", **REPOSITORIES}.items())
ISSUER = 'auth.issuers.github = { issuer = "https://token.actions.githubusercontent.com", audience = "a" }\n'


@pytest.fixture(scope="session")
def command_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A running server with a public repository of each format."""
    head = "limits.login_failures = 1000\n" + ISSUER
    with running(tmp_path_factory.mktemp("command_server"), head + DECLARED) as process:
        yield process


@pytest.fixture(scope="session")
def admin(command_server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The program, logged in as the admin."""
    program = Program(tmp_path_factory.mktemp("admin"), command_server.url)
    program.log_in()
    return program


@pytest.fixture
def stranger(command_server: ServerProcess, tmp_path: Path) -> Program:
    """The program without a profile."""
    return Program(tmp_path, command_server.url)


@pytest.fixture
def api(command_server: ServerProcess) -> HttpClient:
    """A client of the API, with the admin's credentials."""
    return HttpClient(f"{command_server.url}/api", (USER, PASSWORD))


@pytest.fixture
def write(admin: Program) -> Callable[[str, bytes], Path]:
    """Write a file into the working directory of the program; return its path."""

    def put(name: str, data: bytes) -> Path:
        path = admin.folder / name
        path.write_bytes(data)
        return path

    return put
