"""One server process for all tests of the Helm format's HTTP interface."""

from __future__ import annotations

import pytest

from tests.support.configurations import PRIVATE, config
from tests.support.format_worlds import Plan
from tests.support.http_client import HttpClient

REPOSITORIES = {"charts": "", "private": PRIVATE, "lax": config(policy="allow_overwrite = true")}
# By name: repositories, actions, packages.
TOKENS = {
    "team": ("main/charts", ["read", "write"], ["team-*"]),
    "no-overwrite": ("main/lax", ["read", "write"], []),
    "reader": ("main/*", ["read"], []),
}
PLAN = Plan("helm", REPOSITORIES, TOKENS, 512 * 1024)


@pytest.fixture(scope="session")
def plan() -> Plan:
    """The repositories and tokens above."""
    return PLAN


@pytest.fixture
def charts(main: HttpClient) -> HttpClient:
    return main
