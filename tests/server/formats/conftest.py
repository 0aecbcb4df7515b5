"""The formats, and the server with repositories of each."""

from __future__ import annotations

import pytest

from tests.support.format_cases import CASES
from tests.support.format_cases.case import Case
from tests.support.format_repositories import World


@pytest.fixture(scope="session")
def world(format_repositories_world: World) -> World:
    """The server, which other rooms use, too: each test takes back what it has changed."""
    return format_repositories_world


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Each format."""
    found: Case = request.param
    return found
