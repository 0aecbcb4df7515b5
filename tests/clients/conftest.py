"""A server in its own process for the client programs of one module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.processes import ServerProcess, running
from tests.support.registries import ADMIN, host_of
from tests.support.wire import Wire


@pytest.fixture(scope="module")
def configuration(request: pytest.FixtureRequest) -> str:
    """The configuration of the module's server: its ``CONFIG``, unless a nearer fixture of this name gives another."""
    config: str = request.module.CONFIG
    return config


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, configuration: str) -> Iterator[ServerProcess]:
    """A running server with this configuration."""
    with running(tmp_path_factory.mktemp("server"), configuration) as process:
        yield process


@pytest.fixture
def wire(server: ServerProcess) -> Wire:
    """The server, as its admin."""
    return Wire(server.url, ADMIN)


@pytest.fixture
def host(server: ServerProcess) -> str:
    """The server as names of images begin."""
    return host_of(server)
