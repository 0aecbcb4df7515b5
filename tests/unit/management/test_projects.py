"""Projects: members, bindings, and who may see them."""

from __future__ import annotations

import pytest

from tests.support.memory_server import Stack


async def test_the_creator_of_a_project_is_its_owner(stack: Stack) -> None:
    reply = await stack.api("POST", "/project", {"key": "Core", "description": "The core"})
    assert (reply.status, reply.headers["location"]) == (201, "/api/project/core")
    made = reply.json
    assert (made["key"], made["name"], made["visibility"]) == ("core", "Core", "private")
    assert [(each["kind"], each["name"], each["role"]) for each in made["members"]] == [("user", "admin", "owner")]
    for key in ("CORE", made["id"]):
        assert await stack.ok("GET", f"/project/{key}") == made
    assert (await stack.api("POST", "/project", {"key": "core"})).status == 409


async def test_only_members_see_a_private_project(stack: Stack) -> None:
    await stack.add_user("ada")
    await stack.ok("POST", "/project", {"key": "open", "visibility": "public"})
    await stack.ok("POST", "/project", {"key": "shut"})

    async def seen(who: str | None) -> list[str]:
        return [each["key"] for each in (await stack.ok("GET", "/project", who=who))["items"]]

    assert await seen(None) == ["open"]
    assert await seen("ada") == ["open"]
    assert (await stack.api("GET", "/project/shut", who="ada")).status == 404
    assert (await stack.api("PATCH", "/project/shut", {"name": "x"}, who="ada")).status == 404
    await stack.ok("POST", "/project/shut/members", {"user": "ada", "role": "guest"})
    assert await seen("ada") == ["open", "shut"]
    first = await stack.ok("GET", "/project?limit=1", who="ada")
    second = await stack.ok("GET", f"/project?limit=1&cursor={first['next']}", who="ada")
    assert ([each["key"] for each in second["items"]], second["next"]) == (["shut"], None)


@pytest.mark.parametrize(
    ("role", "edits", "decides"),
    [("guest", 403, 403), ("developer", 403, 403), ("maintainer", 200, 403), ("owner", 200, 200)],
)
async def test_the_role_decides_who_may_change_a_project(stack: Stack, role: str, edits: int, decides: int) -> None:
    await stack.add_user("ada")
    await stack.add_user("bob")
    await stack.ok("POST", "/project", {"key": "core"})
    await stack.ok("PUT", "/project/core/members", {"user": "ada", "role": role})
    assert (await stack.api("PATCH", "/project/core", {"name": "New"}, who="ada")).status == edits
    assert (await stack.api("POST", "/project/core/members", {"user": "bob"}, who="ada")).status == decides
    binding = {"repository": "main/py", "pattern": "core-*"}
    assert (await stack.api("POST", "/project/core/bindings", binding, who="ada")).status == 403
    assert (await stack.api("DELETE", "/project/core", who="ada")).status == (204 if decides == 200 else 403)


async def test_members_are_added_changed_and_removed(stack: Stack) -> None:
    await stack.add_user("ada")
    await stack.ok("POST", "/project", {"key": "core"})
    await stack.ok("POST", "/project/core/members", {"user": "ada"})
    await stack.ok("POST", "/project/core/members", {"user": "ada", "role": "maintainer"})
    members = await stack.ok("GET", "/project/core/members")
    assert {each["name"]: each["role"] for each in members} == {"admin": "owner", "ada": "maintainer"}
    assert await stack.ok("DELETE", "/project/core/members?user=ada") is None
    assert [each["name"] for each in await stack.ok("GET", "/project/core/members")] == ["admin"]
    for body in (
        {},
        {"user": "ada", "group": "all"},
        {"user": "nobody"},
        {"group": "none"},
        {"user": "ada", "role": "x"},
    ):
        assert (await stack.api("POST", "/project/core/members", body)).status == 422, body


