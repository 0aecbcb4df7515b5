"""Logins in a browser."""

from __future__ import annotations

import re
from typing import Any

from attrs import frozen

from tests.support.memory_server import OTHER_PASSWORD, PASSWORD, Reply, Stack


@frozen
class Browser:
    """A browser that has logged in."""

    stack: Stack
    cookie: str
    csrf: str

    async def call(self, method: str, path: str, body: Any = None, *, csrf: bool = True, **headers: str) -> Reply:
        fields = {"Cookie": self.cookie, **headers} | ({"X-CSRF": self.csrf} if csrf else {})
        return await self.stack.call(method, path, body, who=None, headers=fields)

    async def who(self) -> str:
        return str((await self.call("GET", "/api/user/whoami")).json["username"])


async def log_in(stack: Stack, username: str = "admin", password: str = PASSWORD) -> Browser:
    reply = await stack.api("POST", "/user/login", {"username": username, "password": password}, who=None)
    assert reply.status == 200, reply.body
    return Browser(stack, reply.headers["set-cookie"].partition(";")[0], reply.json["csrf"])


async def test_a_login_sets_a_cookie_that_scripts_and_other_sites_cannot_use(stack: Stack) -> None:
    reply = await stack.api("POST", "/user/login", {"username": "admin", "password": PASSWORD}, who=None)
    cookie = reply.headers["set-cookie"]
    assert re.fullmatch(r"pkgrepo_session=[\w-]{43}; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax", cookie)
    assert cookie.split("=")[1].partition(";")[0] not in str(await stack.audited(action="login"))


async def test_a_session_reads_and_with_its_csrf_value_changes(stack: Stack) -> None:
    await stack.add_repository("py", visibility="private")
    await stack.publish("main/py", "demo", "1.0")
    browser = await log_in(stack)
    assert await browser.who() == "admin"
    assert (await browser.call("GET", "/repositories/main/py/simple/demo/")).status == 200
    new = {"name": "made", "storage": "main", "format": "npm"}
    assert (await browser.call("POST", "/api/repository", new, csrf=False)).status == 401
    assert (await browser.call("POST", "/api/repository", new, csrf=False, **{"X-CSRF": "0" * 64})).status == 401
    assert (await browser.call("POST", "/api/repository", new, Origin="https://evil.example")).status == 403
    assert (await browser.call("POST", "/api/repository", new)).status == 201


async def test_a_session_that_has_ended_is_anonymous(stack: Stack) -> None:
    await stack.add_user("ada")
    first, second, third = [await log_in(stack, "ada", OTHER_PASSWORD) for _ in range(3)]
    assert (await first.call("POST", "/api/user/logout")).status == 204
    assert await first.who() == ""
    listed = (await second.call("GET", "/api/user/sessions")).json
    assert [each["current"] for each in listed] in ([True, False], [False, True])
    assert (await second.call("DELETE", "/api/user/sessions")).status == 204
    assert [await each.who() for each in (second, third)] == ["ada", ""]
    await stack.ok("PUT", "/users/ada/password", {"password": "a completely new one"})
    assert await second.who() == ""


async def test_a_user_ends_only_own_sessions(stack: Stack) -> None:
    await stack.add_user("ada")
    admin, ada = await log_in(stack), await log_in(stack, "ada", OTHER_PASSWORD)
    [session] = (await admin.call("GET", "/api/user/sessions")).json
    for wrong in (session["id"], "x", "9" * 30, "-1"):
        assert (await ada.call("DELETE", f"/api/user/sessions/{wrong}")).status == 404
    assert (await admin.call("DELETE", f"/api/user/sessions/{session['id']}")).status == 204
    assert [await each.who() for each in (admin, ada)] == ["", "ada"]


async def test_only_passwords_begin_sessions(stack: Stack) -> None:
    token = await stack.token()
    for username, secret in (("admin", token), ("admin", "wrong"), ("nobody", "wrong"), (token, "x")):
        body = {"username": username, "password": secret}
        reply = await stack.api("POST", "/user/login", body, who=None)
        assert (reply.status, "set-cookie" in reply.headers) == (401, False)
