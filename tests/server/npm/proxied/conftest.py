"""A server with a proxy of a registry that the tests fill, and virtual repositories."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.configurations import PRIVATE, hosted, proxy, virtual
from tests.support.format_worlds import Plan
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_publish
from tests.support.upstreams.npm import NpmUpstream


def proxies(upstream: NpmUpstream, second: NpmUpstream) -> Iterator[str]:
    """
    Proxies of two registries.

    C{mirror} is a proxy of the first registry, C{short}, C{faulty} and C{fragile} ask it each time, C{aged} hides
    versions of the last week. C{both} has routes to both registries, and C{other} to the second alone.
    """
    yield hosted("npm", team=PRIVATE)
    yield proxy("npm", "mirror", upstream.url)
    for name in ("short", "faulty", "fragile"):
        yield proxy("npm", name, upstream.url, cache_ttl="0")
    yield proxy("npm", "keeping", upstream.url, cache_ttl="0", policy="{ keep_removed = true }")
    yield proxy("npm", "hidden", upstream.url, lines=PRIVATE)
    yield proxy("npm", "aged", upstream.url, policy="{ minimum_release_age = 7 }")
    yield proxy("npm", "both", upstream.url, second.url)
    yield proxy("npm", "copies", upstream.url, second.url, routes_are_replicas="true")
    yield proxy("npm", "other", second.url)
    yield virtual("npm", "merged", "main/mirror", "main/other", resolution='"merge"')
    yield virtual("npm", "ordered", "main/mirror", "main/other")
    yield virtual("npm", "all", "main/own", "main/mirror", publish_to="main/own")
    yield virtual("npm", "readable", "main/mirror", "main/own")
    yield virtual("npm", "beside_private", "main/team", "main/mirror")


PLAN = Plan(
    "npm",
    {"own": "", "mine": ""},
    upstreams={"upstream": NpmUpstream, "second": NpmUpstream},
    proxies=proxies,
)


@pytest.fixture(scope="session")
def plan() -> Plan:
    return PLAN


@pytest.fixture
def publish(at):
    """Publish a small package: ``publish(name, version, where=..., **options of make_publish)``."""

    def put(name: str, version: str = "1.0.0", *, where: HttpClient | None = None, **options):
        reply = (where or at("own")).put(f"/{name.replace('/', '%2f')}", make_publish(name, version, **options))
        assert reply.status == 201, reply

    return put
