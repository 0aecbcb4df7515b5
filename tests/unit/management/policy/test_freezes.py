"""Who may freeze and thaw what, by API."""

from __future__ import annotations

from tests.support.memory_server import Stack


async def test_who_administers_one_repository_freezes_it_and_system_managers_freeze_any(stack: Stack) -> None:
    await stack.add_repository("py")
    for each in ("one", "two"):
        config = {"type": "Virtual", "members": ["main/py"]}
        await stack.add_repository(each, visibility="private", config=config)
    for name, actions in (("ann", ("edit", "admin")), ("bob", ("edit",)), ("eve", ())):
        await stack.add_user(name)
        if actions:
            await stack.grant(name, "main/one", "read", *actions)

    async def freeze(who: str | None, *repositories: str) -> int:
        body = {"repositories": list(repositories), "at": "2020-01-01T00:00:00Z"}
        return int((await stack.api("POST", "/policy/freeze", body, who=who)).status)

    assert [await freeze(who, "main/one") for who in (None, "eve", "bob", "ann")] == [401, 404, 403, 201]
    assert [await freeze("ann", *each) for each in (["main/two"], ["main/one", "main/two"], ["main/*"])] == [
        404,
        404,
        403,
    ]
    grants = [{"repository": f"main/{each}", "actions": ["read", "admin"]} for each in ("one", "two")]
    await stack.ok("PUT", "/users/ann/permissions", {"repositories": grants})
    assert await freeze("ann", "main/one", "main/two") == 403
    assert [await freeze("admin", *each) for each in (["main/one", "main/two"], ["main/*"])] == [201, 201]
    seen = {who: await stack.ok("GET", "/policy/freeze", who=who) for who in ("ann", "bob", "admin")}
    assert {who: len(each) for who, each in seen.items()} == {"ann": 1, "bob": 0, "admin": 3}
    ids = [each["id"] for each in seen["admin"]]
    for who, index, status in (("bob", 0, 404), ("ann", 1, 404), ("ann", 2, 404), ("ann", 0, 204), ("admin", 1, 204)):
        excepted = await stack.api("POST", f"/policy/freeze/{ids[index]}/except", {"names": ["x"]}, who=who)
        assert excepted.status == (200 if status == 204 else 404)
        assert (await stack.api("DELETE", f"/policy/freeze/{ids[index]}", who=who)).status == status


async def test_a_rule_may_ask_for_what_was_published_after_a_time(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.publish("main/py", "demo", "1.0")
    path = "/repositories/main/py/demo/1.0/demo-1.0-py3-none-any.whl"
    for at, status in (("2020-01-01T00:00:00Z", 403), ("2999-01-01T00:00:00Z", 200)):
        rule = {"name": "later", "match": {"published_after": at}}
        await stack.ok("PUT", "/repository/main%2Fpy/config/policy", {"rules": [rule]})
        assert (await stack.call("GET", path)).status == status
