"""One server process for all tests of the Maven format's HTTP interface."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.configurations import PRIVATE, config
from tests.support.format_worlds import Plan
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD

MAX_UPLOAD = 2 * 1024 * 1024  # bytes

REPOSITORIES = {
    "mvn": "",
    "private": PRIVATE,
    "fixed": config(push_rules="allow_overwrite = false"),
    "releases": config(push_rules='push_policy = "RELEASES"'),
    "snapshots": config(push_rules='push_policy = "SNAPSHOTS"'),
    "unyankable": config(push_rules="yanking_allowed = false"),
    "tokens": config(push_rules="must_use_auth_token_for_push = true"),
    "members": config(push_rules="must_be_project_member = true"),
    "claims": config(push_rules="must_be_project_member = true, auto_create_projects = true"),
    "bundles": config(push_rules="require_service_deploy = true"),
    "signed": config(deploy="signatures = true, sources = true"),
    "bare": "",
    "blocked": "",
}

# By name: repositories, actions, packages.
TOKENS = {
    "all": ("main/*", ["read", "write", "overwrite", "delete"], []),
    "reader": ("main/*", ["read"], []),
    "writer": ("main/*", ["read", "write"], ["com.team:*", "com.team"]),
    "elsewhere": ("main/private", ["read", "write"], []),
}


PLAN = Plan("maven", REPOSITORIES, TOKENS, MAX_UPLOAD)


@pytest.fixture(scope="session")
def plan() -> Plan:
    """The repositories and tokens above."""
    return PLAN


@pytest.fixture
def mvn(main: HttpClient) -> HttpClient:
    return main


@pytest.fixture
def new_user(api: HttpClient) -> Callable[..., tuple[str, str]]:
    """Add a user who has these actions in repositories of these names. Returns the credentials."""

    def add(name: str, **grants: list[str]) -> tuple[str, str]:
        reply = api.post_json("/users", {"username": name, "password": PASSWORD})
        assert reply.status == 201, reply
        wanted = [{"repository": f"main/{where}", "actions": actions} for where, actions in grants.items()]
        reply = api.post_json(f"/users/{name}/permissions", {"repositories": wanted}, "PUT")
        assert reply.status == 200, reply
        return name, PASSWORD

    return add
