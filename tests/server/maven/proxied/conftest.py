"""A server with proxies of two repositories that the tests fill, and virtual repositories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from attrs import frozen

from tests.support.configurations import hosted, proxy, virtual
from tests.support.format_worlds import Plan
from tests.support.http_client import HttpClient, Reply
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess
from tests.support.timeouts import polled
from tests.support.upstreams.maven import MavenUpstream


def two_routes(first: str, second: str, **settings: str) -> str:
    """The line with the configuration of a proxy, whose second route has the higher priority."""
    routes = f'{{ url = "{second}", name = "second" }}, {{ url = "{first}", name = "first", priority = 7 }}'
    rest = "".join(f", {key} = {value}" for key, value in settings.items())
    return f'config = {{ type = "Proxy", proxy = {{ routes = [{routes}] }}{rest} }}'


def proxies(first: MavenUpstream, second: MavenUpstream) -> Iterator[str]:
    """Proxies; C{first} has the higher priority, C{second} announces digests in the header."""
    urls = (first.url, second.url)
    only = f'{{ url = "{first.url}", name = "first", packages = ["com.only:*"] }}, {{ url = "{second.url}" }}'
    yield hosted(
        "maven",
        both=two_routes(*urls),
        copies=two_routes(*urls, routes_are_replicas="true"),
        short=two_routes(*urls, cache_ttl='"0"', cache="{ negative_ttl = 0 }"),
        reserving=two_routes(*urls, policy='{ reserved_names = ["com.acme*"] }'),
        limited=f'config = {{ type = "Proxy", proxy = {{ routes = [{only}] }} }}',
        hidden=two_routes(*urls) + '\nvisibility = "private"',
    )
    yield proxy("maven", "mirror", first.url)
    yield proxy("maven", "other", second.url)
    yield proxy("maven", "aged", first.url, policy="{ minimum_release_age = 7 }")
    yield virtual("maven", "all", "main/own", "main/mirror", "main/other", publish_to="main/own")
    yield virtual("maven", "guarded", "main/mirror", policy='{ reserved_names = ["com.guarded*"] }')
    yield virtual("maven", "readable", "main/mirror", "main/own")


UPSTREAMS = {"first": MavenUpstream, "second": partial(MavenUpstream, fields={"X-Checksum-SHA1": "{}"})}
PLAN = Plan("maven", {"own": ""}, upstreams=UPSTREAMS, proxies=proxies)


@pytest.fixture(scope="session")
def plan() -> Plan:
    return PLAN


def record(client: HttpClient, path: str) -> None:
    """Wait until a file is recorded: it has a time then."""

    def recorded() -> bool:
        reply = client.get(path)
        assert reply.status == 200
        return "last-modified" in reply.headers

    polled(recorded)


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
