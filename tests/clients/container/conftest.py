"""Client programs with their data in temporary folders."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.container_daemons import dockerd
from tests.support.container_tools import Tools
from tests.support.proxied_images import Scene, proxied_images


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    with tempfile.TemporaryDirectory(prefix="p") as runroot:  # podman accepts paths of at most 50 characters
        yield Tools(tmp_path, Path(runroot))


@pytest.fixture(scope="module")
def daemon() -> Iterator[str]:
    """The address of a dockerd."""
    with dockerd() as address:
        yield address


@pytest.fixture(params=["pkgrepo", "distribution"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    """A proxy of a second server of ours, or of another registry."""
    with proxied_images(request.param, tmp_path) as made:
        yield made
