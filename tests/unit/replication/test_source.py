"""What another server sends is not trusted: garbage, pages without an end, lists that are loops, other digests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from attrs import evolve

from pkgrepo.composition.upstreams import upstream_settings
from pkgrepo.config import Config
from pkgrepo.errors import PositionLost, UpstreamFailed
from pkgrepo.outbound.urls import parse_url
from pkgrepo.proxy.configuration import Followed
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.replication.source import MOST_BYTES, MOST_EVENTS, Source
from tests.support.inprocess_server import reactor
from tests.support.upstreams.faults import ENDLESS_BODY, HTML
from tests.support.upstreams.messages import Answer, Request
from tests.support.upstreams.server import ANY, ScriptedUpstream

SETTINGS = evolve(upstream_settings(Config().proxy, proxies={}), allow_private=("127.0.0.1",))
EVENTS = "/api/events"
VERSIONS = "/api/package/main%2Fb/demo/versions"


@pytest.fixture
def server() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as server:
        yield server


@pytest.fixture
def source(server: ScriptedUpstream) -> Source:
    return make_source(server)


def make_source(server: ScriptedUpstream, *, images: bool = False) -> Source:
    route = Route("there", parse_url(f"{server.url}/repositories/main/b"))
    upstreams = Upstreams(SETTINGS, reactor, authorize=lambda _: "Basic c2VjcmV0", jitter=lambda: 0.0)
    followed = Followed(server.url, "main/b", ("*",))
    return Source(upstream=upstreams.of(1, route), followed=followed, waits_s=1, images=images)


def page(*events: Any, after: str = "evt_7_1a", left: str = "0") -> Answer:
    link = f'<http://there.example/api/events?after={after}&limit=500&repository=x>; rel="next"'
    body = b"".join(json.dumps(each).encode() + b"\n" for each in events)
    return Answer(200, body, {"Link": link, "X-Events-Left": left})


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"seq": 1, "id": "evt_1_1", "type": f"pkgrepo.{kind}.v1", "data": data}


async def test_events_name_what_they_are_about(server: ScriptedUpstream, source: Source) -> None:
    events = [
        event("package.published", package="demo", version="1.0", files=[{"path": "x"}]),
        event("package.changed", package="demo"),
        event("package.deleted", package="gone"),
        event("package.restored", package="back"),
        event("tag.updated", package="demo", version="1.0", tags=["latest"]),
        event("repository.updated", name="b"),
    ]
    server.serve(EVENTS, page(*events, left="3"))
    found = await source.events("evt_1_1", wait=True)
    assert (found.position, found.left) == ("evt_7_1a", 3)
    assert list(found.items) == [
        ("demo", "1.0"),
        ("demo", ""),
        ("gone", "*"),
        ("gone", "*deleted"),
        ("back", "*"),
        ("demo", "1.0"),
    ]
    query = server.exchanges[-1].request.query
    assert (query["repository"], query["after"], query["wait"]) == ("main/b", "evt_1_1", "1")
    assert server.exchanges[-1].request.fields["authorization"] == "Basic c2VjcmV0"


async def test_events_of_images_name_tags_and_manifests(server: ScriptedUpstream) -> None:
    source = make_source(server, images=True)
    many = [f"v{number}" for number in range(100)]  # a list that was cut
    events = [
        event("package.published", package="app", digest="sha256:aa", tags=["v1"]),
        event("package.changed", package="app"),
        event("package.deleted", package="app", digest="sha256:bb", tags=many),
    ]
    server.serve(EVENTS, page(*events))
    found = await source.events("evt_1_1", wait=False)
    assert list(found.items) == [("app", "v1"), ("app", "sha256:aa"), ("app", "*"), ("app", "*"), ("app", "*deleted")]


GARBAGE = {
    "html": HTML,
    "no link": Answer(200, b"", {"X-Events-Left": "0"}),
    "no number": Answer(200, b"", {"Link": '<http://a/?after=evt_1_1>; rel="next"'}),
    "a position": page(after="evt_1_1%0a"),
    "a huge number": page(left="9" * 12),
    "no json": evolve(page(), body=b"{\n"),
    "depth": evolve(page(), body=b"[" * 100_000 + b"\n"),
    "a long name": page(event("package.published", package="a" * 1001)),
    "a version with NUL": page(event("package.published", package="demo", version="1\0")),
    "another type": page(event("package.published", package=["demo"])),
    "a position that stays": page(event("package.changed", package="a"), after="evt_1_1"),
    "too many": page(*[event("package.changed", package="a")] * (MOST_EVENTS + 1)),
    "no page": Answer(500, b"it fails"),
    "not found": Answer(404, b"{}"),
    "forbidden": evolve(page(), status=403),
    "gone": evolve(page(), status=404),
}


@pytest.mark.parametrize("name", GARBAGE)
async def test_garbage_is_a_failure(server: ScriptedUpstream, source: Source, name: str) -> None:
    server.serve(EVENTS, GARBAGE[name])
    with pytest.raises(UpstreamFailed):
        await source.events("evt_1_1", wait=False)


async def test_a_body_without_an_end_is_left(server: ScriptedUpstream, source: Source) -> None:
    server.serve(EVENTS, evolve(page(), body=b"x" * 65_536, fault=ENDLESS_BODY))
    with pytest.raises(UpstreamFailed):
        await source.events("evt_1_1", wait=False)
    assert server.exchanges[-1].sent < 4 * MOST_BYTES


async def test_a_position_that_is_lost_is_told_apart(server: ScriptedUpstream, source: Source) -> None:
    server.serve(EVENTS, Answer(410, b"{}"))
    with pytest.raises(PositionLost):
        await source.events("evt_1_1", wait=False)
    with pytest.raises(UpstreamFailed):
        await source.newest()


async def test_a_list_that_is_a_loop_ends(server: ScriptedUpstream, source: Source) -> None:
    body = json.dumps({"items": [{"version": "1.0"}], "next": "a"}).encode()
    server.serve(VERSIONS, body)
    with pytest.raises(UpstreamFailed, match="a list that is none"):
        [each async for each in source.versions("demo")]


async def test_versions_come_in_pages(server: ScriptedUpstream, source: Source) -> None:
    def answer(request: Request) -> Answer:
        more = request.query.get("cursor") is None
        items = [{"version": "1.0" if more else "2.0", "state": "live"}]
        return Answer(body=json.dumps({"items": items, "next": "b" if more else None}).encode())

    server.dynamic[VERSIONS] = answer
    assert [each async for each in source.versions("demo")] == [["1.0"], ["2.0"]]
    assert [each async for each in source.versions("none")] == [[]]
    assert await source.version("demo", "3.0") is None
    with pytest.raises(UpstreamFailed, match="none that may be read"):
        await source.packages("")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"type": "Virtual", "format": "npm"}, "is virtual there"),
        ({"type": "Proxy", "format": "npm"}, "is proxy there"),
        ({"type": "Hosted", "format": "python"}, "of the format 'python'"),
        ({}, "not what a pkgrepo does"),
    ],
)
async def test_only_a_hosted_repository_of_the_format_is_followed(
    server: ScriptedUpstream, source: Source, record: Any, reason: str
) -> None:
    server.serve("/api/repository/main%2Fb", json.dumps(record).encode())
    with pytest.raises(UpstreamFailed, match=reason):
        await source.check("npm")
    server.misbehave(ANY, HTML)
    with pytest.raises(UpstreamFailed):
        await source.check("npm")
    server.serve("/api/repository/main%2Fb", json.dumps({"type": "Hosted", "format": "npm"}).encode())
    await source.check("npm")


DELETED = "/api/repository/main%2Fb/deleted-names"
NAME = {"package": "demo", "path": "demo-1.whl", "sha256": "a" * 64, "deleted_at": "2026-01-02T00:00:00Z"}


async def test_deleted_names_come_in_pages(server: ScriptedUpstream, source: Source) -> None:
    server.serve(DELETED, json.dumps({"items": [NAME], "next": "x"}).encode())
    found, cursor = await source.deleted("", "demo+x")
    assert ([(each.package, each.path) for each in found], cursor) == ([("demo", "demo-1.whl")], "x")
    assert server.exchanges[-1].request.query == {"package": "demo+x", "limit": "200"}
    await source.deleted("y")
    assert server.exchanges[-1].request.query == {"cursor": "y", "limit": "200"}
    with pytest.raises(UpstreamFailed, match="a list that is none"):
        await source.deleted("x")


@pytest.mark.parametrize(
    "wrong",
    [
        {"path": ""},
        {"sha256": ""},
        {"sha256": "A" * 64},
        {"sha256": "a" * 64 + "\n"},
        {"path": "a\0"},
        {"package": ""},
        {"deleted_at": "2026-01-02T00:00:00"},
        {"deleted_at": 1},
    ],
)
async def test_a_deleted_name_that_is_none_is_a_failure(
    server: ScriptedUpstream, source: Source, wrong: dict[str, Any]
) -> None:
    server.serve(DELETED, json.dumps({"items": [NAME | wrong], "next": None}).encode())
    with pytest.raises(UpstreamFailed, match="not what a pkgrepo does"):
        await source.deleted("")


async def test_a_server_without_a_list_of_deleted_names_is_a_failure(source: Source) -> None:
    with pytest.raises(UpstreamFailed, match="does not list what was deleted"):
        await source.deleted("")
