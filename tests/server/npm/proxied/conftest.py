"""A server with a proxy of a registry that the tests fill, and virtual repositories."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.configurations import PRIVATE, hosted, proxy, virtual
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_publish
from tests.support.server_process import ServerProcess, running
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.server import fresh


@pytest.fixture(scope="package")
def upstream() -> Iterator[NpmUpstream]:
    """A registry, whose packages each test adds under names of its own."""
    with NpmUpstream() as registry:
        yield registry


@pytest.fixture(scope="package")
def second() -> Iterator[NpmUpstream]:
    """Another registry."""
    with NpmUpstream() as registry:
        yield registry


@pytest.fixture(scope="package")
def format_server(
    upstream: NpmUpstream, second: NpmUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """
    A server with repositories of all types.

    C{mirror} is a proxy of the first registry, C{short}, C{faulty} and C{fragile} ask it each time, C{aged} hides
    versions of the last week. C{both} has routes to both registries, and C{other} to the second alone.
    """
    configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + "".join(
        (
            hosted("npm", "own", "mine"),
            proxy("npm", "mirror", upstream.url),
            proxy("npm", "short", upstream.url, cache_ttl="0"),
            proxy("npm", "faulty", upstream.url, cache_ttl="0"),
            proxy("npm", "fragile", upstream.url, cache_ttl="0"),
            proxy("npm", "keeping", upstream.url, cache_ttl="0", policy="{ keep_removed = true }"),
            proxy("npm", "hidden", upstream.url, lines=PRIVATE),
            proxy("npm", "aged", upstream.url, policy="{ minimum_release_age = 7 }"),
            proxy("npm", "both", upstream.url, second.url),
            proxy("npm", "copies", upstream.url, second.url, routes_are_replicas="true"),
            proxy("npm", "other", second.url),
            virtual("npm", "merged", "main/mirror", "main/other", resolution='"merge"'),
            virtual("npm", "ordered", "main/mirror", "main/other"),
            virtual("npm", "all", "main/own", "main/mirror", publish_to="main/own"),
            virtual("npm", "readable", "main/mirror", "main/own"),
            hosted("npm", team=PRIVATE),
            virtual("npm", "beside_private", "main/team", "main/mirror"),
        )
    )
    with running(tmp_path_factory.mktemp("server"), configuration) as process:
        yield process


@pytest.fixture
def at(
    repository: Callable[[str], HttpClient], upstream: NpmUpstream, second: NpmUpstream
) -> Iterator[Callable[[str], HttpClient]]:
    """Return a client of a repository by name, with the admin's credentials, beside upstreams that have no past."""
    with fresh(upstream, second):
        yield repository


@pytest.fixture
def mirror(at):
    return at("mirror")


@pytest.fixture
def publish(at):
    """Publish a small package: ``publish(name, version, where=..., **options of make_publish)``."""

    def put(name: str, version: str = "1.0.0", *, where: HttpClient | None = None, **options):
        reply = (where or at("own")).put(f"/{name.replace('/', '%2f')}", make_publish(name, version, **options))
        assert reply.status == 201, reply

    return put
