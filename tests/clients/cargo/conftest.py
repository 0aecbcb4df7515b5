"""Repositories of crates, and folders to run cargo in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cargo_clients import CargoBench
from tests.support.configurations import PRIVATE, hosted
from tests.support.container_clients import ADMIN, ok
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess


@pytest.fixture(scope="module")
def configuration() -> str:
    """A public and a private repository."""
    return hosted("cargo", "crates", private=PRIVATE)


@pytest.fixture(scope="module")
def token(server: ServerProcess) -> str:
    """A token that may read, publish and yank."""
    body = {"name": "crates", "repositories": [{"repository": "main/*", "actions": ["read", "write", "delete"]}]}
    text: str = ok(HttpClient(f"{server.url}/api", ADMIN).post_json("/user/token", body)).json["token"]
    return text


@pytest.fixture
def make_bench(server: ServerProcess, token: str, tmp_path: Path) -> Callable[..., CargoBench]:
    """Make a bench for a repository."""

    def make(name: str = "crates", sent: str = token, folder: str = "bench") -> CargoBench:
        return CargoBench(tmp_path / folder, f"{server.url}/repositories/main/{name}", sent)

    return make


@pytest.fixture
def bench(make_bench: Callable[..., CargoBench]) -> CargoBench:
    """A bench for the public repository."""
    return make_bench()
