"""Snapshots: what was changed since a time; views of the past as clients see them are in tests/server/policy."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize("changed", [{"visibility": "hidden"}, {"visibility": "private"}, {"active": False}])
async def test_of_a_virtual_repository_only_members_that_lists_show_are_compared(
    stack: Stack, changed: dict[str, object]
) -> None:
    for name in ("py", "acquired"):
        await stack.add_repository(name)
        await stack.publish(f"main/{name}", f"of-{name}", "1.0")
    await stack.add_repository("all", config={"type": "Virtual", "members": ["main/acquired", "main/py"]})
    await stack.ok("PATCH", "/repository/main%2Facquired", changed)
    for path in ("/api/repository/main%2Fall/snapshot", "/ui/repositories/main/all/past"):
        reply = await stack.call("GET", f"{path}?at=2020-01-01", who=None)
        assert (b"of-py" in reply.body, b"acquired" in reply.body) == (True, False)
    found = (await stack.ok("GET", "/repository/main%2Fall/snapshot?at=2020-01-01"))["items"]
    editors = ["main/acquired", "main/py"] if changed.get("active", True) else ["main/py"]
    assert [each["repository"] for each in found] == editors
