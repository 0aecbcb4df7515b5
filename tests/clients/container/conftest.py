"""Client programs with their data in temporary folders."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.container_tools import Tools


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    with tempfile.TemporaryDirectory(prefix="p") as runroot:  # podman accepts paths of at most 50 characters
        yield Tools(tmp_path, Path(runroot))
