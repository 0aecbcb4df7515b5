"""A server with Ruby repositories, and folders to run RubyGems and Bundler in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.configurations import PRIVATE, hosted
from tests.support.container_clients import ADMIN, ok
from tests.support.http_client import HttpClient
from tests.support.ruby_clients import TOOLS, RubyBench
from tests.support.server_process import ServerProcess


@pytest.fixture(scope="module")
def configuration() -> str:
    """An empty repository for each test, in both generations of the tools."""
    return "limits.login_failures = 1000\n" + hosted("ruby", "rb", private=PRIVATE)


@pytest.fixture(params=TOOLS)
def tools(request: pytest.FixtureRequest) -> str:
    """The generation of RubyGems and Bundler."""
    name: str = request.param
    return name


@pytest.fixture
def api(server: ServerProcess) -> HttpClient:
    """An admin's client of the management API."""
    return HttpClient(f"{server.url}/api", ADMIN)


@pytest.fixture
def token(api: HttpClient) -> str:
    """A token that may read, push and yank."""
    body = {"name": "gems", "repositories": [{"repository": "main/*", "actions": ["read", "write", "delete"]}]}
    text: str = ok(api.post_json("/user/token", body)).json["token"]
    return text


@pytest.fixture
def make_bench(
    server: ServerProcess, api: HttpClient, token: str, tools: str, tmp_path: Path
) -> Callable[..., RubyBench]:
    """Make a bench for a new repository of the test; with ``name`` for one that exists."""

    def make(name: str | None = None, *, visibility: str = "public", type_: str = "Hosted") -> RubyBench:
        if name is None:
            name = f"{tmp_path.name[:80]}".replace("[", "-").replace("]", "")
            body = {"name": name, "storage": "main", "format": "ruby", "visibility": visibility}
            ok(api.post_json("/repository", {**body, "config": {"type": type_}}))
        return RubyBench(tmp_path, tools, f"{server.url}/repositories/main/{name}", token)

    return make


@pytest.fixture
def bench(make_bench: Callable[..., RubyBench]) -> RubyBench:
    """A bench for a new public repository."""
    return make_bench()


@pytest.fixture
def rb(bench: RubyBench) -> HttpClient:
    """An HTTP client of the bench's repository, with the admin's credentials."""
    return HttpClient(bench.url, ADMIN)
