"""A server with npm repositories in its own process, and a bench to run Node's clients on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.support.index import PASSWORD, USER
from tests.support.nodeclients import NodeBench, Registry
from tests.support.processes import ServerProcess, twistd_process
from tests.support.wire import Wire

CONFIG = """
[npm]
advisories = "osv"

[[bootstrap.repositories]]
name = "npm"
format = "npm"

[[bootstrap.repositories]]
name = "private"
format = "npm"
visibility = "private"
"""

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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A running server with two npm repositories, which knows of one vulnerability."""
    folder = tmp_path_factory.mktemp("server")
    (folder / "pkgrepo.toml").write_text(CONFIG)
    (folder / "osv").mkdir()
    (folder / "osv" / "one.json").write_text(json.dumps(ADVISORY))
    process = twistd_process(folder, "--config", str(folder / "pkgrepo.toml"))
    process.wait_ready()
    bob = {"username": "bob", "password": "bob keeps bees at home", "email": "bob@example.org"}
    made = Wire(f"{process.url}/api", (USER, PASSWORD)).post_json("/users", bob)
    assert made.status == 201, made
    yield process
    assert process.stop() in (0, -15), process.output  # twistd ends by the signal it got
    assert "Traceback" not in process.output, process.output


@pytest.fixture
def registry(server: ServerProcess) -> Registry:
    """The public repository."""
    return Registry(server.url, "main/npm")


@pytest.fixture(scope="module")
def module_bench(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., NodeBench]:
    """A bench for a repository by its name, as its admin unless a token is named: ``("private", token=None)``."""

    def bench(name: str = "npm", **options: str | None) -> NodeBench:
        registry = Registry(server.url, f"main/{name}")
        token = options["token"] if "token" in options else registry.token()
        return NodeBench(tmp_path_factory.mktemp("bench"), registry, token)

    return bench


@pytest.fixture
def open_bench(module_bench: Callable[..., NodeBench]) -> Callable[..., NodeBench]:
    """The same for single tests."""
    return module_bench


@pytest.fixture
def bench(open_bench: Callable[..., NodeBench]) -> NodeBench:
    """A bench for the public repository, as its admin."""
    return open_bench()
