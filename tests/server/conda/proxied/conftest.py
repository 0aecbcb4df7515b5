"""A server with proxies of channels that the tests fill, and virtual repositories."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.configurations import hosted, proxy, virtual
from tests.support.http_client import HttpClient
from tests.support.server_process import ServerProcess, running
from tests.support.upstreams.conda import CondaUpstream
from tests.support.upstreams.server import fresh


@pytest.fixture(scope="package")
def upstream() -> Iterator[CondaUpstream]:
    """A channel, whose packages each test adds under names of its own."""
    with CondaUpstream() as server:
        yield server


@pytest.fixture(scope="package")
def second() -> Iterator[CondaUpstream]:
    """Another one, without compressed documents."""
    with CondaUpstream(zst=False) as server:
        yield server


@pytest.fixture(scope="package")
def format_server(
    upstream: CondaUpstream, second: CondaUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """A server with a hosted channel, proxies of the channels, and virtual repositories."""
    eager = {"cache_ttl": "0", "cache": "{ negative_ttl = 0 }"}
    configuration = 'proxy.allow_private = ["127.0.0.1"]\nproxy.store_delay = 0\n' + "".join(
        (
            hosted("conda", "own", "away"),
            proxy("conda", "mirror", upstream.url, **eager),
            proxy("conda", "small", upstream.url, **eager),
            proxy("conda", "old", upstream.url, **eager),
            proxy("conda", "broken", upstream.url, **eager),
            proxy("conda", "failing", upstream.url, **eager),
            proxy("conda", "other", second.url, **eager),
            proxy("conda", "slow", upstream.url),
            proxy("conda", "aged", upstream.url, policy="{ minimum_release_age = 7 }", **eager),
            virtual("conda", "all", "main/own", "main/mirror", publish_to="main/own"),
            virtual("conda", "both", "main/mirror", "main/other"),
            virtual("conda", "shaky", "main/failing", "main/other"),
            virtual("conda", "merged", "main/mirror", "main/other", resolution='"merge"'),
            virtual("conda", "closed", "main/mirror", policy='{ reserved_names = ["acme-*"] }'),
            virtual("conda", "guarded", "main/away", "main/mirror"),
        )
    )
    with running(tmp_path_factory.mktemp("server"), configuration) as process:
        yield process


@pytest.fixture
def at(
    repository: Callable[[str], HttpClient], upstream: CondaUpstream, second: CondaUpstream
) -> Iterator[Callable[[str], HttpClient]]:
    """Return a client of a repository by name, with the admin's credentials, beside upstreams that have no past."""
    with fresh(upstream, second):
        yield repository
    upstream.info, second.info = {}, {}


@pytest.fixture
def mirror(at: Callable[[str], HttpClient]) -> HttpClient:
    """A client of the proxy that asks its upstream each time."""
    return at("mirror")
