"""Quotas are set by the API, checked at the head of an upload, and refused in the words of each format."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from twisted.internet.defer import Deferred, gatherResults

from pkgrepo.errors import QuotaExceeded
from pkgrepo.interfaces import Reader
from pkgrepo.repositories.publish.room import FORM_SLACK
from pkgrepo.storage.catalog.rows import column
from tests.support.inprocess_server import until
from tests.support.memory_server import Reply, Stack
from tests.support.npm_packages import make_publish
from tests.support.python_packages import make_wheel

NO_LIMITS = {"bytes": None, "packages": None, "versions": None, "file_size": None}


def refusals(r: Reader) -> list[int]:
    return column(r, "SELECT COUNT(*) FROM event WHERE kind = 'quota.exceeded'")


async def upload(stack: Stack, name: str, version: str = "1.0") -> Reply:
    filename, data = make_wheel(name, version)
    return await stack.call("PUT", f"/repositories/main/py/{name}/{version}/{filename}", raw=data)


async def publish(stack: Stack, name: str, version: str = "1.0") -> None:
    assert (await upload(stack, name, version)).status == 201


async def test_a_quota_is_set_shown_and_removed(stack: Stack) -> None:
    await stack.add_repository("py")
    for path, kind, name in (
        ("/repository/main%2Fpy/quota", "repository", "main/py"),
        ("/storage/main/quota", "storage", "main"),
        ("/system/quota", "server", ""),
    ):
        shown = await stack.ok("GET", path)
        assert (shown["kind"], shown["name"], shown["limits"]) == (kind, name, NO_LIMITS)
        changed = await stack.ok("PATCH", path, {"bytes": 10_000_000, "versions": 7})
        assert changed["limits"] == {**NO_LIMITS, "bytes": 10_000_000, "versions": 7}
        changed = await stack.ok("PATCH", path, {"versions": None})
        assert changed["limits"] == {**NO_LIMITS, "bytes": 10_000_000}
        assert (await stack.api("PATCH", path, {"bytes": -1})).pointer == "/bytes"
    rows = await stack.audited(action="quota.update")
    assert {each["object"] for each in rows if each["outcome"] == "ok"} == {"main/py", "main", "server"}


async def test_the_quota_of_a_repository_is_also_a_field_of_it(stack: Stack) -> None:
    made = await stack.add_repository("py")
    path = f"/repository/{made['id']}"
    assert (await stack.ok("PATCH", path, {"quota": 5000}))["quota"] == 5000
    assert (await stack.ok("GET", path))["quota"] == 5000
    headers = {"If-Match": (await stack.api("GET", path)).headers["etag"]}
    both = await stack.api("PATCH", path, {"quota": {"packages": 3}, "description": "small"}, headers=headers)
    assert (both.status, both.json["quota"], both.json["description"]) == (200, 5000, "small")
    assert (await stack.ok("GET", f"{path}/quota"))["limits"] == {**NO_LIMITS, "bytes": 5000, "packages": 3}
    assert (await stack.ok("PATCH", path, {"quota": None}))["quota"] is None
    assert (await stack.ok("GET", f"{path}/quota"))["limits"] == NO_LIMITS
    assert (await stack.api("PATCH", path, {"quota": "much"})).status == 422


async def test_only_system_managers_set_quotas(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.add_user("ada")
    await stack.grant("ada", "main/py", "read", "write", "edit", "admin")
    for method, path, body in (
        ("PATCH", "/repository/main%2Fpy", {"quota": None}),
        ("PATCH", "/repository/main%2Fpy/quota", {"bytes": None}),
        ("GET", "/storage/main/quota", None),
        ("PATCH", "/storage/main/quota", {"bytes": None}),
        ("GET", "/system/quota", None),
        ("PATCH", "/system/quota", {"bytes": None}),
    ):
        assert (await stack.api(method, path, body, who="ada")).status == 403
    assert (await stack.api("GET", "/repository/main%2Fpy/quota", who="ada")).status == 200


async def test_what_would_exceed_a_quota_is_refused_and_a_removal_makes_room(stack: Stack) -> None:
    await stack.add_repository("py")
    await publish(stack, "one")
    quota = "/repository/main%2Fpy/quota"
    used = (await stack.ok("GET", quota))["usage"]
    assert (used["packages"], used["versions"]) == (1, 1)
    shown = await stack.ok("PATCH", quota, {"packages": 1})
    assert shown["nearly_used"] == ["packages"]
    await publish(stack, "one", "1.1")
    refused = await upload(stack, "two", "1.0")
    assert (refused.status, "allows 1 packages" in refused.body.decode()) == (403, True)
    await stack.ok("PATCH", quota, {"packages": None, "versions": 2})
    assert (await upload(stack, "one", "1.2")).status == 403
    assert (await stack.api("DELETE", "/package/main%2Fpy/one/versions/1.0")).status in (200, 204)
    assert (await upload(stack, "one", "1.2")).status == 201
    usage = (await stack.ok("GET", quota))["usage"]
    assert (usage["packages"], usage["versions"]) == (1, 2)


@pytest.mark.parametrize("path", ["/repository/main%2Fpy/quota", "/storage/main/quota", "/system/quota"])
async def test_bytes_are_checked_for_repository_storage_and_server(stack: Stack, path: str) -> None:
    await stack.add_repository("py")
    await publish(stack, "one")
    used = (await stack.ok("GET", path))["usage"]["bytes"]
    await stack.ok("PATCH", path, {"bytes": used + 100})
    refused = await upload(stack, "two", "1.0")
    assert (refused.status, f"allows {used + 100} bytes, {used} are used" in refused.body.decode()) == (403, True)
    assert (await stack.ok("GET", path))["usage"]["bytes"] == used
    assert (await upload(stack, "two")).status == 403
    await until(lambda: stack.assembly.core.catalog.peek(refusals) == [1])
    await stack.ok("PATCH", path, {"bytes": used + 100_000})
    assert (await upload(stack, "two", "1.0")).status == 201


async def test_files_may_have_a_greatest_size(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.ok("PATCH", "/storage/main/quota", {"file_size": 50})
    refused = await upload(stack, "one", "1.0")
    assert (refused.status, "allows files of at most 50 bytes" in refused.body.decode()) == (403, True)


async def test_parallel_uploads_do_not_exceed_a_quota(stack: Stack) -> None:
    await stack.add_repository("py")
    await publish(stack, "p0")
    quota = "/repository/main%2Fpy/quota"
    used = (await stack.ok("GET", quota))["usage"]["bytes"]
    await stack.ok("PATCH", quota, {"bytes": used * 3 + used // 2})
    uploads = [Deferred.fromCoroutine(upload(stack, f"p{number}", "1.0")) for number in range(1, 7)]
    statuses = [each.status for each in await gatherResults(uploads)]
    assert sorted(statuses) == [201, 201, 403, 403, 403, 403]
    assert (await stack.ok("GET", quota))["usage"]["bytes"] <= used * 3 + used // 2


async def test_what_is_announced_is_reserved_so_that_one_of_two_uploads_fits(stack: Stack) -> None:
    """Of a form, what it may have beside the file is not."""
    await stack.add_repository("py")
    await stack.ok("PATCH", "/repository/main%2Fpy/quota", {"bytes": 60_000})
    core = stack.assembly.core
    repository = core.registry.find("main", "py")
    assert repository is not None
    async with core.content.stage(repository) as first, core.content.stage(repository) as second:
        await first.room.begin(40_000)
        await second.room.begin(40_000, slack=FORM_SLACK)
        with pytest.raises(QuotaExceeded):
            await second.room.begin(40_000)
        await second.room.begin(20_000)


async def test_a_proxy_has_no_quota(stack: Stack) -> None:
    config = {"type": "Proxy", "proxy": {"routes": ["https://upstream.invalid/"]}}
    await stack.add_repository("far", config=config)
    assert (await stack.api("PATCH", "/repository/main%2Ffar/quota", {"bytes": 1})).status == 409
    assert (await stack.api("PATCH", "/repository/main%2Ffar", {"quota": 1})).status == 409


async def test_the_packages_of_a_project_fit_into_its_quota(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.ok("POST", "/project", {"key": "acme"})
    for pattern in ("acme-*", "tool"):
        await stack.ok("POST", "/project/acme/bindings", {"repository": "main/py", "pattern": pattern})
    assert (await stack.ok("GET", "/project/acme"))["usage_bytes"] is None
    await publish(stack, "other")
    await publish(stack, "acme-a")
    used = (await stack.ok("PATCH", "/project/acme", {"quota": 10**9}))["usage_bytes"]
    assert 0 < used < (await stack.ok("GET", "/repository/main%2Fpy/quota"))["usage"]["bytes"]
    await stack.ok("PATCH", "/project/acme", {"quota": used + 100})
    refused = await upload(stack, "tool")
    assert (refused.status, f"project acme is exceeded: it allows {used + 100} bytes" in refused.body.decode()) == (
        403,
        True,
    )
    assert (await stack.ok("GET", "/project/acme"))["usage_bytes"] == used
    await publish(stack, "unrelated")
    # a name that another project takes is not counted any more
    await stack.ok("POST", "/project", {"key": "second"})
    await stack.ok("POST", "/project/second/bindings", {"repository": "main/py", "pattern": "acme-a"})
    assert (await stack.ok("GET", "/project/acme"))["usage_bytes"] == 0
    await stack.ok("PATCH", "/project/acme", {"quota": None})
    await publish(stack, "tool")


async def test_images_are_counted_for_the_project_that_their_name_begins_with(stack: Stack) -> None:
    await stack.add_repository("images", format="docker")
    await stack.ok("POST", "/project", {"key": "acme", "quota": 100})
    data = b"x" * 200
    path = f"/v2/main/images/acme/app/blobs/uploads/?digest=sha256:{hashlib.sha256(data).hexdigest()}"
    refused = await stack.call("POST", path, raw=data)
    assert (refused.status, refused.json["errors"][0]["code"]) == (403, "DENIED")
    assert "project acme" in refused.json["errors"][0]["message"]
    assert (await stack.call("POST", path.replace("acme/app", "other/app"), raw=data)).status == 201
    await stack.ok("PATCH", "/project/acme", {"quota": 500})
    assert (await stack.call("POST", path, raw=data)).status == 201
    assert (await stack.ok("GET", "/project/acme"))["usage_bytes"] == 200


async def test_members_of_a_project_do_not_change_its_quota(stack: Stack) -> None:
    await stack.add_user("ada")
    await stack.ok("POST", "/project", {"key": "acme", "quota": 100})
    await stack.ok("POST", "/project/acme/members", {"user": "ada", "role": "owner"})
    assert (await stack.api("PATCH", "/project/acme", {"quota": None}, who="ada")).status == 403
    assert (await stack.api("PATCH", "/project/acme", {"name": "Acme", "quota": 100}, who="ada")).status == 200


async def test_projects_and_users_have_quotas_of_every_kind(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.ok("POST", "/project", {"key": "acme", "quota": {"versions": 9}})
    await stack.ok("POST", "/project/acme/bindings", {"repository": "main/py", "pattern": "acme-*"})
    await publish(stack, "acme-a")
    await publish(stack, "other")
    me = (await stack.ok("GET", "/user/me"))["username"]
    for path, name, packages in ((f"/users/{me}/quota", me, 2), ("/project/acme/quota", "acme", 1)):
        shown = await stack.ok("PATCH", path, {"packages": packages, "versions": None})
        assert (shown["name"], shown["limits"]) == (name, {**NO_LIMITS, "packages": packages})
        assert (shown["usage"]["packages"], shown["usage"]["versions"]) == (packages, packages)
        refused = await upload(stack, "acme-b")
        assert (refused.status, f"{name} is exceeded: it allows {packages} packages" in refused.body.decode()) == (
            403,
            True,
        )
        await publish(stack, "acme-a", f"2.{packages}")  # a further version is no further package
        await stack.ok("DELETE", f"/package/main%2Fpy/acme-a/versions/2.{packages}")
        await stack.ok("PATCH", path, {"packages": None, "file_size": 100})
        refused = await upload(stack, "acme-a", "3.0")
        assert (refused.status, f"{name} allows files of at most 100 bytes" in refused.body.decode()) == (403, True)
        await stack.ok("PATCH", path, {"file_size": None})
    assert (await stack.ok("GET", "/user/me/quota"))["usage"]["versions"] == 2
    listed = await stack.ok("PATCH", f"/users/{me}/quota", {"bytes": 10**9}) and await stack.ok("GET", "/system/quotas")
    assert (listed[-1]["kind"], listed[-1]["name"]) == ("user", me)


async def test_who_may_see_and_set_the_quotas_of_people_and_projects(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.ok("POST", "/project", {"key": "acme", "visibility": "public"})
    await stack.add_user("ada")
    for method, path, body, status in (
        ("GET", "/users/ada/quota", None, 403),
        ("PATCH", "/users/ada/quota", {"bytes": 1}, 403),
        ("GET", "/project/acme/quota", None, 403),
        ("PATCH", "/project/acme/quota", {"bytes": 1}, 403),
        ("GET", "/user/me/quota", None, 200),
    ):
        assert (await stack.api(method, path, body, who="ada")).status == status, path
    assert (await stack.api("GET", "/users/nobody/quota")).status == 404
    await stack.ok("PATCH", "/users/ada/quota", {"bytes": 5})
    assert (await stack.api("DELETE", "/users/ada")).status == 204
    assert [each["kind"] for each in await stack.ok("GET", "/system/quotas") if each["name"] == "ada"] == []


async def test_without_quotas_none_is_read_before_an_upload(stack: Stack) -> None:
    await stack.add_repository("py")
    registry = stack.assembly.core.registry
    assert not registry.limited
    await stack.ok("PATCH", "/system/quota", {"bytes": 10**9})
    assert registry.limited
    await stack.ok("PATCH", "/system/quota", {"bytes": None})
    assert not registry.limited


async def test_publishers_are_told_of_quotas_that_are_nearly_used(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.add_repository("node", format="npm")
    first = await upload(stack, "one")
    assert (first.status, first.headers.get("warning")) == (201, None)
    me = (await stack.ok("GET", "/user/me"))["username"]
    await stack.ok("PATCH", f"/users/{me}/quota", {"versions": 3})
    await stack.ok("PATCH", "/repository/main%2Fnode/quota", {"packages": 1})
    second = await upload(stack, "two")
    assert (second.status, second.headers.get("warning")) == (201, None)
    body = make_publish("demo", "1.0.0")
    third = await stack.call("PUT", "/repositories/main/node/demo", raw=body)
    assert (third.status, "npm-notice" in third.headers) == (201, False)
    kinds = stack.assembly.core.catalog.peek(lambda r: r.all("SELECT data FROM event WHERE kind = 'quota.warning'"))
    assert [msgspec.json.decode(data)["kind"] for (data,) in kinds] == ["repository", "user"]
    await stack.ok("PATCH", f"/users/{me}/quota", {"versions": 4})
    body = make_publish("demo", "1.1.0")
    fourth = await stack.call("PUT", "/repositories/main/node/demo", raw=body)
    assert fourth.headers["npm-notice"] == "repository main/node has used 100 % of its quota of packages"
    await stack.ok("PATCH", f"/users/{me}/quota", {"versions": 5})
    fifth = await upload(stack, "two", "2.0")
    assert fifth.headers["warning"] == '299 - "your account has used 80 % of its quota of versions"'
    assert (await upload(stack, "three")).headers.get("warning") is None  # it is refused, with a sentence of its own
