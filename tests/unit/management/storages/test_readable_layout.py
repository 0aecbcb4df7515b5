"""The setting of a storage that keeps no readable layout."""

from __future__ import annotations

from tests.support.inprocess_server import until
from tests.support.memory_server import Stack


async def test_a_storage_is_made_without_a_readable_layout(stack: Stack) -> None:
    body = {"name": "plain", "settings": {"readable_layout": False}}
    made = await stack.ok("POST", "/storage", body)
    assert made["settings"]["readable_layout"] is False
    assert "reindex cannot bring back" in made["warnings"][0]
    assert (await stack.ok("POST", "/storage", body))["id"] == made["id"]
    assert (await stack.call("POST", "/api/storage", {"name": "plain"})).status == 409
    main = await stack.ok("GET", "/storage/main")
    assert (main["settings"]["readable_layout"], main["warnings"]) == (True, [])


async def test_the_layout_of_a_storage_is_switched_off_and_on(stack: Stack) -> None:
    await stack.add_repository()
    await stack.publish("main/py", "demo", "1.0")
    follower = stack.assembly.core.follower
    layout = stack.folder / "data/storages/main/repositories/py"
    await until((layout / "demo/1.0/demo-1.0.json").exists)
    changed = await stack.ok("PATCH", "/storage/main", {"settings": {"readable_layout": False}})
    assert changed["warnings"]
    await until(lambda: not layout.exists() and follower._following is None)
    changed = await stack.ok("PATCH", "/storage/main", {"settings": {"readable_layout": True}})
    assert (changed["warnings"], changed["settings"]["readable_layout"]) == ([], True)
    await until((layout / "demo/1.0/demo-1.0.json").exists)
    assert (await stack.call("PATCH", "/api/storage/main", {"settings": {"readable_layout": "no"}})).status == 422
