"""The server with repositories of each format."""

from __future__ import annotations

import pytest

from tests.support.format_repositories import World


@pytest.fixture(scope="session")
def world(format_repositories_world: World) -> World:
    """The server, which other rooms use, too: each test takes back what it has changed."""
    return format_repositories_world
