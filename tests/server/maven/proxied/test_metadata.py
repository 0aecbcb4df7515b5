"""Metadata of upstreams: joined from all routes, fresh for a while, and never what an upstream wrote."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

import pytest

from tests.server.maven.proxied.conftest import Fragile
from tests.support.http_client import HttpClient, Reply
from tests.support.upstreams import faults
from tests.support.upstreams.maven import MavenUpstream
from tests.support.upstreams.messages import Answer

pytestmark = pytest.mark.server

At = Callable[[str], HttpClient]


def versions(reply: Reply) -> list[str]:
    assert reply.status == 200, reply
    return re.findall(r"<version>([^<]*)</version>", reply.text.partition("<versions>")[2])


def path(artifact: str, version: str = "") -> str:
    return "/".join(["/com/example", artifact, *([version] if version else []), "maven-metadata.xml"])


def test_versions_of_all_routes_are_joined_in_their_order(
    both: HttpClient, first: MavenUpstream, second: MavenUpstream
) -> None:
    for version in ("1.0", "1.10"):
        first.deploy("com.example", "joined", version)
    for version in ("1.9", "1.10", "2.0-SNAPSHOT"):
        second.deploy("com.example", "joined", version)
    found = both.get(path("joined"))
    assert versions(found) == ["1.0", "1.9", "1.10", "2.0-SNAPSHOT"]
    assert "<release>1.10</release>" in found.text
    assert "<latest>2.0-SNAPSHOT</latest>" in found.text
    for algorithm in ("md5", "sha1", "sha256", "sha512"):
        digest = hashlib.new(algorithm, found.body).hexdigest()
        assert both.get(f"{path('joined')}.{algorithm}").text == digest
    assert both.get("/com/example/joined/repo-metadata.xml").body == found.body
    assert (first.count(), second.count()) == (1, 1)


def test_clients_that_want_no_cache_get_what_is_fresh(both: HttpClient, first: MavenUpstream) -> None:
    first.deploy("com.example", "fresh", "1.0")
    for _ in range(3):
        assert versions(both.get(path("fresh"), Cache_Control="no-cache", Pragma="no-cache")) == ["1.0"]
    assert first.count(path("fresh")) == 1


def test_metadata_that_are_not_fresh_are_confirmed_or_replaced(at: At, first: MavenUpstream) -> None:
    first.deploy("com.example", "short", "1.0")
    assert versions(at("short").get(path("short"))) == ["1.0"]
    assert versions(at("short").get(path("short"))) == ["1.0"]
    assert [each.status for each in first.exchanges if each.request.path == path("short")] == [200, 304]
    first.deploy("com.example", "short", "1.1")
    assert versions(at("short").get(path("short"))) == ["1.0", "1.1"]


def test_snapshots_show_the_newest_builds_of_all_routes(
    both: HttpClient, first: MavenUpstream, second: MavenUpstream
) -> None:
    version = "1.0-SNAPSHOT"
    first.build("com.example", "snap", version, "20240101.000000", 7, b"old")
    jar = second.build("com.example", "snap", version, "20240102.000000", 2, b"new")
    found = both.get(path("snap", version))
    assert re.findall("<value>(.*?)</value>", found.text) == ["1.0-20240102.000000-2"] * 2
    assert "<timestamp>20240102.000000</timestamp>" in found.text
    assert "<buildNumber>2</buildNumber>" in found.text
    assert both.get(jar).body == b"new"


def test_plugins_of_groups_are_joined(both: HttpClient, first: MavenUpstream, second: MavenUpstream) -> None:
    first.plugin("com.example.plugins", "foo", "foo-maven-plugin")
    second.plugin("com.example.plugins", "bar", "bar-maven-plugin")
    found = both.get("/com/example/plugins/maven-metadata.xml").text
    assert re.findall("<prefix>(.*?)</prefix>", found) == ["bar", "foo"]


def test_while_a_route_fails_a_later_one_serves_only_what_it_served_before(fragile: Callable[..., Fragile]) -> None:
    proxied = fragile(cache_ttl="0")
    proxied.second.deploy("com.example", "known", "1.0")
    assert versions(proxied.client.get(path("known"))) == ["1.0"]
    proxied.second.deploy("com.example", "strange", "1.0")
    for each in ("known", "strange"):
        proxied.first.misbehave(path(each), faults.failing(500), repeat=True)
    for _ in range(2):
        assert proxied.client.get(path("strange")).status == 502
    assert versions(proxied.client.get(path("known"))) == ["1.0"]
    assert proxied.second.count(path("strange")) == 0
    proxied.first.behave()
    assert versions(proxied.client.get(path("strange"))) == ["1.0"]


def test_while_a_replica_fails_the_others_are_served_and_nothing_is_kept_as_complete(
    fragile: Callable[..., Fragile],
) -> None:
    proxied = fragile(routes_are_replicas=True)
    proxied.first.deploy("com.example", "partial", "1.0")
    proxied.second.deploy("com.example", "partial", "2.0")
    proxied.first.misbehave(path("partial"), faults.failing(500), repeat=True)
    found = proxied.client.get(path("partial"))
    assert versions(found) == ["2.0"]
    assert found.headers["warning"].startswith("110")
    proxied.first.behave()
    assert versions(proxied.client.get(path("partial"))) == ["1.0", "2.0"]


def test_while_a_route_fails_its_old_answer_is_used(fragile: Callable[..., Fragile]) -> None:
    proxied = fragile(cache_ttl="0")
    proxied.first.deploy("com.example", "stale", "1.0")
    proxied.second.deploy("com.example", "stale", "2.0")
    assert versions(proxied.client.get(path("stale"))) == ["1.0", "2.0"]
    proxied.first.misbehave(path("stale"), faults.failing(500), repeat=True)
    found = proxied.client.get(path("stale"))
    assert (versions(found), "warning" in found.headers) == (["1.0", "2.0"], True)


@pytest.mark.parametrize("answer", [faults.failing(500), faults.HTML, Answer(body=b"<metadata><versioning>")])
def test_failures_are_no_404(fragile: Callable[..., Fragile], answer: Answer) -> None:
    proxied = fragile()
    proxied.first.misbehave(path("failing"), answer, repeat=True)
    assert proxied.client.get(path("failing")).status in (502, 503)
    proxied.first.behave()
    proxied.first.deploy("com.example", "failing", "1.0")
    assert versions(proxied.client.get(path("failing"))) == ["1.0"]


def test_404_is_remembered_until_a_purge(
    both: HttpClient, first: MavenUpstream, second: MavenUpstream, purge: Callable[[str], Reply]
) -> None:
    for _ in range(3):
        assert both.get(path("nowhere")).status == 404
        assert both.get(f"{path('nowhere')}.sha1").status == 404
    assert (first.count(path("nowhere")), second.count(path("nowhere"))) == (1, 1)
    first.deploy("com.example", "nowhere", "1.0")
    assert purge("both").status == 200
    assert versions(both.get(path("nowhere"))) == ["1.0"]


def test_hostile_metadata_are_no_metadata(both: HttpClient, first: MavenUpstream) -> None:
    entities = b'<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">'
    bomb = b"<!DOCTYPE m [" + entities + b"]><metadata><groupId>&b;</groupId></metadata>"
    listed = b"<version>../../x</version><version>1.0</version>"
    odd = b"<metadata><versioning><versions>" + listed + b"</versions></versioning></metadata>"
    first.serve(path("bomb"), bomb)
    first.serve(path("odd"), odd)
    assert both.get(path("bomb")).status == 502
    assert versions(both.get(path("odd"))) == ["1.0"]
