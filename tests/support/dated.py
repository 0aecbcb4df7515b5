"""Versions that are published one after the other, so that views of the past tell them apart."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from tests.support.format_cases import CASES
from tests.support.http_client import HttpClient
from tests.support.timeouts import polled

NAME = "aged"
VERSIONS = ("1.0.0", "1.1.0")
KINDS = ("own", "fresh", "both")  # hosted, a proxy of it that always asks, and a virtual repository around that


def now_between() -> str:
    """
    A whole second that is past, with all that was published so far.

    What is published next is of a later second: some upstreams give no parts of it.
    """
    second = int(time.time()) + 1
    polled(lambda: time.time() >= second + 1.01)
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%SZ}"


def now_exactly() -> str:
    """The millisecond that is past now, for what is published here: times of the log are as exact."""
    now_ms = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= now_ms:
        pass
    return f"{datetime.fromtimestamp(now_ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}.{now_ms % 1000:03d}Z"


def add_repositories(api: HttpClient, url: str, format: str, **more: str) -> None:
    """Add ``<format>-fresh`` and ``<format>-both`` beside the hosted ``main/<format>-own`` of the server at ``url``."""
    routes = [{"url": f"{url}/repositories/main/{format}-own{CASES[format].upstream}", "name": "up"}]
    for name, config in (
        ("fresh", {"type": "Proxy", "proxy": {"routes": routes}, "cache_ttl": "0"}),
        ("both", {"type": "Virtual", "members": [f"main/{format}-fresh"]}),
    ):
        body = {"name": f"{format}-{name}", "storage": "main", "format": format, "visibility": "public", **more}
        made = api.post_json("/repository", {**body, "config": config})
        assert made.status == 201, made.text
