"""The description of the server, and its installation."""

from __future__ import annotations

import shutil
from typing import Any

from pkgrepo.errors import StorageFailed
from pkgrepo.management import health
from tests.support.memory_server import Stack

ADA = {"user": {"username": "ada", "password": "a fairly long secret", "name": "Ada"}}


async def test_everybody_may_read_the_description_of_the_server(stack: Stack) -> None:
    info = await stack.ok("GET", "/info", who=None)
    assert (info["name"], info["installed"]) == ("pkgrepo", True)
    assert "python" in [each["name"] for each in info["formats"]]
    assert info["limits"]["max_body"] == 2**20
    scopes = await stack.ok("GET", "/info/scopes", who=None)
    assert {each["name"] for each in scopes["actions"]} == {"read", "write", "overwrite", "delete", "edit", "admin"}
    for scope in scopes["scopes"]:
        assert (await stack.api("POST", "/user/token", {"name": "x", "scopes": [scope["name"]]})).status == 201


async def test_a_server_with_an_admin_is_not_installed_again(stack: Stack) -> None:
    assert (await stack.api("POST", "/install", ADA, who=None)).status == 404


async def test_with_open_install_the_first_admin_is_added_once(make_stack: Any) -> None:
    stack: Stack = await make_stack(compat__open_install=True, with_admin=False)
    assert (await stack.ok("GET", "/info", who=None))["installed"] is False
    weak = {"user": {"username": "ada", "password": "short"}}
    assert (await stack.api("POST", "/install", weak, who=None)).status == 422
    assert (await stack.api("POST", "/install", ADA, who=None)).status == 204
    assert (await stack.api("POST", "/install", ADA, who=None)).status == 404
    assert (await stack.ok("GET", "/info", who=None))["installed"] is True
    stack.set_password("ada", ADA["user"]["password"])
    me = await stack.ok("GET", "/user/me", who="ada")
    assert (me["admin"], me["name"]) == (True, "Ada")


async def test_liveness_is_always_200(stack: Stack) -> None:
    for path in ("/healthz", "/health"):
        reply = await stack.call("GET", path, who=None)
        assert (reply.status, reply.json["status"]) == (200, "ok")
        assert reply.headers["cache-control"] == "no-store"


async def test_readiness_shows_admins_each_check(stack: Stack) -> None:
    reply = await stack.call("GET", "/readyz", who=None)
    assert (reply.status, reply.json) == (200, {"status": "ok", "checks": None})
    checked = (await stack.call("GET", "/readyz")).json["checks"]
    assert checked == {
        "catalog": "ok",
        "database": "ok",
        "storage main": "ok",
        "stored bytes": "ok",
        "readable layout": "ok",
        "searches": "ok",
        "webhooks": "ok",
        "advisories": "ok: not configured; malware is not looked for",
        "twins": "ok: not configured",
        "backup": "ok: not configured",
    }


async def test_a_full_disk_degrades_the_server(make_stack: Any) -> None:
    stack: Stack = await make_stack()
    total = shutil.disk_usage(stack.folder).total
    full: Stack = await make_stack(data__low_water=total * 2)
    reply = await full.call("GET", "/readyz", who="admin")
    assert (reply.status, reply.json["status"]) == (200, "degraded")
    for what in ("database", "storage main"):
        assert "bytes, or inodes for them, are free" in reply.json["checks"][what]
    assert (await full.call("GET", "/readyz", who=None)).json == {"status": "degraded", "checks": None}


async def test_a_catalog_that_does_not_answer_makes_the_server_unready(stack: Stack, monkeypatch: Any) -> None:
    def fail(_reader: Any) -> bool:
        raise StorageFailed("catalog")

    monkeypatch.setattr(health, "has_users", fail)
    reply = await stack.call("GET", "/readyz", who=None)
    assert (reply.status, reply.json["status"]) == (503, "unavailable")


async def test_a_storage_that_cannot_be_opened_makes_the_server_unready(stack: Stack) -> None:
    await stack.ok("POST", "/storage", {"name": "second"})
    storages = {each.name: each for each in stack.assembly.core.registry.storages()}
    stack.assembly.core.stores.forget(storages["second"].id)
    folder = stack.folder / "data" / "storages" / "second"
    shutil.rmtree(folder)
    folder.write_text("not a folder")
    reply = await stack.call("GET", "/readyz")
    assert reply.status == 503
    assert reply.json["checks"]["storage main"] == "ok"
    assert reply.json["checks"]["storage second"] != "ok"
    checked = await stack.ok("POST", "/storage/second/check")
    assert checked["ok"] is False
    assert checked["error"]
    assert (await stack.ok("GET", "/storage/second"))["usage"]["free_bytes"] is None
