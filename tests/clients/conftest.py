"""A server process for the client programs of one module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.container_clients import ADMIN, host_of
from tests.support.http_client import HttpClient
from tests.support.nodes import BalancedNodes, balanced, two_nodes
from tests.support.postgresql import PostgresServer
from tests.support.server_process import ServerProcess, running


@pytest.fixture(scope="module")
def configuration(request: pytest.FixtureRequest) -> str:
    """The configuration of the module's server: the module's ``CONFIG``; fixtures of the same name override it."""
    config: str = request.module.CONFIG
    return config


@pytest.fixture(scope="session")
def database(request: pytest.FixtureRequest) -> str | None:
    """The PostgreSQL server of ``--nodes``."""
    if not request.config.getoption("--nodes"):
        return None
    server: PostgresServer = request.getfixturevalue("primary")
    return server.address


@pytest.fixture(scope="module")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, configuration: str, database: str | None
) -> Iterator[ServerProcess | BalancedNodes]:
    """A running server with this configuration, and the module's ``ENVIRONMENT``; with ``--nodes`` two of them."""
    folder = tmp_path_factory.mktemp("server")
    if database is None:
        with running(folder, configuration, getattr(request.module, "ENVIRONMENT", None)) as process:
            yield process
    else:
        with two_nodes(folder, database, configuration) as nodes, balanced(nodes) as url:
            yield BalancedNodes(nodes, url)


@pytest.fixture
def wire(server: ServerProcess) -> HttpClient:
    """An HTTP client of the server, with the admin's credentials."""
    return HttpClient(server.url, ADMIN)


@pytest.fixture
def host(server: ServerProcess) -> str:
    """The server's host and port, as in image names."""
    return host_of(server)
