"""Lists of tags that are too long to be kept as one."""

from __future__ import annotations

import pytest

from pkgrepo.formats.container.proxied import lists
from tests.support.upstreams.faults import failing
from tests.support.upstreams.server import Answer

from .conftest import ONE, Mirrors

LIST = "/v2/app/tags/list"


@pytest.mark.parametrize("name", ["mirror", "all"])
async def test_parts_are_fetched_when_a_client_comes_to_them(
    mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(lists, "PAGE", 10)
    monkeypatch.setattr(lists, "MOST_TAGS", 40)
    await mirrors.add()
    await mirrors.add("all", members=["main/mirror"])
    tags = [f"v{number:03}" for number in range(95)]
    mirrors.up.push("app", ONE, *tags)
    found, rest = [], "app/tags/list?n=15"
    while rest:
        reply = await mirrors.get(rest, name)
        found += reply.json["tags"]
        assert mirrors.up.count(LIST) == (4 if len(found) <= 40 else 8 if len(found) <= 80 else 10)
        link = reply.headers.get("link", "")
        rest = link.partition(f"/v2/main/{name}/")[2].partition(">")[0]
    assert found == tags
    mirrors.up.misbehave(LIST, failing(500), repeat=True)
    mirrors.pass_days(1)
    for last, expected in ((tags[-3], tags[-2:]), (tags[-1], []), (tags[39], tags[40:42])):
        reply = await mirrors.get(f"app/tags/list?n=2&last={last}", name)
        assert (reply.json["tags"], reply.headers["warning"]) == (expected, '110 - "stale"')


async def test_a_list_with_more_brackets_than_a_parser_takes_is_a_fault_of_the_upstream(mirrors: Mirrors) -> None:
    await mirrors.add()
    nested = b'{"tags":[],"x":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"
    mirrors.up.misbehave(LIST, Answer(200, nested, {"Content-Type": "application/json"}), repeat=True)
    reply = await mirrors.get("app/tags/list")
    assert (reply.status, "cannot be used" in reply.json["errors"][0]["message"]) == (502, True), reply
