"""A server in its own process for the client programs of one module, and a bench to run them on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.index import Bench, PythonIndex
from tests.support.processes import ServerProcess, twistd_process

CONFIG = """
[[bootstrap.repositories]]
name = "py"
format = "python"

[[bootstrap.repositories]]
name = "private"
format = "python"
visibility = "private"

[[bootstrap.repositories]]
name = "overwritable"
format = "python"
[bootstrap.repositories.config]
type = "Hosted"
policy = { allow_overwrite = true }
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A running server with three Python repositories."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "pkgrepo.toml").write_text(CONFIG)
    process = twistd_process(folder, "--config", str(folder / "pkgrepo.toml"))
    process.wait_ready()
    yield process
    assert process.stop() in (0, -15), process.output  # twistd ends by the signal it got
    assert "Traceback" not in process.output, process.output


@pytest.fixture
def index(server: ServerProcess) -> PythonIndex:
    """The public repository, as its admin."""
    return PythonIndex(server.url, "main/py")


@pytest.fixture
def open_index(server: ServerProcess) -> Callable[[str], PythonIndex]:
    """Any repository by its name."""
    return lambda name: PythonIndex(server.url, f"main/{name}")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A folder with an isolated environment for clients."""
    return Bench(tmp_path)
