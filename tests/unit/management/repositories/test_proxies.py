"""Proxy and virtual repositories in the management API."""

from __future__ import annotations

import json
from typing import Any

import pytest
import pytest_twisted
from attrs import evolve

from pkgrepo.formats.npm.configuration import HostedConfig as NpmHosted
from pkgrepo.formats.npm.format import npm
from pkgrepo.formats.python.configuration import HostedConfig as PythonHosted
from pkgrepo.formats.python.format import python
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.definitions import authorization_of
from pkgrepo.proxy.route_schema import default_name
from pkgrepo.proxy.schema import ProxyConfig, VirtualConfig
from pkgrepo.repositories.configuration import Configurations
from pkgrepo.storage.catalog.server.settings import bump_config_serial
from tests.support.memory_server import Stack

URL = "https://upstream.example/simple"
ROUTE = {"url": URL, "name": default_name(URL), "priority": 0}
PROXY = {"type": "Proxy", "proxy": {"routes": [ROUTE]}}
BASIC = {"username": "ci", "password": "hidden-word"}
MASKED = {"username": "ci", "password": "***"}


@pytest_twisted.async_yield_fixture
async def stack(make_stack: Any) -> Any:
    """A server whose formats serve all types, whatever the present version of each does."""
    made = await make_stack()
    formats = made.assembly.core.formats
    every = Configurations("Python", PythonHosted | ProxyConfig | VirtualConfig)
    formats["python"] = evolve(python(), configurations=every)
    every = Configurations("npm", NpmHosted | ProxyConfig | VirtualConfig)
    formats["npm"] = evolve(npm(), configurations=every)
    yield made


def routes(*given: Any) -> dict[str, Any]:
    return {"type": "Proxy", "proxy": {"routes": list(given)}}


def authorization(stack: Stack, name: str) -> str | None:
    """What the server would send to the only upstream."""
    repository = stack.assembly.core.registry.find("main", name)
    assert repository is not None
    return authorization_of(proxy_config_of(repository).routes[0], stack.assembly.core.secrets)


@pytest.mark.parametrize(
    "config",
    [
        PROXY,
        routes({"url": "https://a.example/", "name": "main", "priority": 10}, ROUTE),
        {**PROXY, "cache_ttl": "Default", "cache": {"negative_ttl": 60, "max_bytes": 10**10}},
        {**PROXY, "policy": {"minimum_release_age": {"days": 7, "exempt": ["acme-*"]}, "reserved_names": ["acme-*"]}},
    ],
)
async def test_what_is_written_of_a_proxy_is_read_byte_for_byte(stack: Stack, config: dict[str, Any]) -> None:
    made = await stack.add_repository("mirror", config=config)
    assert (made["type"], made["repository_kind"]) == ("Proxy", "Proxy")
    path = f"/repository/{made['id']}/config"
    read = await stack.api("GET", path)
    assert read.json == config
    again = await stack.api("PUT", path, raw=read.body, headers={"If-Match": read.headers["etag"]})
    assert (again.status, again.body) == (200, read.body)
    assert await stack.audited(action="repository.configure") == []


async def test_every_form_of_an_upstream_is_stored_as_a_route(stack: Stack) -> None:
    made = await stack.add_repository("mirror", config={"type": "Proxy", "config": {"upstream_url": URL}})
    path = f"/repository/{made['id']}/config"
    assert await stack.ok("GET", path) == PROXY
    assert await stack.ok("PUT", path, routes(URL)) == PROXY
    assert await stack.ok("GET", f"{path}/proxy") == {"routes": [ROUTE]}
    assert await stack.ok("GET", f"{path}/config") is None
    assert await stack.ok("PUT", f"{path}/config", {"upstream_url": "https://b.example"}) is None
    assert (await stack.ok("GET", f"{path}/proxy"))["routes"][0]["name"] == default_name("https://b.example")
    assert (await stack.api("PUT", f"{path}/proxy", raw=b"null")).pointer == ""
    await stack.ok("PUT", path, PROXY)
    assert await stack.ok("PUT", f"{path}/cache_ttl", "1h") == "1h"
    assert await stack.ok("GET", path) == {**PROXY, "cache_ttl": "1h"}
    listed = await stack.ok("GET", "/repository?type=proxy")
    assert [each["name"] for each in listed["items"]] == ["mirror"]


