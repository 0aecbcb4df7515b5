"""Lists of tags that are too long to be kept as one."""

from __future__ import annotations

import pytest

from pkgrepo.formats.container.proxied import lists
from tests.support.upstreams.faults import failing

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
