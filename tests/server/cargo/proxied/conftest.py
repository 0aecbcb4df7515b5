"""A server with proxies of a registry that the tests fill, and virtual repositories."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.configurations import proxy, virtual
from tests.support.format_worlds import Plan
from tests.support.upstreams.cargo import CargoUpstream

EAGER = {"cache_ttl": "0", "cache": "{ negative_ttl = 0 }"}


def proxies(upstream: CargoUpstream, second: CargoUpstream, first: CargoUpstream) -> Iterator[str]:
    """Proxies and virtual repositories."""
    yield proxy("cargo", "mirror", upstream.url, **EAGER)
    yield proxy("cargo", "steady", upstream.url)
    yield proxy("cargo", "bare", first.url, **EAGER)
    yield proxy("cargo", "other", second.url, **EAGER)
    yield proxy("cargo", "aged", upstream.url, cache_ttl="0", policy="{ minimum_release_age = 7 }")
    yield virtual("cargo", "all", "main/own", "main/mirror", publish_to="main/own")
    yield virtual("cargo", "both", "main/mirror", "main/other", resolution='"merge"')
    yield virtual("cargo", "merged", "main/own", "main/mirror", policy='{ merge_names = ["merged-*"] }')


UPSTREAMS = {"upstream": CargoUpstream, "second": CargoUpstream, "first": CargoUpstream}
PLAN = Plan("cargo", {"own": ""}, upstreams=UPSTREAMS, proxies=proxies)


@pytest.fixture(scope="session")
def plan() -> Plan:
    return PLAN
