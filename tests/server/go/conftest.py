"""A server with Go repositories: hosted ones, proxies of module proxies that the tests fill, and virtual ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.configurations import PRIVATE, proxy, virtual
from tests.support.format_worlds import Plan
from tests.support.upstreams.go import GoUpstream

EAGER = {"cache_ttl": "0", "cache": "{ negative_ttl = 0 }"}
OLD = '[{ name = "old", match = { age_days = 7 }, reason = "too young" }]'
FREE = '[{ name = "free", match = { licences = ["GPL-*"] }, reason = "ask the lawyers" }]'


def proxies(upstream: GoUpstream, second: GoUpstream, old_upstream: GoUpstream) -> Iterator[str]:
    yield proxy("go", "mirror", upstream.url, **EAGER)
    yield proxy("go", "both", upstream.url, second.url, **EAGER)
    yield proxy("go", "leaving", old_upstream.url, **EAGER)
    yield proxy("go", "aged", upstream.url, **EAGER, policy="{ minimum_release_age = 7 }")
    yield proxy("go", "ruled", upstream.url, **EAGER, policy=f"{{ rules = {OLD} }}")
    yield proxy("go", "licensed", upstream.url, **EAGER, policy=f"{{ rules = {FREE} }}")
    yield proxy("go", "reserved", upstream.url, **EAGER, policy='{ reserved_names = ["corp.example/*"] }')
    yield virtual("go", "all", "main/own", "main/mirror", publish_to="main/own")


PLAN = Plan(
    "go",
    {"own": "", "closed": PRIVATE},
    scopes={"one": ("main/own", ["read", "write"], ["example.com/mine/*"])},
    max_upload=1024 * 1024,
    upstreams={"upstream": GoUpstream, "second": GoUpstream, "old_upstream": GoUpstream},
    proxies=proxies,
)


@pytest.fixture(scope="session")
def plan() -> Plan:
    return PLAN
