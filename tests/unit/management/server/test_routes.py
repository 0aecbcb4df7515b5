"""The description of the server, and its installation."""

from __future__ import annotations

from typing import Any

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
