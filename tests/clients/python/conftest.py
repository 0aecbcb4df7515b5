"""Python repositories for pip, uv, twine and tools of projects, and a bench to run them on."""

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
    """The public repository, as its admin."""
    return PythonIndex(server.url, "main/py")


@pytest.fixture
def open_index(server: ServerProcess) -> Callable[[str], PythonIndex]:
    """Any repository by its name."""
    return lambda name: PythonIndex(server.url, f"main/{name}")


@pytest.fixture
def bench(tmp_path: Path) -> PythonBench:
    """A folder with an isolated environment for clients."""
    return PythonBench(tmp_path)
