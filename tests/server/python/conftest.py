"""One server process for all tests of the Python format's HTTP interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.configurations import PRIVATE, config
from tests.support.format_worlds import Plan
from tests.support.http_client import HttpClient
from tests.support.python_packages import make_wheel

MAX_UPLOAD = 2 * 1024 * 1024  # bytes

REPOSITORIES = {
    "py": "",
    "fresh": "",
    "turned": "",
    "dated": "",
    "private": PRIVATE,
    "hidden": 'visibility = "hidden"',
    "guarded": config(auth="enabled = true"),
    "overwritable": config(policy="allow_overwrite = true"),
    "reusable": config(policy="reuse_deleted_names = true"),
    "strict": config(policy="strict_filenames = true"),
}

# By name: repositories, actions, packages.
TOKENS = {
    "reader": ("main/*", ["read"], []),
    "writer": ("main/py", ["read", "write"], ["team-*"]),
    "elsewhere": ("main/private", ["read", "write"], []),
}


PLAN = Plan("python", REPOSITORIES, TOKENS, MAX_UPLOAD)


@pytest.fixture(scope="session")
def plan() -> Plan:
    """The repositories and tokens above."""
    return PLAN


@pytest.fixture
def py(main: HttpClient) -> HttpClient:
    return main


@pytest.fixture
def publish(py: HttpClient) -> Callable[..., tuple[str, bytes]]:
    """Publish a wheel, or the file that ``make`` returns. Returns its name and bytes."""

    def put(
        project: str,
        version: str,
        where: HttpClient = py,
        make: Callable[..., tuple[str, bytes]] = make_wheel,
        **options: Any,
    ) -> tuple[str, bytes]:
        filename, data = make(project, version, **options)
        reply = where.put(f"/{quote(project)}/{quote(version)}/{quote(filename)}", data)
        assert reply.status in (200, 201), reply
        return filename, data

    return put