async def test_the_type_of_a_repository_is_not_changed(stack: Stack) -> None:
    hosted = await stack.add_repository()
    mirror = await stack.add_repository("mirror", config=PROXY)
    every = await stack.add_repository("all", config={"type": "Virtual", "members": ["main/py"]})
    configs = {"Hosted": {"type": "Hosted"}, "Proxy": PROXY, "Virtual": {"type": "Virtual", "members": ["main/py"]}}
    for made in (hosted, mirror, every):
        for type_, config in configs.items():
            reply = await stack.api("PUT", f"/repository/{made['id']}/config", config)
            assert reply.status == (200 if type_ == made["type"] else 409), (made["type"], type_, reply.body)


# Credentials


async def test_a_secret_is_in_no_answer_no_audit_row_no_file_and_not_in_the_database(stack: Stack) -> None:
    config = routes({**ROUTE, "auth": BASIC}, {"url": URL, "name": "b", "auth": {"token": "hidden-word"}})
    made = await stack.ok(
        "POST", "/repository", {"name": "mirror", "storage": "main", "format": "python", "config": config}
    )
    path = f"/repository/{made['id']}"
    replies = [
        await stack.api("GET", path),
        await stack.api("GET", f"{path}/config"),
        await stack.api("GET", f"{path}/config/proxy"),
        await stack.api("GET", f"{path}/configs"),
        await stack.api("PUT", f"{path}/config", {**config, "page": "x"}),
        await stack.api("PUT", f"{path}/config/proxy", config["proxy"]),
        await stack.api("PUT", f"{path}/config/proxy", {"routes": [{**ROUTE, "auth": {**BASIC, "x": "hidden-word"}}]}),
        await stack.api("PUT", f"{path}/config/proxy", {"routes": [{"url": "https://ci:hidden-word@a.example"}]}),
        await stack.api("POST", "/repository/config/python/validate", config),
        await stack.api("GET", "/audit?limit=1000"),
        await stack.api("GET", "/repository?include_usage=true"),
    ]
    assert [each.status for each in replies] == [200, 200, 200, 200, 200, 200, 422, 422, 200, 200, 200]
    for reply in replies:
        assert b"hidden-word" not in reply.body
    assert replies[1].json["proxy"]["routes"][0]["auth"] == MASKED
    assert replies[1].json["proxy"]["routes"][1]["auth"] == {"token": "***"}
    core = stack.assembly.core
    core.follower.notify()
    await core.wait_idle()
    for file in stack.folder.rglob("*"):
        assert not file.is_file() or b"hidden-word" not in file.read_bytes(), file
    assert authorization(stack, "mirror") == "Basic Y2k6aGlkZGVuLXdvcmQ="


async def test_a_masked_secret_sent_back_keeps_the_stored_one(stack: Stack) -> None:
    made = await stack.add_repository("mirror", config=routes({**ROUTE, "auth": BASIC}))
    path = f"/repository/{made['id']}/config"
    before = authorization(stack, "mirror")
    read = await stack.ok("GET", path)
    assert await stack.ok("PUT", path, read) == read
    assert await stack.audited(action="repository.configure") == []
    await stack.ok("PUT", f"{path}/cache_ttl", 60)
    await stack.ok("PUT", path, {**read, "page": "# Mirror"})
    moved = {**ROUTE, "url": "https://upstream.example/other", "auth": MASKED}
    await stack.ok("PUT", f"{path}/proxy", {"routes": [moved]})
    assert authorization(stack, "mirror") == before
    await stack.ok("PUT", f"{path}/proxy", {"routes": [{**moved, "auth": {**BASIC, "password": "new"}}]})
    assert authorization(stack, "mirror") == "Basic Y2k6bmV3"
    changed = await stack.audited(action="repository.configure")
    assert changed[0]["detail"]["changed"] == ["proxy"]
    assert changed[0]["detail"]["after"]["proxy"]["routes"][0]["auth"] == MASKED


