"""One server process for all tests of the Ruby format's HTTP interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.configurations import PRIVATE, config
from tests.support.format_worlds import Plan
from tests.support.gems import make_gem
from tests.support.http_client import HttpClient, Reply
from tests.support.sigstore import FakeSigstore

MAX_UPLOAD = 256 * 1024  # bytes

REPOSITORIES = {
    "rb": "",
    "private": PRIVATE,
    "fresh": "",
    "members": config(push_rules="must_be_project_member = true"),
    "by-token": config(push_rules="must_use_auth_token_for_push = true"),
    "lax": config(policy="unique_numbers = false, unique_spellings = false, reuse_deleted_names = true"),
    "plain-lines": config(compact_index="created_at = false"),
}

# By name: repositories, actions, packages.
TOKENS = {
    "reader": ("main/*", ["read"], []),
    "all": ("main/*", ["read", "write", "delete"], []),
    "team": ("main/rb", ["read", "write"], ["team-*"]),
    "team in private": ("main/private", ["read"], ["team-*"]),
    "team yanks": ("main/rb", ["read", "write", "delete"], ["team-*"]),
    "elsewhere": ("main/private", ["read", "write"], []),
}


SIGSTORE = FakeSigstore()
PLAN = Plan(
    "ruby",
    REPOSITORIES,
    TOKENS,
    MAX_UPLOAD,
    lines='auth.trusted_root = "trusted_root.json"\n',
    files={"trusted_root.json": SIGSTORE.root_text.decode()},
)


@pytest.fixture(scope="session")
def plan() -> Plan:
    """The repositories and tokens above."""
    return PLAN


@pytest.fixture
def rb(main: HttpClient) -> HttpClient:
    return main


@pytest.fixture
def push(rb: HttpClient) -> Callable[..., Reply]:
    """Push a gem as ``gem push`` does; keyword arguments are those of ``make_gem``."""

    def send(name: str = "alpha", version: str = "1.0.0", where: HttpClient = rb, **options: Any) -> Reply:
        return where.post("/api/v1/gems", make_gem(name, version, **options), Content_Type="application/octet-stream")

    return send
