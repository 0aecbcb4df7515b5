"""
Servers that the tests of a room share, and clients of them.

A room's conftest says in ``plan`` what its server has. The server starts with the first test that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.format_repositories import World as FormatRepositories
from tests.support.format_repositories import format_repositories
from tests.support.format_worlds import Plan, World, Worlds
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess
from tests.support.upstreams.server import fresh


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    """All servers of these tests, until the last test has ended."""
    with ExitStack() as stack:
        yield Worlds(tmp_path_factory.mktemp, stack)


@pytest.fixture(scope="session")
def format_repositories_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FormatRepositories]:
    """A server with repositories of each format."""
    with format_repositories(tmp_path_factory.mktemp("formats")) as found:
        yield found


@pytest.fixture(scope="module")
def world(worlds: Worlds, plan: Plan) -> World:
    """The server of the room, its tokens and upstreams."""
    return worlds.of(plan)


@pytest.fixture(scope="module")
def format_server(world: World) -> ServerProcess:
    """The server of the room."""
    return world.server


@pytest.fixture(scope="module")
def token_texts(world: World) -> Mapping[str, str]:
    """The server's tokens by name."""
    return world.tokens


def _upstream(name: str) -> Any:
    @pytest.fixture(scope="module", name=name)
    def upstream(world: World) -> Any:
        """An upstream of the room; each test adds packages under names of its own."""
        return world.upstreams[name]

    return upstream


first, second, upstream, old_upstream, legacy = map(
    _upstream, ("first", "second", "upstream", "old_upstream", "legacy")
)


@pytest.fixture
def api(format_server: ServerProcess) -> HttpClient:
    """A client of the management API, with the admin's credentials."""
    return HttpClient(f"{format_server.url}/api", (USER, PASSWORD))


@pytest.fixture
def repository(format_server: ServerProcess) -> Callable[[str], HttpClient]:
    """Return a client of a repository by name, with the admin's credentials."""
    return lambda name: HttpClient(f"{format_server.url}/repositories/main/{name}", (USER, PASSWORD))


@pytest.fixture
def main(repository: Callable[[str], HttpClient], plan: Plan) -> HttpClient:
    """A client of the repository that most tests use, with the admin's credentials."""
    return repository(next(iter(plan.hosted)))


@pytest.fixture
def as_token(
    repository: Callable[[str], HttpClient], token_texts: Mapping[str, str], plan: Plan
) -> Callable[..., HttpClient]:
    """Return a client of a repository that sends a token: ``as_token(token, repository)``."""
    usual = next(iter(plan.hosted))
    return lambda token, name=usual: repository(name).as_user("__token__", token_texts[token])


@pytest.fixture
def at(repository: Callable[[str], HttpClient], world: World) -> Iterator[Callable[[str], HttpClient]]:
    """Return a client of a repository by name, with the admin's credentials, beside upstreams that have no past."""
    with fresh(*world.upstreams.values()):
        yield repository


@pytest.fixture
def mirror(at: Callable[[str], HttpClient]) -> HttpClient:
    """A client of the proxy that most tests use."""
    return at("mirror")
