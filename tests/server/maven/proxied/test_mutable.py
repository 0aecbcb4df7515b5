"""Files that may change under their paths: literal snapshots, and what upstreams have about all of themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pkgrepo.proxy.upstream.limits import TRIES_WITH_OLD
from tests.server.maven.proxied.conftest import Fragile
from tests.support.http_client import HttpClient
from tests.support.upstreams import faults
from tests.support.upstreams.maven import MavenUpstream
from tests.support.upstreams.messages import Answer

pytestmark = pytest.mark.server

At = Callable[[str], HttpClient]
JAR = "com/example/lit/1.0-SNAPSHOT/lit-1.0-SNAPSHOT.jar"
LARGE = bytes(range(256)) * 1000
CATALOGUE = "/archetype-catalog.xml"


def test_fresh_files_are_not_asked_for_again(both: HttpClient, first: MavenUpstream) -> None:
    path = first.add(JAR, LARGE)
    assert both.get(path).body == LARGE
    again = both.get(path)
    assert (again.body, again.headers["cache-control"]) == (LARGE, "no-cache")
    assert both.get(f"{path}.sha1").status == 200
    assert both.get(path, Range="bytes=1-3").body == LARGE[1:4]
    assert first.count(path) == 1


def test_files_that_are_not_fresh_are_confirmed_or_replaced(fragile: Callable[..., Fragile]) -> None:
    proxied = fragile(cache_ttl="0")
    path = proxied.first.add(JAR, b"one")
    assert proxied.client.get(f"{path}.sha1").status == 200
    assert proxied.client.get(path).body == b"one"
    proxied.first.add(JAR, b"two")
    assert proxied.client.get(path).body == b"two"
    statuses = [each.status for each in proxied.first.exchanges if each.request.path == path]
    assert statuses == [200, 304, 200]


def test_old_files_are_served_while_upstreams_fail(fragile: Callable[..., Fragile]) -> None:
    proxied = fragile(cache_ttl="0")
    path = proxied.first.add(JAR, b"old")
    assert proxied.client.get(f"{path}.sha1").status == 200
    proxied.first.misbehave(path, faults.failing(500), repeat=True)
    stale = proxied.client.get(path)
    assert (stale.body, stale.headers["warning"][:3]) == (b"old", "110")


def test_nobody_waits_for_a_third_try_while_there_is_an_old_file(fragile: Callable[..., Fragile]) -> None:
    proxied = fragile(cache_ttl="0")
    path = proxied.first.add(JAR, b"old")
    assert proxied.client.get(f"{path}.sha1").status == 200
    proxied.first.misbehave(path, faults.failing(503), repeat=True)
    before = proxied.first.count(path)
    assert proxied.client.get(path).body == b"old"
    assert proxied.first.count(path) - before == TRIES_WITH_OLD


def test_files_that_upstreams_remove_are_gone(fragile: Callable[..., Fragile]) -> None:
    proxied = fragile(cache_ttl="0", cache={"negative_ttl": 0})
    path = proxied.first.add(JAR, b"old")
    assert proxied.client.get(f"{path}.sha1").status == 200
    proxied.first.misbehave(path, Answer(404))
    assert proxied.client.get(path).status == 404
    assert proxied.client.get(path).body == b"old"


def test_wrong_files_are_never_served(fragile: Callable[..., Fragile]) -> None:
    proxied = fragile()
    path = proxied.first.add(JAR, b"right")
    proxied.first.misbehave(path, faults.corrupted, repeat=True)
    assert proxied.client.get(path).status == 502
    proxied.first.misbehave(path, faults.HTML, repeat=True)
    assert proxied.client.get(path).status == 502
    proxied.first.behave()
    assert proxied.client.get(path).body == b"right"


def test_catalogues_of_upstreams_are_served(at: At, first: MavenUpstream) -> None:
    first.add(CATALOGUE[1:], b"<archetype-catalog/>")
    assert at("mirror").head(CATALOGUE).headers["content-length"] == "20"
    assert at("mirror").get(CATALOGUE).body == b"<archetype-catalog/>"
    assert at("all").get(CATALOGUE).body == b"<archetype-catalog/>"


def test_lists_of_prefixes_are_served_only_for_a_single_upstream(at: At, first: MavenUpstream) -> None:
    first.add(".meta/prefixes.txt", b"## repository-prefixes/2.0\n/com/example\n")
    assert at("mirror").get("/.meta/prefixes.txt").status == 200
    assert at("both").get("/.meta/prefixes.txt").status == 404
    assert at("all").get("/.meta/prefixes.txt").status == 404


def test_evicted_files_are_asked_for_again(both: HttpClient, first: MavenUpstream) -> None:
    path = first.add(JAR.replace("lit", "evicted"), b"x")
    assert both.get(f"{path}.sha1").status == 200
    assert both.delete(path).status == 204
    assert both.get(path).status == 200
    assert first.count(path) == 2
