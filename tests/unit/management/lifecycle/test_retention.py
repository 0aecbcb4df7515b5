"""Rules of retention of the server, and pins: what they add to the rules of a repository."""

from __future__ import annotations

from typing import Any

from tests.support.memory_server import Stack
from tests.support.python_packages import make_wheel

SERVER = "/system/retention"


def rules(name: str, **fields: Any) -> dict[str, Any]:
    return {"max_delete_percent": 100, "rules": [{"name": name, **fields}]}


async def prepare(stack: Stack, name: str = "py") -> None:
    await stack.add_repository(name)
    for version in ("1.0", "2.0", "3.0"):
        filename, data = make_wheel("web", version)
        path = f"/repositories/main/{name}/web/{version}/{filename}"
        assert (await stack.call("PUT", path, raw=data)).status == 201


async def victims(stack: Stack, name: str = "py", **body: Any) -> list[tuple[str, str]]:
    found = await stack.ok("POST", f"/repository/main%2F{name}/retention?dry_run=true", body)
    return [(each["version"], each["rule"]) for each in found["victims"]]


async def test_rules_of_the_server_hold_for_every_repository_and_its_own_keep_wins(stack: Stack) -> None:
    await prepare(stack)
    assert (await stack.ok("GET", SERVER))["retention"] is None
    assert (await stack.api("POST", "/repository/main%2Fpy/retention?dry_run=true", {})).status == 409
    set_ = await stack.ok("PUT", SERVER, {"retention": rules("old", keep={"last": 1})})
    assert (await stack.ok("GET", SERVER)) == set_
    assert await victims(stack) == [("1.0", "server: old"), ("2.0", "server: old")]
    own = "/repository/main%2Fpy/config/retention"
    await stack.ok("PUT", own, rules("mine", match={"versions": "1.*"}, keep={"last": 9}))
    assert await victims(stack) == [("2.0", "server: old")]
    assert await victims(stack, retention=rules("tried")) == [
        ("1.0", "tried"),
        ("2.0", "tried"),
    ]  # the server's keep holds the last one
    await stack.ok("PUT", own, {**rules("mine", match={"versions": "1.*"}, keep={"last": 9}), "enabled": False})
    assert await victims(stack) == [("1.0", "server: old"), ("2.0", "server: old")]
    done = await stack.ok("POST", "/repository/main%2Fpy/retention?wait=true", {})
    assert done["removed"] == 2
    await stack.ok("PUT", SERVER, {"retention": None})
    assert (await stack.ok("GET", SERVER))["retention"] is None
    assert await victims(stack) == []


async def test_rules_of_the_server_are_checked_and_set_by_system_managers(stack: Stack) -> None:
    for versions in (">=1", "/>=1"):
        refused = await stack.api("PUT", SERVER, {"retention": rules("range", match={"versions": versions})})
        assert (refused.status, refused.pointer) == (422, "/retention/rules/0/match/versions")
    assert (await stack.api("PUT", SERVER, {"retention": {"schedule": "now"}})).status == 422
    await stack.add_user("ada")
    assert (await stack.api("PUT", SERVER, {"retention": None}, who="ada")).status == 403
    assert (await stack.api("GET", SERVER, who="ada")).status == 403


async def test_what_is_pinned_stays_until_it_is_unpinned(stack: Stack) -> None:
    await prepare(stack)
    version = "/package/main%2Fpy/web/versions/1.0"
    pinned = await stack.ok("PUT", f"{version}/pin", {"reason": "the last one\nfor Python 2"})
    assert (pinned["version"], pinned["reason"]) == ("1.0", "the last one for Python 2")
    assert await victims(stack, retention=rules("all", keep={"last": 1})) == [("2.0", "all")]
    taken = rules("all", keep={"last": 1, "pinned": False})
    assert await victims(stack, retention=taken) == [("1.0", "all"), ("2.0", "all")]
    for path in ("/repository/main%2Fpy/pins", "/package/main%2Fpy/web/pins"):
        assert await stack.ok("GET", path) == [pinned]
    await stack.ok("POST", "/project", {"key": "acme"})
    assert await stack.ok("GET", "/project/acme/pins") == []
    await stack.ok("POST", "/project/acme/bindings", {"repository": "main/py", "pattern": "web"})
    assert await stack.ok("GET", "/project/acme/pins") == [pinned]
    assert (await stack.api("DELETE", f"{version}/pin")).status == 204
    assert (await stack.api("DELETE", f"{version}/pin")).status == 404
    assert len(await victims(stack, retention=rules("all", keep={"last": 1}))) == 2
    assert {"version.pin", "version.unpin"} <= {each["action"] for each in await stack.audited()}


async def test_pins_need_rights_and_a_version_of_a_hosted_repository(stack: Stack) -> None:
    await prepare(stack)
    await stack.add_user("ada")
    await stack.grant("ada", "main/py", "read", "write")
    assert (await stack.api("PUT", "/package/main%2Fpy/web/versions/1.0/pin", {}, who="ada")).status == 403
    assert (await stack.api("PUT", "/package/main%2Fpy/web/versions/9.0/pin", {})).status == 404
    config = {"type": "Proxy", "proxy": {"routes": ["https://upstream.invalid/"]}}
    await stack.add_repository("far", config=config)
    assert (await stack.api("PUT", "/package/main%2Ffar/web/versions/1.0/pin", {})).status in (404, 409)
