"""Names of packages that were removed from a hosted repository, and their release."""

from __future__ import annotations

from tests.support.memory_server import Stack


async def test_name_of_a_removed_package_is_listed_until_it_is_released_or_published_again(stack: Stack) -> None:
    uid = (await stack.add_repository("own", config={"type": "Hosted"}))["id"]
    for name in ("first", "second", "third"):
        await stack.publish("main/own", name, "1.0")
    for name in ("first", "second"):
        await stack.ok("DELETE", f"/package/{uid}/{name}")
    await stack.publish("main/own", "second", "2.0")
    path = f"/repository/{uid}/retired-names"
    assert [each["key"] for each in (await stack.ok("GET", path))["items"]] == ["first"]
    await stack.add_user("rita")
    await stack.grant("rita", "main/own", "read", "write")
    assert (await stack.api("POST", f"{path}/release", {"package": "First"}, who="rita")).status == 403
    assert await stack.ok("POST", f"{path}/release", {"package": "First"}) == {"key": "first"}
    assert (await stack.api("POST", f"{path}/release", {"package": "first"})).status == 404
    assert (await stack.ok("GET", path))["items"] == []
    entry = (await stack.audited(action="name.release", outcome="ok"))[-1]
    assert entry["object"] == "main/own/first"
