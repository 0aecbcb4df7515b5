"""A server process for the client programs of one module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.container_clients import ADMIN, host_of
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess, running


@pytest.fixture(scope="module")
def configuration(request: pytest.FixtureRequest) -> str:
    """The configuration of the module's server: the module's ``CONFIG``; fixtures of the same name override it."""
    config: str = request.module.CONFIG
    return config


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, configuration: str) -> Iterator[ServerProcess]:
    """A running server with this configuration."""
    with running(tmp_path_factory.mktemp("server"), configuration) as process:
        yield process


@pytest.fixture
def wire(server: ServerProcess) -> HttpClient:
    """An HTTP client of the server, with the admin's credentials."""
    return HttpClient(server.url, ADMIN)


@pytest.fixture
def host(server: ServerProcess) -> str:
    """The server's host and port, as in image names."""
    return host_of(server)
