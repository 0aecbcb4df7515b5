"""One server process for all tests of the npm format's HTTP interface."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.advisories import wait_for_advisories
from tests.support.configurations import PRIVATE, config
from tests.support.container_clients import ok
from tests.support.format_worlds import Plan
from tests.support.http_client import HttpClient, Reply
from tests.support.npm_packages import make_publish
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess

MAX_UPLOAD = 2 * 1024 * 1024  # bytes
BOB = ("bob", "bob keeps bees at home")

REPOSITORIES = {
    "npm": "",
    "search": "",
    "private": PRIVATE,
    "reusable": config(policy="reuse_deleted_names = true"),
    "careful": config(policy='manifest_mismatch = "refuse"'),
}

# By name: repositories, actions, packages.
TOKENS = {
    "reader": ("main/*", ["read"], []),
    "writer": ("main/npm", ["read", "write"], []),
    "scoped": ("main/npm", ["read", "write"], ["@team/*"]),
    "scoped in private": ("main/private", ["read"], ["@team/*"]),
    "elsewhere": ("main/search", ["read", "write"], []),
}

ADVISORY = {
    "id": "GHSA-aaaa-bbbb-cccc",
    "modified": "2026-01-02T00:00:00Z",
    "published": "2026-01-01T00:00:00Z",
    "summary": "It bites",
    "details": "It bites at night.",
    "affected": [
        {
            "package": {"ecosystem": "npm", "name": "biter"},
            "ranges": [{"type": "SEMVER", "events": [{"introduced": "1.0.0"}, {"fixed": "1.2.0"}]}],
        }
    ],
    "database_specific": {"severity": "HIGH", "cwe_ids": ["CWE-1"]},
}


def add_bob(server: ServerProcess) -> None:
    """Add a user without permissions, and wait until the advisories are loaded."""
    bob = {"username": BOB[0], "password": BOB[1], "email": "bob@example.org"}
    api = HttpClient(f"{server.url}/api", (USER, PASSWORD))
    ok(api.post_json("/users", bob))
    wait_for_advisories(api)


PLAN = Plan(
    "npm",
    REPOSITORIES,
    TOKENS,
    MAX_UPLOAD,
    lines='server.trusted_proxies = ["127.0.0.1"]\nadvisories.source = "osv"\n',
    files={"osv/one.json": json.dumps(ADVISORY)},
    begin=add_bob,
)


@pytest.fixture(scope="session")
def plan() -> Plan:
    """The repositories and tokens above, an advisory, and a user without permissions."""
    return PLAN


@pytest.fixture
def npm(main: HttpClient) -> HttpClient:
    return main


@pytest.fixture
def publish(npm: HttpClient) -> Callable[..., Reply]:
    """Publish a small package: ``publish(name, version, where=..., **options of make_publish)``."""

    def put(name: str, version: str = "1.0.0", *, where: HttpClient = npm, **options: Any) -> Reply:
        reply = where.put(f"/{name.replace('/', '%2f')}", make_publish(name, version, **options))
        assert reply.status == 201, reply
        return reply

    return put
