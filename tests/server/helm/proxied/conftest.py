"""A server with proxies of chart repositories that the tests fill, and virtual repositories."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.configurations import proxy, virtual
from tests.support.format_worlds import Plan
from tests.support.upstreams.helm import HelmUpstream

EAGER = {"cache_ttl": "0", "cache": "{ negative_ttl = 0 }"}


def proxies(upstream: HelmUpstream, second: HelmUpstream) -> Iterator[str]:
    for name in ("mirror", "paged", "failing"):
        yield proxy("helm", name, upstream.url, **EAGER)
    yield proxy("helm", "other", second.url, **EAGER)
    yield virtual("helm", "all", "main/own", "main/mirror", "main/other", publish_to="main/own")
    yield virtual("helm", "merged", "main/mirror", "main/other", resolution='"merge"')
    yield virtual("helm", "closed", "main/mirror", policy='{ reserved_names = ["acme-*"] }')


PLAN = Plan("helm", {"own": ""}, upstreams={"upstream": HelmUpstream, "second": HelmUpstream}, proxies=proxies)


@pytest.fixture(scope="session")
def plan() -> Plan:
    return PLAN
