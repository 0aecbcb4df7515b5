"""A server with proxies of two repositories that the tests fill, and virtual repositories."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from attrs import frozen

from tests.support.configurations import hosted, proxy, virtual
from tests.support.http_client import HttpClient, Reply
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, running
from tests.support.upstreams.maven import MavenUpstream
from tests.support.upstreams.server import fresh


@pytest.fixture(scope="package")
def first() -> Iterator[MavenUpstream]:
    """The upstream with the higher priority; each test uses names of its own."""
    with MavenUpstream() as upstream:
        yield upstream


@pytest.fixture(scope="package")
def second() -> Iterator[MavenUpstream]:
    """The other upstream, which announces digests in the header."""
    with MavenUpstream(fields={"X-Checksum-SHA1": "{}"}) as upstream:
        yield upstream


def two_routes(first: str, second: str, **settings: str) -> str:
    """The line with the configuration of a proxy, whose second route has the higher priority."""
    routes = f'{{ url = "{second}", name = "second" }}, {{ url = "{first}", name = "first", priority = 7 }}'
    rest = "".join(f", {key} = {value}" for key, value in settings.items())
    return f'config = {{ type = "Proxy", proxy = {{ routes = [{routes}] }}{rest} }}'


@pytest.fixture(scope="package")
def format_server(
    first: MavenUpstream, second: MavenUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    urls = (first.url, second.url)
    only = f'{{ url = "{first.url}", name = "first", packages = ["com.only:*"] }}, {{ url = "{second.url}" }}'
    repositories = {
        "own": "",
        "both": two_routes(*urls),
        "copies": two_routes(*urls, routes_are_replicas="true"),
        "short": two_routes(*urls, cache_ttl='"0"', cache="{ negative_ttl = 0 }"),
        "reserving": two_routes(*urls, policy='{ reserved_names = ["com.acme*"] }'),
        "limited": f'config = {{ type = "Proxy", proxy = {{ routes = [{only}] }} }}',
        "hidden": two_routes(*urls) + '\nvisibility = "private"',
    }
    configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + "".join(
        (
            hosted("maven", **repositories),
            proxy("maven", "mirror", first.url),
            proxy("maven", "other", second.url),
            proxy("maven", "aged", first.url, policy="{ minimum_release_age = 7 }"),
            virtual("maven", "all", "main/own", "main/mirror", "main/other", publish_to="main/own"),
            virtual("maven", "readable", "main/mirror", "main/own"),
        )
    )
    with running(tmp_path_factory.mktemp("server"), configuration) as process:
        yield process


@pytest.fixture
def at(
    repository: Callable[[str], HttpClient], first: MavenUpstream, second: MavenUpstream
) -> Iterator[Callable[[str], HttpClient]]:
    """Return a client of a repository by name, with the admin's credentials, beside upstreams that have no past."""
    with fresh(first, second):
        yield repository


def record(client: HttpClient, path: str) -> None:
    """Wait until a file is recorded: it has a time then."""
    while "last-modified" not in (reply := client.get(path)).headers:
        assert reply.status == 200


@pytest.fixture
def both(at: Callable[[str], HttpClient]) -> HttpClient:
    """A client of the proxy with two routes."""
    return at("both")


@pytest.fixture
def purge(api: HttpClient) -> Callable[[str], Reply]:
    """Purge the cache of a proxy."""
    return lambda name: api.post(f"/repository/main%2F{name}/cache/purge")


@frozen
class Fragile:
    """A proxy of two upstreams of its own, which may fail: others would not be asked any more for a while."""

    client: HttpClient
    first: MavenUpstream
    second: MavenUpstream


@pytest.fixture
def fragile(format_server: ServerProcess, api: HttpClient) -> Iterator[Callable[..., Fragile]]:
    """Make such a proxy; keyword arguments are further members of its configuration."""
    upstreams: list[MavenUpstream] = []

    def make(**settings: object) -> Fragile:
        pair = (MavenUpstream().start(), MavenUpstream().start())
        upstreams.extend(pair)
        routes = [{"url": each.url, "name": f"route{number}"} for number, each in enumerate(pair)]
        name = f"fragile{pair[0].port}"
        config = {"type": "Proxy", "proxy": {"routes": routes}, **settings}
        body = {"name": name, "storage": "main", "format": "maven", "visibility": "public", "config": config}
        assert api.post_json("/repository", body).status == 201
        return Fragile(HttpClient(f"{format_server.url}/repositories/main/{name}", (USER, PASSWORD)), *pair)

    yield make
    for each in upstreams:
        each.stop()
