"""Modules of upstreams: lists, files, queries, rules, and a checksum database that is passed through."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.go_modules import go_mod, make_module, path
from tests.support.http_client import HttpClient
from tests.support.timeouts import polled
from tests.support.upstreams.go import HTML, GoUpstream
from tests.support.upstreams.messages import Answer

pytestmark = pytest.mark.server

HASH_SIZE = 32  # bytes
At = Callable[[str], HttpClient]
PSEUDO = "v0.0.0-20240102030405-abcdefabcdef"


def young() -> str:
    return (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def kept(client: HttpClient, upstream: GoUpstream, *paths: str) -> None:
    """Read files until none of them is asked of the upstream again."""

    def is_kept() -> bool:
        upstream.forget()
        return all(client.get(each).status == 200 for each in paths) and upstream.count() == 0

    polled(is_kept)


def test_files_come_once_and_as_they_are(at: At, upstream: GoUpstream) -> None:
    module, client = "example.com/Once", at("mirror")
    upstream.add(module, "v1.0.0")
    paths = [path(module, "v1.0.0", kind) for kind in ("info", "mod", "zip")]
    for each in paths:
        assert client.get(each).body == upstream.documents[each].body
    kept(client, upstream, *paths)
    upstream.misbehave("*", Answer(404), repeat=True)
    assert [client.get(each).status for each in paths] == [200, 200, 200]
    assert b"Origin" in client.get(paths[0]).body


def test_a_list_has_what_a_module_can_have(at: At, upstream: GoUpstream) -> None:
    upstream.serve("/example.com/list/@v/list", f"v1.1.0\r\nv1.0.0\n{PSEUDO}\nv2.0.0\nrubbish".encode())
    assert at("mirror").get("/example.com/list/@v/list").status == 502
    upstream.serve("/example.com/list/@v/list", f"v1.1.0\r\nv1.0.0\n{PSEUDO}\nv2.0.0\n".encode())
    assert at("mirror").get("/example.com/list/@v/list").body == b"v1.0.0\nv1.1.0\n"


def test_an_empty_list_is_one(at: At, upstream: GoUpstream) -> None:
    upstream.add("example.com/empty", PSEUDO, listed=False)
    listed = at("mirror").get("/example.com/empty/@v/list")
    assert (listed.status, listed.body) == (200, b"")
    assert json.loads(at("mirror").get("/example.com/empty/@latest").body)["Version"] == PSEUDO


def test_latest_is_the_highest_release_of_the_list(at: At, upstream: GoUpstream) -> None:
    upstream.add("example.com/latest", "v1.0.0", "v1.2.0", "v1.1.0", "v1.3.0-rc.1")
    assert json.loads(at("mirror").get("/example.com/latest/@latest").body)["Version"] == "v1.2.0"


def test_a_query_is_asked_of_the_upstream(at: At, upstream: GoUpstream) -> None:
    info = b'{"Version":"v0.0.0-20240102030405-abcdefabcdef","Time":"2024-01-02T03:04:05Z"}'
    upstream.serve("/example.com/query/@v/main.info", info)
    assert at("mirror").get("/example.com/query/@v/main.info").body == info
    assert at("mirror").get("/example.com/query/@v/other.info").status == 404


@pytest.mark.parametrize(
    ("answer", "status"),
    [(Answer(404), 404), (Answer(410), 404), (Answer(500), 502), (HTML, 502), (Answer(403, b"no"), 403)],
)
@pytest.mark.parametrize("what", ["@v/list", "@latest", "@v/v1.0.0.info", "@v/v1.0.0.zip", "@v/main.info"])
def test_only_what_is_not_there_is_404(at: At, upstream: GoUpstream, answer: Answer, status: int, what: str) -> None:
    module = f"/example.com/s{answer.status}/{status}"
    upstream.misbehave(f"{module}/@v/list", answer, repeat=True)
    upstream.misbehave(f"{module}/{what}", answer, repeat=True)
    reply = at("mirror").get(f"{module}/{what}")
    assert reply.status in ((502, 503) if status == 502 else (status,)), reply.text


def test_a_zip_that_ends_early_is_not_kept(at: At, upstream: GoUpstream) -> None:
    module, client = "example.com/cut", at("mirror")
    upstream.add(module, "v1.0.0")
    where = path(module, "v1.0.0")
    whole = upstream.documents[where].body
    upstream.serve(where, whole[:-40])
    assert client.get(where).status == 502
    upstream.serve(where, whole)
    assert client.get(where).body == whole


def test_the_zip_of_another_module_is_not_kept(at: At, upstream: GoUpstream) -> None:
    module, client = "example.com/Mixed", at("mirror")
    upstream.add(module, "v1.0.0")
    where = path(module, "v1.0.0")
    whole = upstream.documents[where].body
    for other in (make_module("example.com/other", "v1.0.0"), make_module(module, "v1.0.1")):
        upstream.serve(where, other)
        for count in (1, 2):  # it is sent as it comes, and the go command refuses it
            client.get(where)
            polled(lambda count=count: client.get(where) and upstream.count(where) > count)
    upstream.serve(where, whole)
    assert polled(lambda: client.get(where).body == whole)
    kept(client, upstream, where)


def test_without_an_upstream_what_is_kept_is_served(at: At, old_upstream: GoUpstream) -> None:
    module, client = "example.com/off", at("leaving")
    old_upstream.add(module, "v1.0.0", "v1.1.0")
    paths = [path(module, "v1.0.0", kind) for kind in ("info", "mod", "zip")]
    kept(client, old_upstream, *paths)
    listed = client.get("/example.com/off/@v/list").body
    old_upstream.stop()
    try:
        assert [client.get(each).status for each in paths] == [200, 200, 200]
        assert client.get("/example.com/off/@v/list").body == listed
        assert client.get(path(module, "v1.1.0")).status in (502, 503)  # and not 404: go would go on
    finally:
        old_upstream.start()


def test_all_files_of_a_version_come_from_one_upstream(at: At, upstream: GoUpstream, second: GoUpstream) -> None:
    module, client = "example.com/one", at("both")
    upstream.add(module, "v1.0.0")
    second.add(module, "v1.0.0", licence="GPL-3.0-only")
    del upstream.documents[path(module, "v1.0.0")]
    assert client.get(path(module, "v1.0.0", "info")).status == 200
    assert client.get(path(module, "v1.0.0")).status == 404


def test_hosted_modules_are_never_asked_of_an_upstream(at: At, upstream: GoUpstream) -> None:
    module, client = "example.com/hosted", at("all")
    upstream.add(module, "v1.0.0", "v9.9.9")
    assert client.ask("PUT", path(module, "v1.0.0"), make_module(module, "v1.0.0")).status == 201
    upstream.forget()
    assert client.get("/example.com/hosted/@v/list").body == b"v1.0.0\n"
    for what in ("@latest", "@v/v9.9.9.info", "@v/v9.9.9.zip", "@v/main.info"):
        assert client.get(f"/example.com/hosted/{what}").status == (200 if what == "@latest" else 404), what
    lookup = client.get("/sumdb/sum.example/lookup/example.com/hosted@v1.0.0")
    assert (lookup.status, "GONOSUMDB" in lookup.text) == (404, True)
    assert upstream.count() == 0


def test_reserved_modules_are_not_asked_for(at: At, upstream: GoUpstream) -> None:
    client = at("reserved")
    upstream.add("corp.example/secret", "v1.0.0")
    upstream.forget()
    for what in ("/corp.example/secret/@v/list", path("corp.example/secret", "v1.0.0", "info")):
        assert client.get(what).status in (403, 404), what
    assert client.get("/sumdb/sum.example/lookup/corp.example/secret@v1.0.0").status in (403, 404)
    assert upstream.count() == 0


def test_a_checksum_database_is_passed_through_and_what_is_settled_is_asked_once(at: At, upstream: GoUpstream) -> None:
    client, name = at("mirror"), "sum.example"
    upstream.pass_through(name)
    parts = [f"/sumdb/{name}/{each}" for each in ("tile/8/0/000.p/1", "lookup/example.com/known@v1.0.0")]
    for each in (*parts, f"/sumdb/{name}/latest", f"/sumdb/{name}/supported"):
        reply = client.get(each)
        assert (reply.status, reply.body) == (200, upstream.documents[each].body), each
    kept(client, upstream, *parts)
    upstream.misbehave("*", Answer(500), repeat=True)
    for each in (*parts, f"/sumdb/{name}/latest", f"/sumdb/{name}/supported"):
        assert client.get(each).body == upstream.documents[each].body, each
    upstream.behave()
    assert client.get(f"/sumdb/{name}/lookup/example.com/unknown@v1.0.0").status == 404
    assert client.get("/sumdb/other.example/supported").status == 404


def test_a_part_of_a_tile_is_the_beginning_of_a_wider_one_while_the_upstream_is_off(
    at: At, upstream: GoUpstream
) -> None:
    client, tile = at("mirror"), "/sumdb/tiles.example/tile/8/0/x001/067"
    hashes = bytes(range(256)) * HASH_SIZE
    upstream.pass_through("tiles.example")
    for name, count in ((f"{tile}.p/7", 7), (f"{tile}.p/200", 200), ("/sumdb/tiles.example/tile/8/1/000", 256)):
        upstream.serve(name, hashes[: count * HASH_SIZE])
    upstream.serve("/sumdb/tiles.example/tile/8/data/000.p/9", b"records" * 99)
    kept(client, upstream, f"{tile}.p/7", f"{tile}.p/200", "/sumdb/tiles.example/tile/8/1/000")
    kept(client, upstream, "/sumdb/tiles.example/tile/8/data/000.p/9")
    assert client.get(f"{tile}.p/6").status == 404  # the upstream decides, as long as it can be asked
    upstream.misbehave("*", Answer(500), repeat=True)
    for name, count in ((f"{tile}.p/6", 6), (f"{tile}.p/199", 199), ("/sumdb/tiles.example/tile/8/1/000.p/255", 255)):
        reply = at("all").get(name) if count == 199 else client.get(name)
        assert (reply.status, reply.body) == (200, hashes[: count * HASH_SIZE]), name
    assert client.get(f"{tile}.p/201").status == 502  # no more failures: the upstream would be left alone then
    upstream.behave()
    assert client.get("/sumdb/tiles.example/latest").status == 200
    upstream.misbehave("*", Answer(500), repeat=True)
    assert client.get("/sumdb/tiles.example/tile/8/data/000.p/8").status == 502  # records, which have many sizes
    upstream.behave()
    assert client.get("/sumdb/tiles.example/latest").status == 200


@pytest.mark.parametrize("proxy", ["aged", "ruled"])
def test_the_age_is_that_of_the_info(at: At, upstream: GoUpstream, proxy: str) -> None:
    module, client = f"example.com/age/{proxy}", at(proxy)
    upstream.add(module, "v1.1.0", time=young())
    upstream.add(module, "v1.0.0")
    upstream.serve(f"/{module}/@v/list", b"v1.0.0\nv1.1.0\n")
    assert client.get(f"/{module}/@v/list").body == b"v1.0.0\n"
    assert json.loads(client.get(f"/{module}/@latest").body)["Version"] == "v1.0.0"
    for kind in ("zip", "mod", "info"):
        assert client.get(path(module, "v1.0.0", kind)).status == 200, kind
        assert client.get(path(module, "v1.1.0", kind)).status == 403, kind


def test_a_version_without_a_time_is_too_young(at: At, upstream: GoUpstream) -> None:
    module, client = "example.com/timeless", at("aged")
    upstream.add(module, "v1.0.0")
    upstream.serve(path(module, "v1.0.0", "info"), b'{"Version":"v1.0.0"}')
    assert client.get(path(module, "v1.0.0")).status == 403


def test_a_licence_is_that_of_the_zip(at: At, upstream: GoUpstream) -> None:
    client = at("licensed")
    for module, licence, status in (("example.com/mit", "MIT", 200), ("example.com/gpl", "GPL-3.0-only", 403)):
        upstream.add(module, "v1.0.0", licence=licence)
        for kind in ("info", "mod", "zip"):
            reply = client.get(path(module, "v1.0.0", kind))
            assert (reply.status, status == 200 or "ask the lawyers" in reply.text) == (status, True), (module, kind)


def test_a_view_shows_what_was_there(at: At, repository: At, upstream: GoUpstream) -> None:
    module = "example.com/viewed"
    upstream.add(module, "v1.1.0", time="2025-06-01T00:00:00Z")
    upstream.add(module, "v1.0.0", time="2024-06-01T00:00:00Z")
    upstream.serve(f"/{module}/@v/list", b"v1.0.0\nv1.1.0\n")
    then, now = repository("mirror@2025-01-01"), at("mirror")
    assert then.get(f"/{module}/@v/list").body == b"v1.0.0\n"
    assert json.loads(then.get(f"/{module}/@latest").body)["Version"] == "v1.0.0"
    assert now.get(f"/{module}/@v/list").body == b"v1.0.0\nv1.1.0\n"


def described(api: HttpClient, place: str) -> dict[str, Any] | None:
    """The record of a version, once all its files are recorded."""
    reply = api.get(place)
    return reply.json if reply.status == 200 and reply.json["file_count"] == 3 else None


def test_what_a_proxy_keeps_is_described(at: At, api: HttpClient, upstream: GoUpstream) -> None:
    module, client = "example.com/described", at("mirror")
    upstream.add(module, "v1.0.0")
    kept(client, upstream, *(path(module, "v1.0.0", kind) for kind in ("info", "mod", "zip")))
    record = polled(lambda: described(api, "/package/main%2Fmirror/example.com%2Fdescribed/versions/v1.0.0"))
    assert (record["license"], record["metadata"]["h1"][:3], record["file_count"]) == ("MIT", "h1:", 3)
    assert client.get(path(module, "v1.0.0", "mod")).body == go_mod(module)
