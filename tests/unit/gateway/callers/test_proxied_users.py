"""Users whom a trusted reverse proxy has authenticated (auth.proxy_header)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pkgrepo.config.reading import ConfigError, read_config
from tests.support.memory_server import running_stacks

PROXY = "192.168.0.0/16"  # where connections in memory come from
USER = {"X-Forwarded-User": "Bob"}


async def test_a_trusted_proxy_names_the_user_and_nobody_else_does(tmp_path: Path) -> None:
    async with running_stacks(tmp_path) as make:
        for networks, header in (([PROXY], "X-Forwarded-User"), (["10.0.0.0/8"], "X-Forwarded-User"), ([PROXY], "")):
            stack = await make(server__trusted_proxies=networks, auth__proxy_header=header)
            await stack.add_user("bob")
            await stack.add_repository("py", visibility="private")
            await stack.grant("bob", "main/py", "read")
            await stack.publish("main/py", "demo", "1.0")
            counts = networks == [PROXY] and bool(header)
            me = await stack.api("GET", "/user/whoami", who=None, headers=USER)
            assert (me.status, me.json["username"]) == (200, "bob" if counts else "")
            assert (await stack.ok("GET", "/users/bob"))["last_login_at"] is not None or not counts
            page = "/repositories/main/py/simple/demo/"
            for _ in range(3):  # also from memory, beside anonymous refusals from there
                assert (await stack.call("GET", page, who=None)).status == 401
                assert (await stack.call("GET", page, who=None, headers=USER)).status == (200 if counts else 401)


async def test_other_credentials_and_unknown_users_and_other_sites(tmp_path: Path) -> None:
    async with running_stacks(tmp_path) as make:
        stack = await make(server__trusted_proxies=[PROXY], auth__proxy_header="x-forwarded-user")
        await stack.add_user("bob")
        await stack.ok("POST", "/users", {"username": "robot", "kind": "service"})
        assert (await stack.api("GET", "/user/whoami", headers=USER)).json["username"] == "admin"
        for name in ("nobody", "robot", "bob, admin", "bob\xe4", " "):
            reply = await stack.api("GET", "/user/whoami", who=None, headers={"X-Forwarded-User": name})
            assert reply.status == 401 or not reply.json["authenticated"], name
        change = {"name": "Bobby"}
        evil = {**USER, "Origin": "https://evil.example"}
        assert (await stack.api("PATCH", "/user/me", change, who=None, headers=evil)).status == 403
        assert (await stack.api("PATCH", "/user/me", change, who=None, headers=USER)).json["name"] == "Bobby"
        await stack.ok("PUT", "/users/bob/status", {"active": False})
        assert (await stack.api("GET", "/user/whoami", who=None, headers=USER)).status == 401


def test_the_setting_needs_proxies_and_a_field_that_clients_do_not_send() -> None:
    with pytest.raises(ConfigError, match="trusted_proxies"):
        read_config(overrides={"auth.proxy_header": "X-Forwarded-User"})
    with pytest.raises(ConfigError, match="themselves"):
        read_config(overrides={"auth.proxy_header": "Cookie", "server.trusted_proxies": ["10.0.0.0/8"]})
