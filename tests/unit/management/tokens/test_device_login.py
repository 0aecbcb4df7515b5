"""Logins of programs that a person approves in a browser."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from pkgrepo.storage.catalog.people.login_requests import MOST_OF_ADDRESS
from tests.support.memory_server import Reply, Stack

BASE = "/user/login/device"


async def begin(stack: Stack, **fields: Any) -> Any:
    return await stack.ok("POST", BASE, {"name": "a program", **fields}, who=None)


async def fetch(stack: Stack, begun: Any, code: str = "") -> Reply:
    return await stack.api("POST", f"{BASE}/token", {"device_code": begun["device_code"], "code": code}, who=None)


async def error(stack: Stack, begun: Any, code: str = "") -> str:
    reply = await fetch(stack, begun, code)
    assert reply.status == 400
    return str(reply.json["error"])


async def decide(stack: Stack, begun: Any, *, approve: bool = True, who: str = "bob") -> Reply:
    body = {"user_code": begun["user_code"], "approve": approve}
    return await stack.api("POST", f"{BASE}/decision", body, who=who)


async def test_an_approved_login_gives_a_token_of_that_person_once(stack: Stack) -> None:
    await stack.add_user("bob")
    begun = await begin(stack, scopes=["api:read"], expires_in_days=3)
    assert await error(stack, begun) == "authorization_pending"
    typed = quote(begun["user_code"].lower().replace("-", " "))
    shown = await stack.ok("GET", f"{BASE}?user_code={typed}", who="bob")
    assert (shown["name"], shown["scopes"], shown["local"]) == ("a program", ["api:read"], False)
    assert (await decide(stack, begun)).json == {"redirect": None}
    made = (await fetch(stack, begun)).json
    assert (made["owner"], made["scopes"], made["repository_access"]) == ("bob", ["api:read"], "none")
    assert (await stack.ok("GET", "/user/me", who=made["token"]))["username"] == "bob"
    assert await error(stack, begun) == "expired_token"
    assert (await decide(stack, begun)).status == 404
    rows = await stack.audited(action="token.create")
    assert [(each["actor"], each["object"]) for each in rows] == [("bob", "a program")]
    assert (await stack.audited(action="login.approve"))[-1]["detail"]["approved"] is True


async def test_a_denied_login_gives_none(stack: Stack) -> None:
    await stack.add_user("bob")
    begun = await begin(stack)
    assert (await decide(stack, begun, approve=False)).status == 200
    assert await error(stack, begun) == "access_denied"
    assert await error(stack, begun) == "expired_token"


async def test_only_a_person_who_has_logged_in_approves(stack: Stack) -> None:
    await stack.add_user("bob")
    begun = await begin(stack)
    everything = ["api:read", "api:write", "users", "system", "metrics", "audit", "read", "write", "admin"]
    for who in (await stack.token("bob", scopes=everything), await stack.bearer("bob")):
        assert (await decide(stack, begun, who=who)).status == 403
    body = {"user_code": begun["user_code"], "approve": True}
    assert (await stack.api("POST", f"{BASE}/decision", body, who=None)).status == 401
    assert await error(stack, begun) == "authorization_pending"


async def test_what_came_back_to_the_port_of_the_program_is_needed(stack: Stack) -> None:
    await stack.add_user("bob")
    begun = await begin(stack, port=49152)
    redirect = (await decide(stack, begun)).json["redirect"]
    assert redirect.startswith("http://127.0.0.1:49152/?code=")
    assert await error(stack, begun) == "invalid_grant"
    assert await error(stack, begun, "x" * 43) == "invalid_grant"
    assert (await fetch(stack, begun, redirect.partition("=")[2])).status == 200


async def test_codes_cannot_be_guessed_and_only_so_many_wait(stack: Stack) -> None:
    await stack.add_user("bob")
    begun = await begin(stack)
    guesses = [letter * 8 for letter in "BCDFGH"]
    statuses = [(await stack.api("GET", f"{BASE}?user_code={each}", who="bob")).status for each in guesses]
    assert statuses == [404] * 5 + [429]
    assert (await decide(stack, begun)).status == 429
    assert (await stack.api("GET", f"{BASE}?user_code=short", who="bob")).status in (422, 429)
    for _ in range(MOST_OF_ADDRESS - 1):
        await begin(stack)
    refused = await stack.api("POST", BASE, {"name": "one more"}, who=None)
    assert (refused.status, refused.headers["retry-after"]) == (429, "60")


async def test_what_a_program_asks_for_is_checked_at_once(stack: Stack) -> None:
    for fields in (
        {"name": ""},
        {"scopes": ["everything"]},
        {"expires_in_days": 0},
        {"expires_in_days": 4000},
        {"port": 0},
        {"port": 70000},
    ):
        reply = await stack.api("POST", BASE, {"name": "x", **fields}, who=None)
        assert reply.status == 422, fields


async def test_an_account_that_was_switched_off_meanwhile_gets_none(stack: Stack) -> None:
    bob = await stack.add_user("bob")
    begun = await begin(stack)
    await decide(stack, begun)
    await stack.ok("PUT", f"/users/{bob['id']}/status", {"active": False})
    assert await error(stack, begun) == "expired_token"
