"""A server with proxies of gem servers that the tests fill, and virtual repositories."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.configurations import proxy, virtual
from tests.support.format_worlds import Plan
from tests.support.upstreams.rubygems import LegacyRubyUpstream, RubyUpstream

EAGER = {"cache_ttl": "0", "cache": "{ negative_ttl = 0 }"}


def proxies(upstream: RubyUpstream, second: RubyUpstream, legacy: LegacyRubyUpstream) -> Iterator[str]:
    """Proxies; C{legacy} has no compact index."""
    yield proxy("ruby", "mirror", upstream.url, **EAGER)
    yield proxy("ruby", "steady", upstream.url)
    for name in ("small", "large"):
        yield proxy("ruby", name, upstream.url, cache_ttl="0")
    for name in ("folder", "folder-broken"):
        yield proxy("ruby", name, legacy.url, **EAGER)
    yield proxy("ruby", "folder-second", upstream.url, legacy.url, **EAGER)
    yield proxy("ruby", "keeping", upstream.url, cache_ttl="0", policy="{ keep_removed = true }")
    yield proxy("ruby", "other", second.url, cache_ttl="0")
    yield proxy("ruby", "aged", upstream.url, cache_ttl="0", policy="{ minimum_release_age = 7 }")
    yield virtual("ruby", "all", "main/own", "main/mirror", publish_to="main/own")
    yield virtual("ruby", "both", "main/mirror", "main/other")
    yield virtual("ruby", "with-folder", "main/own", "main/folder", publish_to="main/own")
    yield virtual("ruby", "closed", "main/mirror", policy='{ reserved_names = ["acme-*"] }')


UPSTREAMS = {"upstream": RubyUpstream, "second": RubyUpstream, "legacy": LegacyRubyUpstream}
PLAN = Plan("ruby", {"own": ""}, upstreams=UPSTREAMS, proxies=proxies)


@pytest.fixture(scope="session")
def plan() -> Plan:
    return PLAN