async def test_an_editor_cannot_have_the_stored_secret_sent_to_another_server(stack: Stack) -> None:
    made = await stack.add_repository("mirror", config=routes({**ROUTE, "auth": BASIC}))
    await stack.add_user("editor")
    await stack.grant("editor", "main/mirror", "read", "edit")
    path = f"/repository/{made['id']}/config/proxy"
    for url in ("https://evil.example/simple", "http://upstream.example/simple", "https://upstream.example:8443/"):
        reply = await stack.api("PUT", path, {"routes": [{**ROUTE, "url": url, "auth": MASKED}]}, who="editor")
        assert (reply.status, reply.pointer) == (422, "/routes/0/auth/password")
    assert authorization(stack, "mirror") == "Basic Y2k6aGlkZGVuLXdvcmQ="


async def test_only_system_managers_name_files_of_the_server(stack: Stack) -> None:
    made = await stack.add_repository("mirror", config=PROXY)
    await stack.add_user("editor")
    await stack.grant("editor", "main/mirror", "read", "edit")
    path = f"/repository/{made['id']}/config/proxy"
    for file in ("/etc/ssl/private.pem", "/etc/hostname", "/nothing"):
        reply = await stack.api("PUT", path, {"routes": [{**ROUTE, "ca_file": file}]}, who="editor")
        assert reply.status == 403
        assert reply.json["detail"].startswith("only system managers and admins may set ca_file")
    await stack.ok("PUT", path, {"routes": [{**ROUTE, "ca_file": "/etc/ssl/ours.pem"}]})
    both = [{**ROUTE, "ca_file": "/etc/ssl/ours.pem"}, {"url": "https://b.example", "ca_file": "/etc/ssl/ours.pem"}]
    await stack.ok("PUT", path, {"routes": both}, who="editor")
    await stack.ok("PUT", path, {"routes": [ROUTE]}, who="editor")
    assert (await stack.api("PUT", path, {"routes": both}, who="editor")).status == 403


# Members


async def test_members_are_paths_outside_and_survive_a_new_name(stack: Stack) -> None:
    one = await stack.add_repository("one")
    await stack.add_repository("mirror", config=PROXY)
    config = {
        "type": "Virtual",
        "members": ["MAIN/One", "main/mirror"],
        "publish_to": "main/one",
        "resolution": "merge",
    }
    made = await stack.add_repository("all", config=config)
    path = f"/repository/{made['id']}"
    shown = {**config, "members": ["main/one", "main/mirror"]}
    assert await stack.ok("GET", f"{path}/config") == shown
    assert await stack.ok("PUT", f"{path}/config", {**shown, "members": [one["id"], "main/mirror"]}) == shown
    assert await stack.audited(action="repository.configure") == []
    listed = await stack.ok("GET", f"{path}/members")
    assert [(each["repository"], each["type"], each["id"] == one["id"]) for each in listed["members"]] == [
        ("main/one", "Hosted", True),
        ("main/mirror", "Proxy", False),
    ]
    assert (listed["publish_to"], listed["resolution"]) == ("main/one", "merge")


async def test_members_are_replaced(stack: Stack) -> None:
    one, two = await stack.add_repository("one"), await stack.add_repository("two")
    made = await stack.add_repository("all", config={"type": "Virtual", "members": ["main/one"]})
    path = f"/repository/{made['id']}/members"
    reply = await stack.api("GET", path)
    back = await stack.api("PUT", path, raw=reply.body, headers={"If-Match": reply.headers["etag"]})
    assert back.body == reply.body
    changed = await stack.ok("PUT", path, {"members": ["main/two", one["id"]], "publish_to": "main/two"})
    assert [each["id"] for each in changed["members"]] == [two["id"], one["id"]]
    kept = await stack.ok("PUT", path, {"members": ["main/two"]})
    assert (kept["publish_to"], kept["resolution"]) == ("main/two", "first")
    (_, row) = await stack.audited(action="repository.configure")
    assert row["detail"]["before"]["members"] == ["main/one"]
    assert row["detail"]["after"]["members"] == ["main/two", "main/one"]
    stale = await stack.api("PUT", path, {"members": ["main/one"]}, headers={"If-Match": reply.headers["etag"]})
    assert stale.status == 412
    for body, pointer in (
        ({"members": []}, "/members"),
        ({"members": ["main/one", "main/three"]}, "/members/1"),
        ({"members": ["main/one"]}, "/publish_to"),
        ({"members": ["main/one", "main/two"], "resolution": "best"}, "/resolution"),
        ({"members": ["main/two", "main/all"]}, "/members/1"),
    ):
        reply = await stack.api("PUT", path, body)
        assert (reply.status, reply.pointer) == (422, pointer), reply.body
    assert (await stack.api("GET", f"/repository/{one['id']}/members")).status == 404
    assert (await stack.api("PUT", f"/repository/{one['id']}/members", {"members": []})).status == 404


