"""Tokens of everyone: listed for admins, by last use, and revoked."""

from __future__ import annotations

from typing import Any

from pkgrepo.interfaces import Transaction
from pkgrepo.storage.catalog.people.tokens import list_working_tokens
from tests.support.memory_server import Stack

DAY_MS = 86_400_000


def age(tx: Transaction, name: str, days: int, now_ms: int) -> None:
    """Let a token be made, and used last, so many days ago."""
    at = now_ms - days * DAY_MS
    tx.execute("UPDATE token SET created_at = ?, last_used_at = ? WHERE name = ?", (at, at, name))


async def names(stack: Stack, query: str = "", **rest: Any) -> list[str]:
    return [each["name"] for each in (await stack.ok("GET", f"/token{query}", **rest))["items"]]


async def test_admins_see_whose_tokens_nobody_uses_and_revoke_them(stack: Stack) -> None:
    core = stack.assembly.core
    await stack.add_user("bob")
    await stack.add_user("eve", user_manager=True)
    for owner, name, days in (("bob", "old", 100), ("bob", "new", 1), ("admin", "root", 200)):
        await stack.token(owner, name=name)
        await core.catalog.write(age, name, days, core.clock.now_ms())
    await stack.token("bob", name="fresh")
    assert await names(stack) == ["fresh", "root", "old", "new"]
    assert await names(stack, "?unused_days=90") == ["root", "old"]
    assert await names(stack, "?unused_days=90&user=bob") == ["old"]
    assert await names(stack, "?unused_days=90&sort=-last_used_at&limit=1") == ["old"]
    assert (await stack.ok("GET", "/token?count=true&unused_days=90&limit=1"))["total"] == 2
    assert (await stack.api("GET", "/token?user=nobody")).status == 404
    assert (await stack.api("GET", "/token?unused_days=x")).status == 422
    assert (await stack.api("GET", "/token", who="eve")).status == 403
    found = {each["name"]: each for each in (await stack.ok("GET", "/token"))["items"]}
    assert (found["old"]["owner"], found["root"]["owner"]) == ("bob", "admin")
    assert (await stack.api("DELETE", f"/token/{found['root']['id']}", who="eve")).status == 403
    await stack.ok("DELETE", f"/token/{found['old']['id']}", who="eve")
    assert await names(stack, "?unused_days=90") == ["root"]
    assert (await stack.api("DELETE", "/token/none")).status == 404
    [row, *_] = await stack.audited(action="token.revoke", outcome="ok")
    assert (row["actor"], row["object"], row["detail"]) == ("eve", "old", {"owner": "bob"})


async def test_tokens_of_those_who_should_have_a_second_factor_are_found(stack: Stack) -> None:
    await stack.add_user("bob")
    await stack.add_user("eve", user_manager=True)
    await stack.ok("POST", "/users", {"username": "robot", "kind": "service"})
    for owner in ("bob", "eve", "admin"):
        await stack.token(owner, name=f"of {owner}")
    await stack.ok("POST", "/users/robot/token", {"name": "of robot"})
    wanted = "?without_second_factor=true&sort=name"
    assert await names(stack, wanted) == ["of admin", "of eve"]
    factor = "INSERT INTO second_factor (account_id, secret, confirmed_at) SELECT id, 'x', 1 FROM account WHERE key = ?"
    await stack.assembly.core.catalog.write(lambda tx: tx.execute(factor, ("eve",)))
    assert await names(stack, wanted) == ["of admin"]
    assert (await stack.ok("GET", f"/token{wanted}&count=true"))["total"] == 1
    core = stack.assembly.core
    everyone = await core.catalog.look(list_working_tokens, None, None, 1, core.clock.now_ms(), order="name")
    assert [each.name for each in everyone] == ["of admin", "of bob"]
