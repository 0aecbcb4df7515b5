"""Roles in projects, and tokens for packages, open what the API shows as far as they open it for clients."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.management.packages import routes
from pkgrepo.storage.catalog.packages.summaries import list_package_summaries
from tests.support.memory_server import Reply, Stack
from tests.support.npm_packages import make_publish
from tests.support.python_packages import make_wheel

EVERYWHERE = {"repository": "*", "actions": ["read", "write"]}
PLACE = "/repository/main%2Fpy"
WITHOUT_CONDA = {"type": "Hosted", "conda": {"from_wheels": False}}


async def acme(stack: Stack, **members: str) -> None:
    """A private repository with three packages, and a project that owns two of them, with members by their roles."""
    await stack.add_repository("py", visibility="private", config=WITHOUT_CONDA)
    await stack.ok("POST", "/project", {"key": "acme"})
    await stack.ok("POST", "/project/acme/bindings", {"repository": "main/py", "pattern": "acme-*"})
    for name, role in members.items():
        await stack.add_user(name)
        await stack.ok("POST", "/project/acme/members", {"user": name, "role": role})
    for package in ("acme-one", "acme-two", "payroll"):
        await stack.publish("main/py", package, "1.0")


async def push(stack: Stack, repository: str, package: str, who: str, version: str = "2.0") -> Reply:
    filename, data = make_wheel(package, version)
    return await stack.call("PUT", f"/repositories/{repository}/{package}/{version}/{filename}", raw=data, who=who)


async def names(stack: Stack, path: str, who: str, key: str = "name") -> list[str]:
    found = await stack.ok("GET", path, who=who)
    return sorted(each[key] for each in (found["items"] if isinstance(found, dict) else found))


async def test_a_maintainer_opens_a_stage_and_another_one_approves_it(stack: Stack) -> None:
    await acme(stack, ada="developer", bob="maintainer", eve="reporter")
    reply = await stack.api("POST", f"{PLACE}/stages", {}, who="ada")
    assert reply.status == 201, reply.body
    stage = reply.json
    where = stage["url"].partition("/repositories/")[2]
    assert (await push(stack, where, "acme-one", "ada")).status == 201
    assert (await push(stack, where, "payroll", "ada")).status == 403
    simple = await stack.call("GET", f"/repositories/{where}/simple/acme-one/", who="ada")
    assert (simple.status, b"acme_one-2.0" in simple.body) == (200, True)
    for path in ("/stages", "/stages?repository=main/py", f"{PLACE}/stages"):
        assert await names(stack, path, "bob", "id") == [stage["id"]]
    assert (await stack.api("POST", f"{PLACE}/stages", {}, who="eve")).status == 403
    assert (await stack.api("POST", f"/stages/{stage['id']}/approve", {}, who="ada")).status == 403
    assert (await stack.ok("POST", f"/stages/{stage['id']}/approve", {}, who="bob"))["state"] == "approved"
    assert await names(stack, "/package/main%2Fpy/acme-one/versions", "ada", "version") == ["1.0", "2.0"]


async def test_who_has_no_part_in_what_is_staged_sees_no_stage(stack: Stack) -> None:
    await acme(stack, ada="maintainer")
    await stack.add_user("mallory")
    stage = await stack.ok("POST", f"{PLACE}/stages", {"description": "payroll of May"})
    where = stage["url"].partition("/repositories/")[2]
    for staged in (False, True):
        if staged:
            assert (await push(stack, where, "payroll", "admin")).status == 201
        for who in ("ada", "mallory"):
            assert await names(stack, "/stages", who, "id") == []
            assert (await stack.api("GET", f"/stages/{stage['id']}", who=who)).status == 404
    assert (await stack.api("POST", f"{PLACE}/stages", {}, who="mallory")).status == 404


async def test_members_see_their_packages_of_a_private_repository_in_all_lists(stack: Stack) -> None:
    await acme(stack, ada="developer")
    await stack.add_user("mallory")
    ours = ["acme-one", "acme-two"]
    assert await names(stack, "/repository", "ada") == ["py"]
    assert await names(stack, "/repository?include_usage", "ada", "package_count") == [None]
    shown = await stack.ok("GET", PLACE, who="ada")
    assert (shown["package_count"], shown["usage_bytes"], shown["actions"]) == (None, None, ["write"])
    assert (await stack.ok("GET", "/repository/find-id/main/py", who="ada"))["id"] == shown["id"]
    for path in (f"{PLACE}/packages", "/search/packages?q=a", "/search/packages?facets=true", "/activity"):
        assert await names(stack, path, "ada") == ours, path
    assert await names(stack, "/search/packages?q=payroll", "ada") == []
    counted = await stack.ok("GET", "/search/packages?facets=true", who="ada")
    assert counted["facets"]["hits"] == 2
    assert await names(stack, f"{PLACE}/releases", "ada", "package") == ours
    numbered = await stack.ok("GET", f"{PLACE}/packages?page=2&per_page=1", who="ada")
    assert ([each["name"] for each in numbered["items"]], numbered["total"]) == (["acme-two"], 2)
    first = await stack.ok("GET", f"{PLACE}/packages?limit=1", who="ada")
    second = await stack.ok("GET", f"{PLACE}/packages?limit=1&cursor={first['next']}&count=true", who="ada")
    assert [each["name"] for each in first["items"] + second["items"]] == ours
    assert (second["next"], second["total"]) == (None, 2)
    for path in ("/repository", "/search/packages?q=acme", "/activity"):
        assert await names(stack, path, "mallory") == []
    for path in (PLACE, f"{PLACE}/packages", "/repository/find-id/main/py"):
        assert (await stack.api("GET", path, who="mallory")).status == 404


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_a_numbered_page_of_their_packages_reads_all_once(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    await acme(stack, ada="developer")
    read: list[object] = []

    def list_summaries(*given: Any, **more: Any) -> Any:
        found = list_package_summaries(*given, **more)
        read.extend(each.key for each in found)
        return found

    monkeypatch.setattr(routes, "list_package_summaries", list_summaries)
    monkeypatch.setattr(routes, "AT_ONCE", 2)
    page = await stack.ok("GET", f"{PLACE}/packages?page={number}&per_page=1", who="ada")
    names = ["acme-one", "acme-two"][number - 1 : number]
    assert ([each["name"] for each in page["items"]], page["total"]) == (names, 2)
    assert read == ["acme-one", "acme-two", "payroll"]


async def test_what_shows_other_packages_too_is_refused_to_members(stack: Stack) -> None:
    await acme(stack, ada="maintainer")
    for path in ("tree/", "downloads", "config"):
        reply = await stack.api("GET", f"{PLACE}/{path}", who="ada")
        assert (reply.status, b"payroll" in reply.body) == (403, False), path
    inside = f"{PLACE}/contents/"
    for package, status in (("acme-one", 200), ("payroll", 404)):
        path = f"packages/{package}/1.0/{package.replace('-', '_')}-1.0-py3-none-any.whl"
        assert (await stack.api("GET", inside + path, who="ada")).status == status
        assert (await stack.api("GET", inside + path, who="admin")).status == 200
    assert (await stack.api("GET", "/package/main%2Fpy/payroll", who="ada")).status == 404


async def test_a_token_for_packages_sees_those_alone(stack: Stack) -> None:
    await acme(stack)
    await stack.add_user("ada")
    await stack.grant("ada", "main/py", "read", "write")
    token = await stack.token("ada", packages=["acme-o*"])
    assert await names(stack, "/repository", token) == ["py"]
    for path in (f"{PLACE}/packages", "/search/packages?q=a", "/activity"):
        assert await names(stack, path, token) == ["acme-one"], path
    assert (await stack.api("GET", f"{PLACE}/tree/", who=token)).status == 403
    elsewhere = await stack.token("ada", repositories=[])
    assert elsewhere
    none = await stack.token("ada", repositories=[{"repository": "main/other*", "actions": ["read"]}])
    assert await names(stack, "/repository", none) == []


async def test_a_grant_of_nothing_hides_a_repository_whatever_the_roles_are(stack: Stack) -> None:
    await acme(stack, ada="owner", bob="guest")
    await stack.grant("ada", "main/py")
    for who in ("ada", "bob"):
        assert await names(stack, "/repository", who) == []
        assert await names(stack, "/search/packages?q=acme", who) == []
        assert (await stack.api("GET", PLACE, who=who)).status == 404


async def test_rights_are_those_that_clients_have(stack: Stack) -> None:
    await acme(stack, ada="developer")
    await stack.add_repository("open")
    await stack.add_repository("shut", visibility="private")
    found = {each["repository"]: each for each in (await stack.ok("GET", "/user/me/rights", who="ada"))["items"]}
    assert {name: each["actions"] for name, each in found.items()} == {
        "main/open": ["read"],
        "main/py": ["read", "write"],
    }
    [source] = found["main/py"]["sources"]
    assert source == {
        "source": "the role developer in project acme",
        "actions": ["read", "write"],
        "packages": ["acme-*"],
    }
    assert (await push(stack, "main/py", "acme-one", "ada")).status == 201
    assert (await push(stack, "main/open", "acme-one", "ada")).status == 403
    assert (await stack.ok("GET", "/users/ada/rights"))["items"] == list(found.values())


async def test_rights_of_a_token_name_the_packages_that_it_is_for(stack: Stack) -> None:
    await acme(stack)
    await stack.add_user("ada")
    await stack.grant("ada", "main/py", "read", "write")
    token = await stack.token("ada", packages=["acme-o*"], scopes=["api:read"], repositories=[EVERYWHERE])
    [found] = (await stack.ok("GET", "/user/me/rights", who=token))["items"]
    assert (found["actions"], found["packages"]) == (["read", "write"], ["acme-o*"])


async def test_images_of_a_project_are_known_in_every_repository_that_takes_them(stack: Stack) -> None:
    await stack.add_repository("images", format="docker", visibility="private", config={"type": "Hosted"})
    rules = {"must_be_project_member": True, "auto_create_projects": True}
    await stack.add_repository("rules", config={**WITHOUT_CONDA, "push_rules": rules})
    await stack.add_user("ada")
    await stack.grant("ada", "main/rules", "read", "write")
    assert (await push(stack, "main/rules", "own", "ada")).status == 201  # she owns a project, which names no images
    assert (await stack.api("GET", "/repository/main%2Fimages", who="ada")).status == 404
    await stack.ok("POST", "/project", {"key": "acme"})
    await stack.ok("POST", "/project/acme/members", {"user": "ada", "role": "developer"})
    assert (await stack.api("GET", "/repository/main%2Fimages", who="ada")).status == 200
    items = (await stack.ok("GET", "/user/me/rights", who="ada"))["items"]
    [found] = [each for each in items if each["repository"] == "main/images"]
    assert [each["packages"] for each in found["sources"]] == [["acme"]]


async def test_grants_are_listed_with_the_roles_that_count_beside_them(stack: Stack) -> None:
    await acme(stack, ada="developer", bob="guest")
    found = {each["username"]: each["roles"] for each in (await stack.ok("GET", "/permissions"))["items"]}
    [role] = found["ada"]
    assert role.pop("repository_id")
    assert role == {
        "repository": "main/py",
        "project": "acme",
        "role": "developer",
        "actions": ["read", "write"],
        "packages": ["acme-*"],
    }
    assert found["bob"] == []


async def test_npm_stages_are_for_the_members_of_a_scope(stack: Stack) -> None:
    await stack.add_repository("npm", format="npm", visibility="private", config={"type": "Hosted"})
    await stack.ok("POST", "/project", {"key": "acme"})
    await stack.ok("POST", "/project/acme/bindings", {"repository": "main/npm", "pattern": "@acme"})
    await stack.add_user("ada")
    await stack.ok("POST", "/project/acme/members", {"user": "ada", "role": "maintainer"})
    stage = await stack.ok("POST", "/repository/main%2Fnpm/stages", {}, who="ada")
    where = stage["url"].partition("/repositories/")[2]
    raw, headers = make_publish("@acme/demo", "1.0.0"), {"Content-Type": "application/json"}
    path = f"/repositories/{where}/@acme%2fdemo"
    assert (await stack.call("PUT", path, raw=raw, headers=headers, who="ada")).status == 201
    shown: Any = await stack.ok("GET", f"/stages/{stage['id']}", who="ada")
    assert (shown["items"], shown["may_approve"]) == (1, True)
    await stack.ok("POST", f"/stages/{stage['id']}/approve", {}, who="ada")
    assert await names(stack, "/repository/main%2Fnpm/packages", "ada") == ["@acme/demo"]
