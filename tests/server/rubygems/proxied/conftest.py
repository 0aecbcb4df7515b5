"""A server with proxies of a gem server that the tests fill, and virtual repositories."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.configurations import hosted, proxy, virtual
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess, running
from tests.support.upstreams.rubygems import LegacyRubyUpstream, RubyUpstream
from tests.support.upstreams.server import fresh


@pytest.fixture(scope="package")
def upstream() -> Iterator[RubyUpstream]:
    """A gem server, whose gems each test adds under names of its own."""
    with RubyUpstream() as server:
        yield server


@pytest.fixture(scope="package")
def second() -> Iterator[RubyUpstream]:
    """Another one."""
    with RubyUpstream() as server:
        yield server


@pytest.fixture(scope="package")
def legacy() -> Iterator[LegacyRubyUpstream]:
    """A server without compact index."""
    with LegacyRubyUpstream() as server:
        yield server


@pytest.fixture(scope="package")
def format_server(
    upstream: RubyUpstream,
    second: RubyUpstream,
    legacy: LegacyRubyUpstream,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ServerProcess]:
    """A server with a hosted repository, proxies of the gem servers, and virtual repositories."""
    configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + "".join(
        (
            hosted("ruby", "own"),
            proxy("ruby", "mirror", upstream.url, cache_ttl="0", cache="{ negative_ttl = 0 }"),
            proxy("ruby", "steady", upstream.url),
            proxy("ruby", "small", upstream.url, cache_ttl="0"),
            proxy("ruby", "large", upstream.url, cache_ttl="0"),
            proxy("ruby", "folder", legacy.url, cache_ttl="0", cache="{ negative_ttl = 0 }"),
            proxy("ruby", "folder-broken", legacy.url, cache_ttl="0", cache="{ negative_ttl = 0 }"),
            proxy("ruby", "folder-second", upstream.url, legacy.url, cache_ttl="0", cache="{ negative_ttl = 0 }"),
            proxy("ruby", "keeping", upstream.url, cache_ttl="0", policy="{ keep_removed = true }"),
            proxy("ruby", "other", second.url, cache_ttl="0"),
            proxy("ruby", "aged", upstream.url, cache_ttl="0", policy="{ minimum_release_age = 7 }"),
            virtual("ruby", "all", "main/own", "main/mirror", publish_to="main/own"),
            virtual("ruby", "both", "main/mirror", "main/other"),
            virtual("ruby", "with-folder", "main/own", "main/folder", publish_to="main/own"),
            virtual("ruby", "closed", "main/mirror", policy='{ reserved_names = ["acme-*"] }'),
        )
    )
    with running(tmp_path_factory.mktemp("server"), configuration) as process:
        yield process


@pytest.fixture
def at(
    repository: Callable[[str], HttpClient], upstream: RubyUpstream, second: RubyUpstream, legacy: LegacyRubyUpstream
) -> Iterator[Callable[[str], HttpClient]]:
    """Return a client of a repository by name, with the admin's credentials, beside upstreams that have no past."""
    with fresh(upstream, second, legacy):
        yield repository


@pytest.fixture
def mirror(at: Callable[[str], HttpClient]) -> HttpClient:
    """A client of the proxy that asks its upstream each time."""
    return at("mirror")
