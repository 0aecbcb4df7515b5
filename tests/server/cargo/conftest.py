"""One server process for all tests of the Cargo format's HTTP interface."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.configurations import PRIVATE, config, virtual
from tests.support.crates import describe, make_crate, publish_body
from tests.support.format_worlds import Plan
from tests.support.http_client import HttpClient, Reply

MAX_UPLOAD = 256 * 1024  # bytes
REPOSITORIES = {
    "crates": "",
    "private": PRIVATE,
    "lax": config(policy="unique_spellings = false, standard_names = true, reuse_deleted_names = true"),
}
# By name: repositories, actions, packages.
TOKENS = {
    "reader": ("main/*", ["read"], []),
    "all": ("main/*", ["read", "write", "delete"], []),
    "team": ("main/*", ["read", "write"], ["team-*"]),
}
PLAN = Plan(
    "cargo",
    REPOSITORIES,
    TOKENS,
    MAX_UPLOAD,
    proxies=lambda **_: [virtual("cargo", "through", "main/lax", publish_to="main/lax")],
)


@pytest.fixture(scope="session")
def plan() -> Plan:
    """The repositories and tokens above."""
    return PLAN


@pytest.fixture
def publish(main: HttpClient) -> Callable[..., Reply]:
    """Publish a crate as cargo does; keyword arguments are those of ``make_crate``."""

    def send(
        name: str = "alpha",
        version: str = "1.0.0",
        more: str = "",
        *,
        where: HttpClient = main,
        said: dict[str, Any] | None = None,
        **crate: Any,
    ) -> Reply:
        body = publish_body(describe(name, version, **(said or {})), make_crate(name, version, more, **crate))
        return where.put("/api/v1/crates/new", body)

    return send


def lines_of(client: HttpClient, path: str) -> list[dict[str, Any]]:
    """The lines of a document of the index."""
    reply = client.get(path)
    assert reply.status == 200, reply.text
    return [json.loads(each) for each in reply.body.splitlines()]
