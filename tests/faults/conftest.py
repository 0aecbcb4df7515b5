"""Server processes that are started and stopped on one data folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.data_folder import DataFolder
from tests.support.server_process import ServerProcess, restarts


@pytest.fixture
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., ServerProcess]]:
    """Start servers on one data folder, with the module's ``REPOSITORIES`` and ``ENVIRONMENT``; see ``restarts``."""
    module = request.module
    with restarts(tmp_path, getattr(module, "REPOSITORIES", ""), getattr(module, "ENVIRONMENT", None)) as start:
        yield start


@pytest.fixture
def data(tmp_path: Path) -> DataFolder:
    """The data folder of those servers."""
    return DataFolder(tmp_path / "data")
