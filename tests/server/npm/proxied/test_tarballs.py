"""Tarballs of upstreams: fetched once, verified and kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from http.client import IncompleteRead

import pytest

from tests.support.http_client import HttpClient
from tests.support.proxied import answered, kept
from tests.support.python_index import PASSWORD, USER
from tests.support.upstreams.faults import corrupted

pytestmark = pytest.mark.server


def test_many_cold_requests_ask_the_upstream_once(mirror, upstream):
    tarball = upstream.add("crowded", pad=300_000)
    with ThreadPoolExecutor(50) as pool:
        documents = list(pool.map(lambda _: mirror.get("/crowded"), range(50)))
        tarballs = list(pool.map(lambda _: mirror.get("/crowded/-/crowded-1.0.0.tgz"), range(50)))
    assert {reply.status for reply in documents} == {200}
    assert {reply.body for reply in tarballs} == {tarball}
    assert (upstream.count("/crowded"), upstream.count("/crowded/-/crowded-1.0.0.tgz")) == (1, 1)


def test_tarball_is_fetched_once_and_served_like_a_hosted_one(mirror, upstream):
    tarball = upstream.add("@sc/tar", pad=200_000)
    path = "/@sc/tar/-/tar-1.0.0.tgz"
    cold = mirror.get(path)
    assert (cold.status, cold.body) == (200, tarball)
    warm = kept(mirror, path)
    assert warm.body == tarball
    assert warm.headers["content-type"] == "application/octet-stream"
    assert warm.headers["cache-control"] == "no-cache"  # the upstream may replace it
    assert mirror.get(path, If_None_Match=warm.headers["etag"]).status == 304
    assert mirror.get(path, Range="bytes=10-19").body == tarball[10:20]
    assert mirror.head(path).headers["content-length"] == str(len(tarball))
    assert upstream.count(path) == 1


def test_tarball_of_an_unpublished_version_is_served_only_if_a_policy_says_so(at, upstream, format_server):
    tarball = upstream.add("unpublished")
    upstream.add("unpublished", "1.1.0")
    path = "/unpublished/-/unpublished-1.0.0.tgz"
    for where in ("short", "keeping"):
        kept(at(where), path)
    versions = upstream.change("unpublished")["versions"]
    del versions["1.0.0"]
    upstream.change("unpublished", versions=versions)
    for where in ("short", "keeping"):
        assert list(at(where).get("/unpublished").json["versions"]) == ["1.1.0"]
    assert answered(at("short"), path, lambda reply: reply.status != 200).status == 404
    reply = answered(at("keeping"), path, lambda reply: "warning" in reply.headers)
    assert (reply.body, "removed" in reply.headers["warning"]) == (tarball, True)
    api = HttpClient(f"{format_server.url}/api", (USER, PASSWORD))
    for where, outcome, step in (("short", "not_found", "file_unlisted"), ("keeping", "served", "file_removed")):
        found = api.get(f"/explain?repository=main/{where}&package=unpublished&file={path[1:]}").json
        assert (found["outcome"], step in {each["step"] for each in found["steps"]}) == (outcome, True)


@pytest.mark.parametrize("path", ["/package/literal/1.0.0/literal-1.0.0.tgz", "/literal/-/1.0.0/literal-1.0.0.tgz"])
def test_tarball_has_the_addresses_of_the_specification(mirror, upstream, path):
    tarball = upstream.add("literal")
    assert mirror.get(path).body == tarball


def test_range_of_a_cold_tarball_is_answered_and_the_whole_is_kept(mirror, upstream):
    tarball = upstream.add("ranged", pad=3_000_000)
    path = "/ranged/-/ranged-1.0.0.tgz"
    assert mirror.get(path, Range="bytes=0-9").body == tarball[:10]
    assert kept(mirror, path).body == tarball
    assert mirror.get(path, Range="bytes=2000000-2000009").body == tarball[2_000_000:2_000_010]
    assert upstream.count(path) == 1


def test_range_of_a_corrupted_tarball_is_refused(mirror, upstream):
    upstream.add("spoilt", pad=3_000_000)
    path = "/spoilt/-/spoilt-1.0.0.tgz"
    upstream.misbehave(path, corrupted)
    with pytest.raises((IncompleteRead, ConnectionError)):  # all but the last byte of the part
        mirror.get(path, Range="bytes=0-9")


def test_unknown_tarballs_are_not_found(mirror, upstream):
    upstream.add("known")
    for path in ("/known/-/known-9.9.9.tgz", "/known/-/other-1.0.0.tgz", "/unknown/-/unknown-1.0.0.tgz"):
        assert mirror.get(path).status == 404


def test_corrupted_tarball_is_not_kept(mirror, upstream):
    tarball = upstream.add("corrupt", pad=100_000)
    path = "/corrupt/-/corrupt-1.0.0.tgz"
    upstream.misbehave(path, corrupted)
    with pytest.raises((AssertionError, EOFError, OSError)):
        assert mirror.get(path).body == b"".join([tarball[:-1], bytes([tarball[-1] ^ 1])])
    assert mirror.get(path).body == tarball
    assert upstream.count(path) == 2


def test_kept_packages_are_served_while_the_upstream_is_down(at, upstream):
    short = at("short")
    tarball = upstream.add("stale")
    first = short.get("/stale")
    assert short.get("/stale/-/stale-1.0.0.tgz").body == tarball
    upstream.stop()
    try:
        assert short.get("/stale").json == first.json
        assert short.get("/stale/latest").status == 200
        assert short.get("/stale/-/stale-1.0.0.tgz").body == tarball
        assert short.get("/cold").status in (502, 503, 504)
    finally:
        upstream.start()