async def test_a_new_virtual_repository_has_members_of_its_format(stack: Stack) -> None:
    await stack.add_repository("one")
    await stack.add_repository("js", format="npm")
    for members, pointer in ((["main/js"], "/config/members/0"), (["main/one", "x"], "/config/members/1")):
        body = {"name": "all", "storage": "main", "format": "python", "config": {"type": "Virtual", "members": members}}
        reply = await stack.api("POST", "/repository", body)
        assert (reply.status, reply.pointer) == (422, pointer)


async def test_an_editor_adds_only_members_that_they_may_read(stack: Stack) -> None:
    await stack.add_repository("one")
    await stack.add_repository("secret", visibility="private")
    made = await stack.add_repository("all", config={"type": "Virtual", "members": ["main/one"]})
    await stack.add_user("editor")
    await stack.grant("editor", "main/all", "read", "edit")
    path = f"/repository/{made['id']}/members"
    for name in ("main/secret", "main/nothing"):
        reply = await stack.api("PUT", path, {"members": ["main/one", name]}, who="editor")
        assert (reply.status, reply.pointer) == (422, "/members/1")
        assert reply.json["detail"].replace(name, "x") == "there is no repository 'x'; give its id, or storage/name"
    await stack.ok("PUT", path, {"members": ["main/one", "main/secret"]})
    kept = await stack.ok("PUT", path, {"members": ["main/secret", "main/one"]}, who="editor")
    assert [each["repository"] for each in kept["members"]] == ["main/secret", "main/one"]
    record = await stack.ok("GET", f"/repository/{made['id']}", who=None)
    assert "less visible than this repository: 1." in record["warnings"][0]
    assert (await stack.api("GET", path, who=None)).status == 401


async def test_a_member_that_becomes_private_behind_a_public_repository_is_warned_of(stack: Stack) -> None:
    one = await stack.add_repository("one")
    path = f"/repository/{one['id']}"
    assert (await stack.ok("PATCH", path, {"visibility": "private"}))["warnings"] == []
    await stack.add_repository("all", config={"type": "Virtual", "members": ["main/one"]})
    await stack.add_repository("closed", visibility="private", config={"type": "Virtual", "members": ["main/one"]})
    assert (await stack.ok("PATCH", path, {"visibility": "public"}))["warnings"] == []
    (warning,) = (await stack.ok("PATCH", path, {"visibility": "private"}))["warnings"]
    assert "of which it is a member: 1. Their readers get its packages, too." in warning
    await stack.ok("PATCH", "/repository/main%2Fall", {"visibility": "private"})
    assert (await stack.ok("GET", path))["warnings"] == []


async def test_a_member_is_not_deleted(stack: Stack) -> None:
    one = await stack.add_repository("one")
    made = await stack.add_repository("all", config={"type": "Virtual", "members": ["main/one"]})
    for query in ("confirm=one", "confirm=one&purge=true", "dry_run=true"):
        reply = await stack.api("DELETE", f"/repository/{one['id']}?{query}")
        assert reply.status == 409
        assert "a member of main/all" in reply.json["detail"]
    await stack.ok("DELETE", f"/repository/{made['id']}?confirm=all")
    await stack.ok("DELETE", f"/repository/{one['id']}?confirm=one")


# Content


