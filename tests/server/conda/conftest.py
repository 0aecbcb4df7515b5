"""One server process for all tests of the conda format's HTTP interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.conda_packages import make_conda
from tests.support.configurations import PRIVATE, config
from tests.support.format_server import new_tokens, serving
from tests.support.http_client import HttpClient, Reply
from tests.support.server_process import ServerProcess

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


@pytest.fixture(scope="session")
def token_texts() -> dict[str, str]:
    """The server's tokens by name."""
    return new_tokens(TOKENS)


@pytest.fixture(scope="session")
def format_server(tmp_path_factory: pytest.TempPathFactory, token_texts: dict[str, str]) -> Iterator[ServerProcess]:
    """A running server with the repositories and tokens above."""
    folder = tmp_path_factory.mktemp("format_server")
    with serving(folder, "conda", REPOSITORIES, TOKENS, token_texts, max_upload=MAX_UPLOAD) as process:
        yield process


@pytest.fixture
def ch(repository: Callable[[str], HttpClient]) -> HttpClient:
    """A client of the public channel, with the admin's credentials."""
    return repository("ch")


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
