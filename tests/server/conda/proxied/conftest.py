"""A server with proxies of channels that the tests fill, and virtual repositories."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.support.configurations import proxy, virtual
from tests.support.format_worlds import Plan, World
from tests.support.upstreams.conda import CondaUpstream

EAGER = {"cache_ttl": "0", "cache": "{ negative_ttl = 0 }"}


def proxies(upstream: CondaUpstream, second: CondaUpstream) -> Iterator[str]:
    for name in ("mirror", "small", "old", "broken", "failing"):
        yield proxy("conda", name, upstream.url, **EAGER)
    yield proxy("conda", "other", second.url, **EAGER)
    yield proxy("conda", "slow", upstream.url)
    yield proxy("conda", "aged", upstream.url, policy="{ minimum_release_age = 7 }", **EAGER)
    yield virtual("conda", "all", "main/own", "main/mirror", publish_to="main/own")
    yield virtual("conda", "both", "main/mirror", "main/other")
    yield virtual("conda", "shaky", "main/failing", "main/other")
    yield virtual("conda", "merged", "main/mirror", "main/other", resolution='"merge"')
    yield virtual("conda", "closed", "main/mirror", policy='{ reserved_names = ["acme-*"] }')
    yield virtual("conda", "guarded", "main/away", "main/mirror")


# The second channel has no compressed documents.
UPSTREAMS = {"upstream": CondaUpstream, "second": partial(CondaUpstream, zst=False)}
PLAN = Plan("conda", {"own": "", "away": ""}, upstreams=UPSTREAMS, proxies=proxies)


@pytest.fixture(scope="session")
def plan() -> Plan:
    return PLAN


@pytest.fixture
def at(at, world: World):
    yield at
    for each in world.upstreams.values():
        each.info = {}
