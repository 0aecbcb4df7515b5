"""A server process with npm repositories, and folders to run Node's clients in."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.advisories import wait_for_advisories
from tests.support.configurations import PRIVATE, hosted
from tests.support.container_clients import ok
from tests.support.http_client import HttpClient
from tests.support.npm_clients import NodeBench, Registry
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess

ADVISORY = {
    "id": "GHSA-aaaa-bbbb-cccc",
    "summary": "It bites",
    "affected": [
        {
            "package": {"ecosystem": "npm", "name": "biter"},
            "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "1.2.0"}]}],
        }
    ],
    "database_specific": {"severity": "HIGH"},
}


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two npm repositories and one vulnerability."""
    advisories = tmp_path_factory.mktemp("osv")
    (advisories / "one.json").write_text(json.dumps(ADVISORY))
    return f'[advisories]\nsource = "{advisories}"\n' + hosted("npm", "npm", private=PRIVATE)


@pytest.fixture(scope="module")
def server(server: ServerProcess) -> ServerProcess:
    """The server, with its advisories loaded, and with the user bob, who has no permissions."""
    bob = {"username": "bob", "password": "bob keeps bees at home", "email": "bob@example.org"}
    api = HttpClient(f"{server.url}/api", (USER, PASSWORD))
    ok(api.post_json("/users", bob))
    wait_for_advisories(api)
    return server


@pytest.fixture
def registry(server: ServerProcess) -> Registry:
    """The public repository."""
    return Registry(server.url, "main/npm")


@pytest.fixture(scope="module")
def module_bench(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., NodeBench]:
    """Make a bench for a repository by name, with an admin's token or another: ``("private", token=None)``."""

    def bench(name: str = "npm", **options: str | None) -> NodeBench:
        registry = Registry(server.url, f"main/{name}")
        token = options["token"] if "token" in options else registry.token()
        return NodeBench(tmp_path_factory.mktemp("bench"), registry, token)

    return bench


@pytest.fixture
def open_bench(module_bench: Callable[..., NodeBench]) -> Callable[..., NodeBench]:
    """`module_bench` for single tests."""
    return module_bench


@pytest.fixture
def bench(open_bench: Callable[..., NodeBench]) -> NodeBench:
    """A bench for the public repository, with an admin's token."""
    return open_bench()
