"""Groups and their members, what they may do, and the service accounts that they own."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import ensureDeferred, gatherResults

from tests.support.memory_server import Stack

READ = {"repositories": [{"repository": "main/py", "actions": ["read"]}]}


async def add_group(stack: Stack, name: str = "crew", *members: str, **fields: Any) -> Any:
    made = await stack.ok("POST", "/groups", {"name": name, **fields})
    for each in members:
        made = await stack.ok("POST", f"/groups/{name}/members", {"user": each})
    return made


async def may_read(stack: Stack, who: str) -> bool:
    return (await stack.call("GET", "/repositories/main/py/simple/", who=who)).status == 200


async def test_a_group_is_made_changed_and_removed(stack: Stack) -> None:
    made = await add_group(stack, "Crew", description="all")
    assert (made["name"], made["description"], made["member_count"]) == ("Crew", "all", 0)
    assert await stack.ok("GET", "/groups/cREW") == await stack.ok("GET", f"/groups/{made['id']}") == made
    assert (await stack.api("POST", "/groups", {"name": "CREW"})).status == 409
    await add_group(stack, "others")
    listed = await stack.ok("GET", "/groups?count=true")
    assert ([each["name"] for each in listed["items"]], listed["total"]) == (["Crew", "others"], 2)
    assert [each["name"] for each in (await stack.ok("GET", "/groups?q=ALL"))["items"]] == ["Crew"]
    etag = (await stack.api("GET", "/groups/crew")).headers["etag"]
    changed = await stack.ok("PATCH", "/groups/crew", {"name": "team"}, headers={"If-Match": etag})
    assert (changed["id"], changed["name"]) == (made["id"], "team")
    assert (await stack.api("PATCH", "/groups/team", {"name": "Others"})).status == 409
    assert (await stack.api("DELETE", "/groups/team", headers={"If-Match": etag})).status == 412
    assert (await stack.api("DELETE", "/groups/team")).status == 204
    assert (await stack.api("GET", "/groups/team")).status == 404
    rows = [(each["action"], each["outcome"]) for each in await stack.audited(object="team")]
    assert ("group.delete", "ok") in rows


async def test_a_group_gets_a_new_name_only_of_those_who_hold_its_rights(stack: Stack) -> None:
    await stack.add_repository(visibility="private")
    await stack.add_user("boss", user_manager=True)
    await add_group(stack)
    await stack.ok("PUT", "/groups/crew/permissions", READ)
    for name, status in (("everybody", 403), ("CREW", 200), ("crew", 200)):  # a case is no other name
        assert (await stack.api("PATCH", "/groups/crew", {"name": name}, who="boss")).status == status, name
    assert (await stack.api("PATCH", "/groups/crew", {"description": "all"}, who="boss")).status == 200
    await stack.grant("boss", "main/py", "read")
    assert (await stack.api("PATCH", "/groups/crew", {"name": "everybody"}, who="boss")).status == 200
    await stack.ok("POST", "/project", {"key": "acme"})
    await stack.ok("POST", "/project/acme/members", {"group": "everybody", "role": "maintainer"})
    assert (await stack.api("PATCH", "/groups/everybody", {"name": "crew"}, who="boss")).status == 403
    assert (await stack.api("PATCH", "/groups/everybody", {"name": "crew"})).status == 200


async def test_the_grants_of_a_group_hold_for_its_members_at_once(stack: Stack) -> None:
    await stack.add_repository(visibility="private")
    await stack.add_user("ada")
    await add_group(stack)
    given = await stack.ok("PUT", "/groups/crew/permissions", READ)
    assert [(each["repository"], each["actions"]) for each in given["repositories"]] == [("main/py", ["read"])]
    assert not await may_read(stack, "ada")
    await stack.ok("POST", "/groups/crew/members", {"user": "ada"})
    assert await may_read(stack, "ada")
    own = await stack.ok("GET", "/user/me/permissions", who="ada")
    assert [(each["repository"], each["via"]) for each in own["repositories"]] == [("main/py", "group crew")]
    members = (await stack.ok("GET", "/groups/crew/members"))["items"]
    assert [(each["username"], each["kind"]) for each in members] == [("ada", "person")]
    assert (await stack.api("DELETE", "/groups/crew/members", {"user": "ada"})).status == 204
    assert not await may_read(stack, "ada")
    assert (await stack.api("DELETE", "/groups/crew/members", {"user": "ada"})).status == 404
    await stack.ok("POST", "/groups/crew/members", {"user": "ada"})
    assert await may_read(stack, "ada")
    assert (await stack.api("DELETE", "/groups/crew")).status == 204
    assert not await may_read(stack, "ada")
    detail = [each["detail"] for each in await stack.audited(action="group.permissions")]
    assert detail == [{"repositories": {"main/py": ["read"]}}]


async def test_one_grant_of_a_group_is_set_and_removed_and_others_stay(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.add_repository("js")
    await add_group(stack)
    await stack.ok("PUT", "/groups/crew/permissions/main%2Fpy", {"actions": ["read", "write"]})
    both = await stack.ok("PUT", "/groups/crew/permissions/main%2Fjs", {"actions": []})
    assert {each["repository"]: each["actions"] for each in both["repositories"]} == {
        "main/js": [],
        "main/py": ["read", "write"],
    }
    left = await stack.ok("DELETE", "/groups/crew/permissions/main%2Fjs")
    assert [each["repository"] for each in left["repositories"]] == ["main/py"]
    none = await stack.ok("PUT", "/groups/crew/permissions", {"repositories": []})
    assert none["repositories"] == []


async def test_grants_that_are_given_at_the_same_time_all_stay(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.add_repository("js", format="npm")
    await stack.ok("POST", "/groups", {"name": "crew"})
    places = [f"/groups/crew/permissions/main%2F{name}" for name in ("py", "js")]
    given = [ensureDeferred(stack.ok("PUT", place, {"actions": ["read"]})) for place in places]
    await gatherResults(given)
    listed = (await stack.ok("GET", "/groups/crew"))["repositories"]
    assert sorted(each["repository"] for each in listed) == ["main/js", "main/py"]


async def test_a_refusal_names_the_groups_whose_grant_decides(stack: Stack) -> None:
    await stack.add_repository()
    await stack.add_user("ada")
    for name in ("crew", "guests"):
        await add_group(stack, name, "ada")
        await stack.ok("PUT", f"/groups/{name}/permissions", READ)
    reply = await stack.api("GET", "/repository/main%2Fpy/config", who="ada")
    assert reply.status == 403
    assert "the grant of the user's groups crew, guests in this repository is for read" in reply.json["detail"]


async def test_roles_of_a_group_in_projects_are_shown(stack: Stack) -> None:
    await add_group(stack)
    await stack.ok("POST", "/project", {"key": "acme"})
    await stack.ok("POST", "/project/acme/members", {"group": "crew", "role": "maintainer"})
    assert (await stack.ok("GET", "/groups/crew"))["projects"] == [{"project": "acme", "role": "maintainer"}]
    assert (await stack.api("DELETE", "/groups/crew")).status == 204
    members = await stack.ok("GET", "/project/acme/members")
    assert [each["kind"] for each in members] == ["user"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "pointer"),
    [
        ("POST", "/groups", {"name": "-x"}, 422, "/name"),
        ("POST", "/groups", {"name": "x", "members": []}, 422, "/members"),
        ("POST", "/groups/none/members", {"user": "ada"}, 404, None),
        ("POST", "/groups/crew/members", {"user": "nobody"}, 422, "/user"),
        ("PUT", "/groups/crew/permissions", {"repositories": [{"repository": "main/no", "actions": []}]}, 422, None),
        ("PUT", "/groups/crew/permissions", {}, 422, "/repositories"),
    ],
)
async def test_a_wrong_request_is_refused(
    stack: Stack, method: str, path: str, body: Any, status: int, pointer: str | None
) -> None:
    await add_group(stack)
    reply = await stack.api(method, path, body)
    assert reply.status == status, reply.body
    assert pointer is None or reply.pointer == pointer


async def test_only_user_managers_manage_groups(stack: Stack) -> None:
    await stack.add_user("ada")
    await add_group(stack, "crew", "ada")
    for method, path, body in (
        ("GET", "/groups", None),
        ("POST", "/groups", {"name": "mine"}),
        ("GET", "/groups/crew", None),
        ("GET", "/groups/crew/members", None),
        ("POST", "/groups/crew/members", {"user": "ada"}),
        ("PUT", "/groups/crew/permissions", {"repositories": []}),
        ("DELETE", "/groups/crew", None),
    ):
        assert (await stack.api(method, path, body, who="ada")).status == 403
        assert (await stack.api(method, path, body, who=None)).status == 401


async def test_a_user_manager_gives_a_group_only_what_they_hold(stack: Stack) -> None:
    await stack.add_repository(visibility="private")
    await stack.add_user("max", user_manager=True)
    await stack.add_user("ada")
    await stack.grant("max", "main/py", "read")
    await add_group(stack)
    for actions, status in ((["read"], 200), (["read", "write"], 403)):
        path = "/groups/crew/permissions/main%2Fpy"
        assert (await stack.api("PUT", path, {"actions": actions}, who="max")).status == status
    assert (await stack.api("POST", "/groups/crew/members", {"user": "ada"}, who="max")).status == 200
    # what an admin gives to a group, the user manager cannot pass on, to themselves least of all
    await add_group(stack, "writers")
    await stack.ok("PUT", "/groups/writers/permissions/main%2Fpy", {"actions": ["write"]})
    for name in ("ada", "max"):
        reply = await stack.api("POST", "/groups/writers/members", {"user": name}, who="max")
        # of max, an own grant decides, so that the group adds nothing
        assert reply.status == (200 if name == "max" else 403)
    # the refusal of a group is lifted with the group
    await stack.ok("PATCH", "/users/ada", {"default_repository_actions": ["delete"]})
    refused = await stack.api("DELETE", "/groups/crew", who="max")
    assert (refused.status, "delete in main/py" in refused.json["detail"]) == (403, True)
    assert (await stack.api("DELETE", "/groups/crew/members", {"user": "ada"}, who="max")).status == 403
    assert (await stack.ok("GET", "/groups/crew"))["member_count"] == 1


async def test_a_user_manager_passes_on_no_role_that_they_do_not_hold(stack: Stack) -> None:
    await stack.add_user("max", user_manager=True)
    await add_group(stack)
    await stack.ok("POST", "/project", {"key": "acme"})
    await stack.ok("POST", "/project/acme/members", {"group": "crew", "role": "owner"})
    reply = await stack.api("POST", "/groups/crew/members", {"user": "max"}, who="max")
    assert (reply.status, "owner" in reply.json["detail"]) == (403, True)
    await stack.ok("POST", "/project/acme/members", {"user": "max", "role": "owner"})
    assert (await stack.api("POST", "/groups/crew/members", {"user": "max"}, who="max")).status == 200


async def test_a_service_account_of_a_group_outlives_the_people_in_it(stack: Stack) -> None:
    await stack.add_repository(visibility="private")
    for name in ("ada", "bob", "eve"):
        await stack.add_user(name)
    await add_group(stack, "crew", "ada", "bob")
    body = {"username": "robot", "kind": "service", "owner": {"group": "crew"}, "default_repository_actions": ["read"]}
    made = await stack.ok("POST", "/users", body)
    assert (made["owner"]["kind"], made["owner"]["name"]) == ("group", "crew")
    assert [each["username"] for each in await stack.ok("GET", "/user/services", who="ada")] == ["robot"]
    assert await stack.ok("GET", "/user/services", who="eve") == []
    token = await stack.ok("POST", "/users/robot/token", {"name": "ci"}, who="ada")
    assert (token["owner"], token["kind"]) == ("robot", "service")
    assert await may_read(stack, token["token"])
    assert (await stack.api("POST", "/users/robot/token", {"name": "ci"}, who="eve")).status == 404
    assert (await stack.api("GET", "/users/robot/token", who="eve")).status == 404
    assert (await stack.api("DELETE", "/users/ada")).status == 204
    assert await may_read(stack, token["token"])
    [listed] = (await stack.ok("GET", "/users/robot/token", who="bob"))["items"]
    assert (listed["name"], "token" in listed) == ("ci", False)
    refused = await stack.api("DELETE", "/groups/crew")
    assert (refused.status, "robot" in refused.json["detail"]) == (409, True)
    assert (await stack.api("DELETE", f"/users/robot/token/{listed['id']}", who="bob")).status == 204
    assert not await may_read(stack, token["token"])
    rows = [(each["action"], each["detail"].get("owner")) for each in await stack.audited(actor="bob")]
    assert ("token.revoke", "robot") in rows


async def test_a_person_who_owns_a_service_account_is_not_removed(stack: Stack) -> None:
    await stack.add_user("ada")
    await stack.ok("POST", "/users", {"username": "robot", "kind": "service", "owner": {"user": "ada"}})
    refused = await stack.api("DELETE", "/users/ada")
    assert (refused.status, "robot" in refused.json["detail"]) == (409, True)
    await add_group(stack)
    moved = await stack.ok("PATCH", "/users/robot", {"owner": {"group": "crew"}})
    assert moved["owner"]["name"] == "crew"
    assert (await stack.api("DELETE", "/users/ada")).status == 204
    assert (await stack.ok("PATCH", "/users/robot", {"owner": None}))["owner"] is None
    assert (await stack.api("DELETE", "/groups/crew")).status == 204


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"username": "ada", "owner": {"group": "crew"}}, "/owner"),
        ({"username": "robot", "kind": "service", "owner": {}}, "/owner/user"),
        ({"username": "robot", "kind": "service", "owner": {"group": "none"}}, "/owner/group"),
        ({"username": "robot", "kind": "service", "owner": {"user": "other"}}, "/owner/user"),
    ],
)
async def test_a_wrong_owner_is_refused(stack: Stack, body: dict[str, Any], pointer: str) -> None:
    await add_group(stack)
    await stack.ok("POST", "/users", {"username": "other", "kind": "service"})
    reply = await stack.api("POST", "/users", body)
    assert (reply.status, reply.pointer) == (422, pointer)


async def test_tokens_of_people_and_of_privileged_services_are_no_ones_to_make(stack: Stack) -> None:
    await stack.add_user("ada")
    await stack.add_user("max", user_manager=True)
    assert (await stack.api("POST", "/users/ada/token", {"name": "x"})).status == 409
    for flag in ("admin", "user_manager", "system_manager"):
        body = {"username": f"robot-{flag.replace('_', '-')}", "kind": "service", "owner": {"user": "ada"}, flag: True}
        made = await stack.ok("POST", "/users", body)
        for who in ("ada", "max"):
            assert (await stack.api("POST", f"/users/{made['id']}/token", {"name": "x"}, who=who)).status == 403
        assert (await stack.api("POST", f"/users/{made['id']}/token", {"name": "x"})).status == 201


async def test_a_token_of_a_service_allows_no_more_than_the_token_it_is_made_with(stack: Stack) -> None:
    await stack.add_user("ada")
    await stack.ok("POST", "/users", {"username": "robot", "kind": "service", "owner": {"user": "ada"}})
    narrow = await stack.token("ada", scopes=["api:write"])
    reply = await stack.api("POST", "/users/robot/token", {"name": "x"}, who=narrow)
    assert reply.status == 403
    services = (await stack.ok("GET", "/users?kind=service"))["items"]
    assert [each["username"] for each in services] == ["robot"]
    assert (await stack.api("GET", "/users?kind=robot")).status == 422
