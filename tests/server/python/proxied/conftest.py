"""A server with proxies of an index that the tests fill, and virtual repositories."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.support.configurations import proxy, virtual
from tests.support.format_worlds import Plan
from tests.support.http_client import HttpClient
from tests.support.python_packages import make_wheel
from tests.support.timeouts import polled
from tests.support.upstreams.python import PythonUpstream

JSON = "application/vnd.pypi.simple.v1+json"

HOLDING = '{ rules = [{ name = "no thieves", reason = "steals keys", match = { versions = ">=2" } }] }'


def proxies(upstream: PythonUpstream, old_upstream: PythonUpstream) -> Iterator[str]:
    """Proxies; C{old_upstream} has neither JSON nor digests."""
    yield proxy("python", "mirror", upstream.simple)
    yield proxy("python", "short", upstream.url, cache_ttl="0")
    yield proxy("python", "keeping", upstream.url, cache_ttl="0", policy="{ keep_removed = true }")
    yield virtual("python", "around-keeping", "main/keeping")
    yield proxy("python", "lonely", upstream.url, cache_ttl="0", cache="{ negative_ttl = 0 }")
    yield proxy("python", "old", old_upstream.url)
    yield proxy("python", "old-short", old_upstream.url, cache_ttl="0")
    yield proxy("python", "aged", upstream.url, policy="{ minimum_release_age = 7 }")
    yield proxy("python", "holding", upstream.url, cache_ttl="0", policy=HOLDING)
    yield virtual("python", "first", "main/holding", "main/old-short")
    yield virtual("python", "merged", "main/holding", "main/old-short", resolution='"merge"')
    yield virtual("python", "all", "main/own", "main/mirror", publish_to="main/own")
    yield virtual("python", "readable", "main/mirror", "main/own")
    yield virtual("python", "anything", "main/own", "main/short")


UPSTREAMS = {"upstream": PythonUpstream, "old_upstream": partial(PythonUpstream, json=False, digests=False)}
PLAN = Plan("python", {"own": ""}, upstreams=UPSTREAMS, proxies=proxies)


@pytest.fixture(scope="session")
def plan() -> Plan:
    return PLAN


@pytest.fixture
def publish(at: Callable[[str], HttpClient]) -> Callable[..., tuple[str, bytes]]:
    """Publish a wheel with options of ``make_wheel``. Returns its name and bytes."""

    def put(
        project: str, version: str = "1.0", *, where: HttpClient | None = None, **options: Any
    ) -> tuple[str, bytes]:
        filename, data = make_wheel(project, version, **options)
        reply = (where or at("own")).put(f"/{project}/{version}/{filename}", data)
        assert reply.status == 201, reply
        return filename, data

    return put


@pytest.fixture
def files(at: Callable[[str], HttpClient]) -> Callable[..., dict[str, dict[str, Any]]]:
    """Return the files on a project's page by their names: ``files(project, where=...)``."""

    def read(project: str, where: HttpClient | None = None) -> dict[str, dict[str, Any]]:
        reply = (where or at("mirror")).get(f"/simple/{project}/", Accept=JSON)
        assert reply.status == 200, reply
        return {file["filename"]: file for file in reply.json["files"]}

    return read


@pytest.fixture
def keep() -> Callable[[HttpClient, str], None]:
    """Get a file of a repository until it is kept: then it has a time."""

    def get(where: HttpClient, path: str) -> None:
        def kept() -> bool:
            reply = where.get(path)
            assert reply.status == 200, reply
            return "last-modified" in reply.headers

        polled(kept)

    return get
