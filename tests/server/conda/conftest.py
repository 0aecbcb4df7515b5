"""One server process for all tests of the conda format's HTTP interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.conda_packages import make_conda
from tests.support.configurations import PRIVATE, config
from tests.support.format_worlds import Plan
from tests.support.http_client import HttpClient, Reply

MAX_UPLOAD = 256 * 1024  # bytes

REPOSITORIES = {
    "ch": "",
    "private": PRIVATE,
    "fresh": "",
    "members": config(push_rules="must_be_project_member = true"),
    "by-token": config(push_rules="must_use_auth_token_for_push = true"),
    "lax": config(policy="allow_overwrite = true, reuse_deleted_names = true"),
}

# By name: repositories, actions, packages.
TOKENS = {
    "reader": ("main/*", ["read"], []),
    "writer": ("main/by-token", ["read", "write"], []),
    "team": ("main/ch", ["read", "write"], ["team-*"]),
    "no-overwrite": ("main/lax", ["read", "write"], []),
}


PLAN = Plan("conda", REPOSITORIES, TOKENS, MAX_UPLOAD)


@pytest.fixture(scope="session")
def plan() -> Plan:
    """The repositories and tokens above."""
    return PLAN


@pytest.fixture
def ch(main: HttpClient) -> HttpClient:
    return main


@pytest.fixture
def push(ch: HttpClient) -> Callable[..., Reply]:
    """Upload a ``.conda`` to a folder; keyword arguments are those of ``make_conda``."""

    def send(
        name: str = "demo", version: str = "1.0", where: HttpClient = ch, query: str = "", **options: Any
    ) -> Reply:
        build = options.setdefault("build", "py_0")
        subdir = options.get("subdir", "noarch")
        return where.put(f"/{subdir}/{name}-{version}-{build}.conda{query}", make_conda(name, version, **options))

    return send
