"""Python repositories for pip, uv, twine and project tools, and a folder to run them in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.configurations import PRIVATE, config, hosted
from tests.support.python_index import PythonBench, PythonIndex
from tests.support.server_process import ServerProcess


@pytest.fixture(scope="module")
def configuration() -> str:
    """Three Python repositories."""
    return hosted("python", "py", private=PRIVATE, overwritable=config(policy="allow_overwrite = true"))


@pytest.fixture
def index(server: ServerProcess) -> PythonIndex:
    """A client of the public repository, with the admin's credentials."""
    return PythonIndex(server.url, "main/py")


@pytest.fixture
def open_index(server: ServerProcess) -> Callable[[str], PythonIndex]:
    """Return a client of a repository by name."""
    return lambda name: PythonIndex(server.url, f"main/{name}")


@pytest.fixture
def bench(tmp_path: Path) -> PythonBench:
    """A folder with an isolated environment for clients."""
    return PythonBench(tmp_path)
