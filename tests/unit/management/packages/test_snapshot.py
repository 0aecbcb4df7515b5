"""Snapshots: what was changed since a time; views of the past as clients see them are in tests/server/policy."""

from __future__ import annotations

from pkgrepo.gateway.responses.view_turns import ViewTurns
from pkgrepo.http.responses import Refusal
from tests.support.memory_server import Stack

SNAPSHOT = "/repository/main%2Fpy/snapshot?at=2020-01-01"


async def test_snapshots_take_turns_with_other_views(stack: Stack, monkeypatch) -> None:
    await stack.add_repository("py")
    await stack.publish("main/py", "demo", "1.0")
    [item] = (await stack.ok("GET", SNAPSHOT))["items"]
    assert (item["package"], item["added"]) == ("demo", ["1.0"])

    async def refuse(_turns, repository, _work):
        assert repository.view is not None
        raise Refusal(503, "too many", "busy")

    monkeypatch.setattr(ViewTurns, "make", refuse)
    assert (await stack.api("GET", SNAPSHOT)).status == 503
