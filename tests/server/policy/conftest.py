"""The server with repositories of each format."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support import dated
from tests.support.dated import NAME, now_between
from tests.support.format_cases import CASES
from tests.support.format_repositories import World


@pytest.fixture(scope="session")
def world(format_repositories_world: World) -> World:
    """The server, which other rooms use, too: each test takes back what it has changed."""
    return format_repositories_world


@pytest.fixture(scope="session")
def times(world: World) -> Mapping[str, str]:
    """Times between two versions of each format: before the first one, between them, and after the second one."""
    for each in CASES:
        dated.add_repositories(world.api, world.url, each)
    found = {"before": now_between()}
    for version, name in (("1.0.0", "between"), ("1.1.0", "after")):
        for each in CASES:
            CASES[each].put_by(world.at(f"{each}-own"), NAME, version)
            world.at(f"{each}-both").get(CASES[each].document_of(NAME))  # what has no date is first seen now
        found[name] = now_between()
    return found
