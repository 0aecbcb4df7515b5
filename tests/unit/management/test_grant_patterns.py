"""Grants for patterns over the API: what they open, now and later, who gives them, and what is refused."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from twisted.internet.defer import ensureDeferred

from pkgrepo.storage.catalog.server.repositories import update_repository
from tests.support.memory_server import Stack
from tests.support.write_barrier import WriteBarrier


async def may_read(stack: Stack, name: str, who: str = "ada") -> bool:
    return (await stack.call("GET", f"/repositories/main/{name}/simple/", who=who)).status == 200


async def seen(stack: Stack, who: str = "ada", query: str = "") -> list[str]:
    return [each["name"] for each in (await stack.ok("GET", f"/repository{query}", who=who))["items"]]


async def give(stack: Stack, pattern: str, *actions: str, user: str = "ada", who: str = "admin") -> Any:
    place = f"/users/{user}/permissions/{quote(pattern, safe='')}"
    return await stack.api("PUT", place, {"actions": list(actions)}, who=who)


async def rename(stack: Stack, name: str, new: str) -> None:
    core = stack.assembly.core
    found = core.registry.find("main", name)
    assert found is not None
    await core.catalog.write(update_repository, found.id, now_ms=1, name=new)


async def test_a_pattern_holds_for_what_is_made_later_and_for_new_names(stack: Stack) -> None:
    await stack.add_user("ada")
    await stack.add_repository("py-a", visibility="private")
    given = (await give(stack, "MAIN/py-*", "read", "write")).json
    assert given["repositories"] == [
        {"repository_id": None, "repository": "main/py-*", "actions": ["read", "write"], "via": "user"}
    ]
    await stack.add_repository("py-b", visibility="private")
    await stack.add_repository("other", visibility="private")
    assert [await may_read(stack, name) for name in ("py-a", "py-b", "other")] == [True, True, False]
    assert await seen(stack) == ["py-a", "py-b"]
    await rename(stack, "other", "py-c")
    await rename(stack, "py-a", "closed")
    assert [await may_read(stack, name) for name in ("closed", "py-b", "py-c")] == [False, True, True]
    assert await seen(stack) == ["py-b", "py-c"]
    assert await seen(stack, "admin", "?pattern=main/py-*") == ["py-b", "py-c"]
    assert (await stack.api("GET", "/repository?pattern=../*")).status == 422
    assert (await stack.api("DELETE", "/users/ada/permissions/main%2Fpy-*")).status == 200
    assert await seen(stack) == []
    details = [each["detail"]["repositories"] for each in await stack.audited(action="user.permissions")]
    assert {"main/py-*": ["read", "write"]} in details
    assert {"main/py-*": None} in details


async def test_a_hidden_repository_is_listed_for_those_whose_pattern_has_edit(stack: Stack) -> None:
    await stack.add_user("ada")
    await stack.add_repository("shy", visibility="hidden")
    await give(stack, "main/*", "read")
    assert await seen(stack) == []
    await give(stack, "main/*", "read", "edit")
    assert await seen(stack) == ["shy"]


async def test_the_grant_that_decided_is_named_in_rights_and_refusals(stack: Stack) -> None:
    await stack.add_user("ada")
    for name in ("py", "secret-a", "named"):
        await stack.add_repository(name, visibility="private")
    await stack.ok("POST", "/groups", {"name": "crew"})
    await stack.ok("POST", "/groups/crew/members", {"user": "ada"})
    grants = [{"repository": "main/*", "actions": ["read"]}]
    record = await stack.ok("PUT", "/groups/crew/permissions", {"repositories": grants})
    assert [(each["repository"], each["repository_id"]) for each in record["repositories"]] == [("main/*", None)]
    await give(stack, "main/secret-*")
    await stack.ok("PUT", "/users/ada/permissions/main%2Fnamed", {"actions": ["read", "delete"]})
    reply = await stack.api("GET", "/repository/main%2Fpy/config", who="ada")
    assert "the grant of the user's group crew (for main/*) in this repository is for read" in reply.json["detail"]

    async def rights(place: str, who: str) -> dict[str, Any]:
        items = (await stack.ok("GET", f"{place}/rights", who=who))["items"]
        return {each["repository"]: each["denied"] or [one["source"] for one in each["sources"]] for each in items}

    own = {"main/named": ["the user's grant"], "main/py": ["the grant of the user's group crew (for main/*)"]}
    assert await rights("/user/me", "ada") == own, "a pattern that refuses tells nobody what it matches"
    refused = "the user's grant for main/secret-* in this repository is for no action at all"
    assert await rights("/users/ada", "admin") == {**own, "main/secret-a": refused}
    await stack.add_user("boss", user_manager=True)
    assert list(await rights("/users/ada", "boss")) == ["main/named"], "nor does a pattern tell user managers"


async def test_user_managers_give_patterns_that_they_hold_and_learn_nothing_by_refusals(stack: Stack) -> None:
    await stack.add_user("ada")
    await stack.add_user("boss", user_manager=True)
    await stack.add_repository("secret", visibility="private")
    await stack.ok("POST", "/groups", {"name": "crew"})
    reply = await give(stack, "main/*", "read", who="boss")
    assert (reply.status, b"secret" in reply.body) == (403, False)
    assert "read in every repository that main/* can match" in reply.json["detail"]
    await give(stack, "main/*", "read", user="boss")
    assert (await give(stack, "main/*", "read", who="boss")).status == 200
    assert (await give(stack, "main/s*", "read", who="boss")).status == 200
    assert (await give(stack, "*", "read", who="boss")).status == 403
    assert (await give(stack, "main/*", "read", "write", who="boss")).status == 403
    assert (await give(stack, "main/*", "read", "write", user="boss", who="boss")).status == 403
    for actions, status in ((["read"], 200), (["read", "write"], 403)):
        body = {"repositories": [{"repository": "main/*", "actions": actions}]}
        assert (await stack.api("PUT", "/groups/crew/permissions", body, who="boss")).status == status
    await stack.ok("PUT", "/groups/crew/permissions/other%2F*", {"actions": ["write"]})
    assert (await stack.api("POST", "/groups/crew/members", {"user": "ada"}, who="boss")).status == 403
    assert (await stack.api("PATCH", "/groups/crew", {"name": "people"}, who="boss")).status == 403
    await stack.ok("DELETE", "/groups/crew/permissions/other%2F*")
    assert (await stack.api("POST", "/groups/crew/members", {"user": "ada"}, who="boss")).status == 200


@pytest.mark.parametrize(
    "pattern", ["../*", "main/*/x", "*\0", "é*", "main/[*", "*" * 201, "main/.*", "main//*", "%2a*"]
)
async def test_what_matches_no_repository_is_refused_for_grants_and_tokens_alike(stack: Stack, pattern: str) -> None:
    await stack.add_user("ada")
    grants = [{"repository": "main/*", "actions": ["read"]}, {"repository": pattern, "actions": ["read"]}]
    for path, body in (
        ("/users/ada/permissions", {"repositories": grants}),
        ("/user/token", {"name": "x", "repositories": grants}),
    ):
        reply = await stack.api("PUT" if "ada" in path else "POST", path, body)
        assert (reply.status, reply.json["errors"][0]["pointer"]) == (422, "/repositories/1/repository"), path
    assert (await give(stack, pattern, "read")).status in (400, 404, 422)
    assert (await stack.ok("GET", "/users/ada/permissions"))["repositories"] == []


async def test_there_are_at_most_a_hundred_patterns(stack: Stack) -> None:
    await stack.add_user("ada")
    many = [{"repository": f"m{number}/*", "actions": ["read"]} for number in range(101)]
    assert (await stack.api("PUT", "/users/ada/permissions", {"repositories": many})).status == 422
    assert (await stack.api("PUT", "/users/ada/permissions", {"repositories": many[1:]})).status == 200
    assert (await give(stack, "one/*", "read")).status == 422
    assert (await give(stack, "m1/*")).status == 200


async def test_a_name_without_wildcards_is_a_repository_and_one_by_its_id_stays_so(stack: Stack) -> None:
    await stack.add_user("ada")
    made = await stack.add_repository("py", visibility="private")
    assert (await give(stack, "main/none", "read")).status == 422
    await give(stack, made["id"], "read")
    await give(stack, "main/p[y]", "read", "write")
    await rename(stack, "py", "js")
    assert await may_read(stack, "js")
    record = await stack.ok("GET", "/users/ada/permissions")
    assert [each["repository"] for each in record["repositories"]] == ["main/js", "main/p[y]"]


GIVEN: dict[str, tuple[str, str, dict[str, Any]]] = {  # by road: what gives ada the right to write
    "list": ("PUT", "/permissions", {"repositories": [{"repository": "main/py", "actions": ["write"]}]}),
    "one": ("PUT", "/permissions/main%2Fpy", {"actions": ["write"]}),
    "pattern": ("PUT", "/permissions/main%2F*", {"actions": ["write"]}),
    "default actions": ("PATCH", "", {"default_repository_actions": ["write"]}),
}


@pytest.mark.parametrize("road", GIVEN)
async def test_who_loses_a_right_meanwhile_does_not_give_it_any_more(stack: Stack, road: str) -> None:
    await stack.add_repository("py", visibility="private")
    await stack.add_user("ada")
    await stack.add_user("boss", user_manager=True)
    await give(stack, "*", "read", "write", user="boss")
    method, path, body = GIVEN[road]
    gate = WriteBarrier(stack.assembly.core.catalog, of="AuditLog.with_row")
    giving = ensureDeferred(stack.api(method, f"/users/ada{path}", body, who="boss"))
    await gate.arrived
    assert (await give(stack, "*", user="boss")).status == 200
    gate.open.callback(None)
    assert (await giving).status == 403
    assert (await stack.ok("GET", "/users/ada/permissions"))["repositories"] == []
    assert (await stack.ok("GET", "/users/ada"))["default_repository_actions"] == []