async def test_only_members_see_the_list_of_members(stack: Stack) -> None:
    await stack.ok("POST", "/project", {"key": "core", "visibility": "public"})
    for name in ("ada", "bob"):
        await stack.add_user(name)
    await stack.add_user("keeper", system_manager=True)
    await stack.ok("POST", "/project/core/members", {"user": "ada", "role": "guest"})
    token = await stack.token("ada", scopes=["api:read"])
    for who, status in ((None, 401), ("bob", 403), ("ada", 200), ("keeper", 200), ("admin", 200), (token, 200)):
        assert (await stack.api("GET", "/project/core/members", who=who)).status == status, who
        members = (await stack.ok("GET", "/project/core", who=who))["members"]
        assert (members is not None) == (status == 200), who


async def test_projects_are_shown_to_tokens_with_the_scope_for_it(stack: Stack) -> None:
    await stack.add_repository()
    await stack.ok("POST", "/project", {"key": "core", "visibility": "public"})
    await stack.ok("POST", "/project/core/bindings", {"repository": "main/py", "pattern": "x"})
    repositories = [{"repository": "main/py", "actions": ["read"]}]
    paths = ("/project", "/project/core", "/project/core/members", "/project/core/bindings")
    for body, status in (
        ({}, 403),
        ({"repositories": repositories}, 403),
        ({"scopes": ["metrics"]}, 403),
        ({"scopes": ["api:read"], "repositories": repositories}, 200),
    ):
        token = await stack.token(**body)
        for path in (*paths, "/project/by-key/main%2Fpy/x"):
            assert (await stack.api("GET", path, who=token)).status == status, (body, path)


async def test_names_are_bound_to_one_project(stack: Stack) -> None:
    await stack.add_repository()
    await stack.add_repository("inner", visibility="private")
    for key in ("core", "edge"):
        await stack.ok("POST", "/project", {"key": key, "visibility": "public"})
    bound = await stack.ok("POST", "/project/core/bindings", {"repository": "main/py", "pattern": "core-*"})
    assert [(each["repository"], each["pattern"]) for each in bound["bindings"]] == [("main/py", "core-*")]
    assert (
        await stack.api("POST", "/project/edge/bindings", {"repository": "main/py", "pattern": "core-*"})
    ).status == 409
    for repository, pattern in (("main/no", "x"), ("main/py", "x*")):
        body = {"repository": repository, "pattern": pattern}
        assert (await stack.api("POST", "/project/edge/bindings", body)).status == 422
    await stack.ok("POST", "/project/core/bindings", {"repository": "main/inner", "pattern": "x"})
    assert len(await stack.ok("GET", "/project/core/bindings")) == 2
    assert [each["repository"] for each in await stack.ok("GET", "/project/core/bindings", who=None)] == ["main/py"]
    owner = await stack.ok("GET", "/project/by-key/main%2Fpy/Core_Things", who=None)
    assert owner["key"] == "core"
    assert (await stack.api("GET", "/project/by-key/main%2Fpy/other")).status == 404
    assert (await stack.api("GET", "/project/by-key/main%2Finner/x", who=None)).status == 401
    unbind = "/project/core/bindings?repository=main/py&pattern=core-*"
    assert await stack.ok("DELETE", unbind) is None
    assert (await stack.api("DELETE", unbind)).status == 404
    assert (await stack.api("GET", "/project/by-key/main%2Fpy/core-things")).status == 404


async def test_a_stale_project_is_not_changed(stack: Stack) -> None:
    await stack.ok("POST", "/project", {"key": "core"})
    etag = (await stack.api("GET", "/project/core")).headers["etag"]
    assert (await stack.api("PATCH", "/project/core", {"quota": 5}, headers={"If-Match": etag})).status == 200
    assert (await stack.api("DELETE", "/project/core", headers={"If-Match": etag})).status == 412
    assert (await stack.ok("PATCH", "/project/core", {"quota": None}))["quota"] is None
    assert (await stack.api("PATCH", "/project/core", {"key": "other"})).status == 422