async def test_clients_change_nothing_in_a_proxy_repository_and_managers_may_delete(stack: Stack) -> None:
    made = await stack.add_repository("mirror", config=PROXY)
    await stack.add_user("reader")
    upload = "/repositories/main/mirror/demo/1.0/demo-1.0.tar.gz"
    for who in ("admin", "reader", None):
        reply = await stack.call("PUT", upload, raw=b"x", who=who)
        assert reply.status == 405
        assert b"repository main/mirror is a proxy" in reply.body
    gone = await stack.api("DELETE", f"/repository/{made['id']}/packages", {"paths": ["demo"]})
    assert (gone.status, gone.json["missing"]) == (200, ["demo"])


async def test_a_file_that_is_deleted_from_a_cache_can_be_stored_again(stack: Stack) -> None:
    for name, burned in (("hosted", 1), ("cache", 0)):
        made = await stack.add_repository(name)
        filename = await stack.publish(f"main/{name}", "demo", "1.0", sdist=True)
        if name == "cache":
            await stack.assembly.core.catalog.write(_make_proxy, made["id"])
        path = f"packages/demo/1.0/{filename}"
        reply = await stack.ok("DELETE", f"/repository/{made['id']}/packages", {"paths": [path]})
        assert reply["deleted"] == [path]
        found = await stack.assembly.core.catalog.look(_count_tombstones, made["id"])
        assert found == burned


def _make_proxy(tx: Transaction, uid: str) -> None:
    tx.execute("UPDATE repository SET type = 'Proxy', config = ? WHERE uid = ?", (json.dumps(PROXY), uid))
    bump_config_serial(tx)


def _count_tombstones(r: Reader, uid: str) -> int:
    sql = "SELECT COUNT(*) FROM tombstone t JOIN repository r ON r.id = t.repository_id WHERE r.uid = ?"
    (count,) = r.one(sql, (uid,)) or (0,)
    return int(count)


# Descriptions


async def test_types_and_keys_are_described(stack: Stack) -> None:
    types = await stack.ok("GET", "/repository/types", who=None)
    (python,) = [each for each in types if each["name"] == "python"]
    assert python["types"] == ["Hosted", "Proxy", "Virtual"]
    assert {"proxy", "config", "cache", "cache_ttl", "members", "publish_to", "resolution"} <= set(
        python["config_keys"]
    )
    for key in python["config_keys"]:
        schema = await stack.ok("GET", f"/repository/config/{key}/schema?format=python", who=None)
        assert schema["$schema"]
        described = await stack.ok("GET", f"/repository/config/{key}/description?format=python", who=None)
        assert described["description"].endswith("."), key
    policy = await stack.ok("GET", "/repository/config/policy/schema?format=python", who=None)
    assert len(policy["anyOf"]) == 3  # of hosted, proxy and virtual repositories


@pytest.mark.parametrize(
    ("key", "value", "pointer"),
    [
        ("python", PROXY, None),
        ("python", {"type": "Virtual", "members": ["main/any"]}, None),
        ("python", {"type": "Proxy"}, "/proxy"),
        ("proxy", {"routes": [URL]}, None),
        ("proxy", {"routes": []}, "/routes"),
        ("config", {"upstream_url": URL}, None),
        ("config", {"upstream_url": "x"}, "/upstream_url"),
        ("cache_ttl", "5m", None),
        ("cache_ttl", "soon", ""),
        ("members", ["main/any"], None),
        ("members", [], ""),
    ],
)
async def test_a_configuration_is_checked_without_keeping_it(
    stack: Stack, key: str, value: Any, pointer: str | None
) -> None:
    found = await stack.ok("POST", f"/repository/config/{key}/validate?format=python", value)
    assert [each["pointer"] for each in found["errors"]] == ([] if pointer is None else [pointer])
    assert found["valid"] is (pointer is None)


async def test_a_token_for_the_server_alone_does_not_promote_what_it_may_not_read(stack: Stack) -> None:
    route = {"url": "https://there.example/repositories/main/a", "name": "there"}
    config = {"type": "Proxy", "proxy": {"routes": [route]}, "replicate": {}}
    await stack.add_repository("copy", visibility="private", config=config)
    given = {"name": "server", "scopes": ["system", "api:read", "api:write"]}
    token = (await stack.ok("POST", "/user/token", given))["token"]
    place = "/repository/main%2Fcopy/replication/promote?dry_run=true"
    assert (await stack.api("POST", place, who=token)).status == 404
    assert (await stack.api("POST", place)).status in (200, 202)
