"""What a user may do in each repository, and why: the list agrees with the permission check."""

from __future__ import annotations

from typing import Any

from tests.support.memory_server import Stack

ALL = ["read", "write", "overwrite", "delete", "edit", "admin"]


async def rights(stack: Stack, place: str = "/user/me", who: str = "bob", query: str = "") -> dict[str, Any]:
    """The actions and their sources by repository."""
    items = (await stack.ok("GET", f"{place}/rights{query}", who=who))["items"]
    return {
        each["repository"]: each["denied"] or {source["source"]: source["actions"] for source in each["sources"]}
        for each in items
    }


async def test_each_source_of_a_right_is_named(stack: Stack) -> None:
    await stack.add_user("bob", default_repository_actions=["read", "write"])
    for name in ("granted", "grouped", "denied", "plain"):
        await stack.add_repository(name, visibility="private")
    await stack.grant("bob", "main/granted", "read", "delete")
    await stack.ok("PUT", "/users/bob/permissions/main%2Fdenied", {"actions": []})
    await stack.ok("POST", "/groups", {"name": "crew"})
    await stack.ok("POST", "/groups/crew/members", {"user": "bob"})
    await stack.ok("PUT", "/groups/crew/permissions/main%2Fgrouped", {"actions": ["read", "edit"]})
    assert await rights(stack) == {
        "main/denied": "the user's grant in this repository is for no action at all",
        "main/granted": {"the user's grant": ["read", "delete"]},
        "main/grouped": {"the grant of the user's group crew": ["read", "edit"]},
        "main/plain": {"default actions": ["read", "write"]},
    }
    assert await rights(stack, "/users/bob", "admin") == await rights(stack)
    assert (await rights(stack, "/users/admin", "admin"))["main/plain"] == {"admin": ALL}


async def test_what_only_visibility_gives_and_what_is_hidden(stack: Stack) -> None:
    await stack.add_user("bob")
    for visibility in ("public", "hidden", "private"):
        await stack.add_repository(visibility, visibility=visibility)
    assert await rights(stack) == {"main/public": {"visibility": ["read"]}}
    token = await stack.token("bob", scopes=["api:read"], repositories=[])
    assert await rights(stack, who=token) == {"main/public": {"visibility": ["read"]}}
    await stack.ok("PUT", "/users/bob/status", {"active": False})
    assert await rights(stack, "/users/bob", "admin") == {}


async def test_user_managers_learn_of_no_repository_by_the_rights_of_an_admin(stack: Stack) -> None:
    await stack.add_user("eve", user_manager=True)
    await stack.add_repository("open")
    await stack.add_repository("secret", visibility="private")
    assert list(await rights(stack, "/users/admin", "eve")) == ["main/open"]
    assert list(await rights(stack, "/users/admin", "admin", "?limit=1")) == ["main/open"]
