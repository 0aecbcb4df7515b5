"""Users and their permissions."""

from __future__ import annotations

import re
from typing import Any

import pytest
from attrs import frozen

from pkgrepo.storage.catalog.people.logins import unlocks_after
from tests.support.memory_server import OTHER_PASSWORD, PASSWORD, Reply, Stack


async def test_a_user_is_made_and_shown_without_any_secret(stack: Stack) -> None:
    made = await stack.add_user("Ada", name="Ada L.", email="ada@x.example", default_repository_actions=["read"])
    for path in (f"/users/{made['id']}", "/users/ADA", f"/user-management/get/{made['id']}"):
        reply = await stack.api("GET", path)
        assert reply.json == made
        assert b"argon2" not in reply.body
    assert (made["username"], made["kind"], made["admin"]) == ("Ada", "person", False)
    assert made["default_repository_actions"] == ["read"]
    assert (await stack.ok("GET", "/user/whoami", who="Ada"))["username"] == "Ada"
    lines = await stack.audited(action="user.create")
    assert OTHER_PASSWORD not in str(lines)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"username": "ab"}, "/username"),
        ({"username": "-abc"}, "/username"),
        ({"username": "good", "password": "short"}, "/password"),
        ({"username": "good", "password": "password12345"}, "/password"),
        ({"username": "good", "email": "nobody"}, "/email"),
        ({"username": "good", "default_repository_actions": ["read", "fly"]}, "/default_repository_actions/1"),
        ({"username": "robot", "kind": "service", "password": OTHER_PASSWORD}, "/password"),
        ({"username": "good", "password_hash": "x"}, "/password_hash"),
    ],
)
async def test_a_wrong_user_is_refused(stack: Stack, body: dict[str, object], pointer: str) -> None:
    reply = await stack.api("POST", "/users", body)
    assert (reply.status, reply.pointer) == (422, pointer)


async def test_the_older_paths_do_the_same(stack: Stack) -> None:
    made = await stack.ok("POST", "/user-management/create", {"username": "old", "password": OTHER_PASSWORD})
    assert (await stack.ok("GET", "/user-management/is-taken?username=OLD"))["taken"] is True
    assert (await stack.ok("GET", "/user-management/is-taken?username=new"))["taken"] is False
    listed = (await stack.ok("GET", "/user-management/list"))["items"]
    assert [each["username"] for each in listed] == ["admin", "old"]
    changed = await stack.ok("PUT", f"/user-management/update/{made['id']}", {"name": "Older"})
    assert changed["name"] == "Older"
    path = f"/user-management/update/{made['id']}"
    assert (await stack.ok("PUT", f"{path}/status", {"active": False}))["active"] is False
    assert (await stack.ok("PUT", f"{path}/permissions", {"default_repository_actions": ["read"]}))[
        "default_repository_actions"
    ] == ["read"]
    assert await stack.ok("PUT", f"{path}/password", {"password": "a completely new one"}) is None
    assert await stack.ok("DELETE", f"/user-management/delete/{made['id']}") is None
    assert (await stack.api("GET", f"/users/{made['id']}")).status == 404


async def test_users_come_in_pages_and_can_be_searched(stack: Stack) -> None:
    for name in ("carol", "alice", "bob"):
        await stack.add_user(name)
    first = await stack.ok("GET", "/users?limit=2&count=true")
    assert ([each["username"] for each in first["items"]], first["total"]) == (["admin", "alice"], 4)
    second = await stack.ok("GET", f"/users?limit=2&cursor={first['next']}")
    assert ([each["username"] for each in second["items"]], second["next"]) == (["bob", "carol"], None)
    found = await stack.ok("GET", "/users?q=LIC&count=1")
    assert ([each["username"] for each in found["items"]], found["total"]) == (["alice"], 1)


async def test_grants_are_set_as_a_whole(stack: Stack) -> None:
    one, two = await stack.add_repository("one"), await stack.add_repository("two", visibility="private")
    await stack.add_user("ada")
    path = "/users/ada/permissions"
    body = {
        "repositories": [
            {"repository": one["id"], "actions": ["write", "Read"]},
            {"repository": "main/two", "actions": []},
        ]
    }
    given = await stack.ok("PUT", path, body)
    assert [(each["repository"], each["actions"], each["via"]) for each in given["repositories"]] == [
        ("main/one", ["read", "write"], "user"),
        ("main/two", [], "user"),
    ]
    assert await stack.ok("GET", "/user/me/permissions", who="ada") == given
    fewer = await stack.ok("PUT", path, {"repositories": [{"repository": two["id"], "actions": ["read"]}]})
    assert [(each["repository"], each["actions"]) for each in fewer["repositories"]] == [("main/two", ["read"])]
    untouched = await stack.ok("PUT", path, {"default_repository_actions": ["read"]})
    assert untouched["repositories"] == fewer["repositories"]
    etag = (await stack.api("GET", path)).headers["etag"]
    await stack.ok("PUT", path, {"repositories": []}, headers={"If-Match": etag})
    assert (await stack.api("PUT", path, {"repositories": []}, headers={"If-Match": etag})).status == 412


@pytest.mark.parametrize(
    ("grant", "pointer"),
    [
        ({"repository": "main/none", "actions": ["read"]}, "/repositories/0/repository"),
        ({"repository": "main/py", "actions": ["fly"]}, "/repositories/0/actions/0"),
        ({"repository": "main/py"}, "/repositories/0/actions"),
    ],
)
async def test_a_wrong_grant_changes_nothing(stack: Stack, grant: dict[str, object], pointer: str) -> None:
    await stack.add_repository()
    await stack.add_user("ada")
    reply = await stack.api("PUT", "/users/ada/permissions", {"repositories": [grant]})
    assert (reply.status, reply.pointer) == (422, pointer)
    assert (await stack.ok("GET", "/users/ada/permissions"))["repositories"] == []


async def test_user_managers_set_no_flags_and_change_no_admin(stack: Stack) -> None:
    await stack.add_user("boss", user_manager=True)
    await stack.add_user("keeper", system_manager=True)
    plain = await stack.add_user("plain")
    assert (await stack.api("POST", "/users", {"username": "evil", "admin": True}, who="boss")).status == 403
    assert (await stack.api("POST", "/users", {"username": "fine"}, who="boss")).status == 201
    for flag in ("admin", "user_manager", "system_manager"):
        assert (await stack.api("PATCH", "/users/plain", {flag: True}, who="boss")).status == 403
        assert (
            await stack.api("PUT", "/users/boss/permissions", {flag: flag != "user_manager"}, who="boss")
        ).status == 403
    for name in ("admin", "keeper"):
        for method, suffix, body in (
            ("PATCH", "", {"name": "x"}),
            ("DELETE", "", None),
            ("PUT", "/password", {"password": "my own choice now"}),
            ("PUT", "/status", {"active": False}),
            ("PUT", "/permissions", {"repositories": []}),
        ):
            assert (await stack.api(method, f"/users/{name}{suffix}", body, who="boss")).status == 403
    assert (await stack.api("PATCH", f"/users/{plain['id']}", {"name": "P"}, who="boss")).status == 200
    assert (await stack.api("PATCH", "/users/plain", {"admin": False}, who="boss")).status == 200


async def test_a_token_with_the_scope_users_makes_no_admin(stack: Stack) -> None:
    await stack.add_user("ada")
    token = await stack.token(scopes=["users"])
    for method, path, body in (
        ("POST", "/users", {"username": "evil", "admin": True}),
        ("PATCH", "/users/ada", {"admin": True}),
        ("PUT", "/users/admin/password", {"password": "known to the thief"}),
    ):
        assert (await stack.api(method, path, body, who=token)).status == 403
    assert (await stack.api("PATCH", "/users/ada", {"name": "A"}, who=token)).status == 200
    bearer = await stack.bearer()
    assert (await stack.api("PATCH", "/users/ada", {"admin": True}, who=bearer)).status == 200


async def test_there_is_always_an_admin(stack: Stack) -> None:
    for method, suffix, body in (
        ("PATCH", "", {"admin": False}),
        ("PUT", "/status", {"active": False}),
        ("DELETE", "", None),
    ):
        assert (await stack.api(method, f"/users/admin{suffix}", body)).status == 409


async def test_an_inactive_user_is_refused(stack: Stack) -> None:
    await stack.add_user("ada")
    token = await stack.token("ada", scopes=["api:read"])
    bearer = await stack.bearer("ada")
    for who in ("ada", token):
        assert (await stack.api("GET", "/user/me", who=who)).status == 200
    await stack.ok("PUT", "/users/ada/status", {"active": False})
    for who in ("ada", token, bearer):
        assert (await stack.api("GET", "/user/me", who=who)).status == 401


async def test_a_password_is_changed_with_the_old_one(stack: Stack) -> None:
    await stack.add_user("ada")
    new = "entirely different words"
    wrong = await stack.api(
        "POST", "/user/change-password", {"old_password": "nonsense", "new_password": new}, who="ada"
    )
    assert wrong.status == 401
    weak = await stack.api(
        "POST", "/user/change-password", {"old_password": OTHER_PASSWORD, "new_password": "abc"}, who="ada"
    )
    assert weak.status == 422
    body = {"old_password": OTHER_PASSWORD, "new_password": new}
    token = await stack.token("ada", scopes=["api:read", "api:write"])
    assert (await stack.api("POST", "/user/change-password", body, who=token)).status == 403
    assert (await stack.api("POST", "/user/change-password", body, who="ada")).status == 204
    assert (await stack.api("GET", "/user/me", who="ada")).status == 401
    assert (await stack.api("GET", "/user/me", who=token)).status == 200
    lines = str(await stack.audited(actor="ada"))
    assert new not in lines
    assert OTHER_PASSWORD not in lines


async def test_people_change_their_name_and_nothing_more(stack: Stack) -> None:
    await stack.add_user("ada")
    assert (await stack.ok("PATCH", "/user/me", {"name": "Countess"}, who="ada"))["name"] == "Countess"
    assert (await stack.api("PATCH", "/user/me", {"admin": True}, who="ada")).status == 422


async def test_anybody_may_ask_who_they_are(stack: Stack) -> None:
    nobody = await stack.ok("GET", "/user/whoami", who=None)
    assert (nobody["authenticated"], nobody["via"]) == (False, "anonymous")
    token = await stack.token(scopes=["metrics"])
    somebody = await stack.ok("GET", "/user/whoami", who=token)
    assert (somebody["username"], somebody["via"], somebody["scopes"]) == ("admin", "token", ["metrics"])


async def test_users_cannot_deactivate_or_remove_themselves(stack: Stack) -> None:
    await stack.add_user("boss", admin=True)
    assert (await stack.api("DELETE", "/users/boss", who="boss")).status == 409
    assert (await stack.api("PUT", "/users/boss/status", {"active": False}, who="boss")).status == 409
    assert (await stack.api("DELETE", "/users/boss")).status == 204


async def test_a_service_has_tokens_and_no_password(stack: Stack) -> None:
    made = await stack.ok("POST", "/users", {"username": "robot", "kind": "service"})
    assert made["kind"] == "service"
    assert (await stack.api("PUT", "/users/robot/password", {"password": OTHER_PASSWORD})).status == 409


async def test_a_user_is_renamed_and_given_defaults(stack: Stack) -> None:
    await stack.add_user("ada")
    body = {"username": "Lovelace", "default_repository_actions": ["read"]}
    changed = await stack.ok("PATCH", "/users/ada", body)
    assert (changed["username"], changed["default_repository_actions"]) == ("Lovelace", ["read"])
    assert (await stack.api("PATCH", "/users/lovelace", {"username": "admin"})).status == 409
    (line,) = await stack.audited(action="user.update", outcome="ok")
    assert line["detail"] == {"username": "Lovelace", "default_actions": ["read"]}


async def test_only_user_managers_unlock_logins(stack: Stack) -> None:
    await stack.add_user("ada")
    await stack.add_user("boss", user_manager=True)
    assert (await stack.api("POST", "/users/ada/unlock", who="ada")).status == 403
    assert (await stack.api("POST", "/users/admin/unlock", who="boss")).status == 403
    assert (await stack.api("POST", "/users/nobody/unlock", who="boss")).status == 404
    assert (await stack.api("POST", "/users/ADA/unlock", who="boss")).status == 204
    found = stack.assembly.core.catalog.peek(unlocks_after, 0)
    assert [(each.account, each.address) for each in found] == [("ada", "")]
    assert len(await stack.audited(action="user.unlock")) >= 1


async def test_one_grant_is_set_and_removed_and_others_stay(stack: Stack) -> None:
    await stack.add_repository("py")
    await stack.add_repository("js")
    ada = await stack.add_user("ada")
    await stack.grant("ada", "main/js", "read")
    path = f"/users/{ada['id']}/permissions/main%2Fpy"
    found = await stack.ok("PUT", path, {"actions": ["read", "write"]})
    assert {each["repository"]: each["actions"] for each in found["repositories"]} == {
        "main/js": ["read"],
        "main/py": ["read", "write"],
    }
    [listed] = (await stack.ok("GET", "/permissions?q=ada"))["items"]
    assert (listed["username"], listed["repositories"]) == ("ada", found["repositories"])
    found = await stack.ok("DELETE", path)
    assert [each["repository"] for each in found["repositories"]] == ["main/js"]
    assert (await stack.api("PUT", path, {"actions": ["fly"]})).status == 422
    assert (await stack.api("PUT", "/users/ada/permissions/main%2Fnone", {"actions": []})).status == 422


async def test_a_user_manager_gives_in_one_grant_only_what_they_hold(stack: Stack) -> None:
    await stack.add_repository("py", visibility="private")
    await stack.add_repository("secret", visibility="private")
    await stack.add_user("ada")
    await stack.add_user("max", user_manager=True)
    await stack.grant("max", "main/py", "read")
    path = "/users/ada/permissions/main%2Fpy"
    assert (await stack.api("PUT", path, {"actions": ["read"]}, who="max")).status == 200
    assert (await stack.api("PUT", path, {"actions": ["write"]}, who="max")).status == 403
    hidden = [
        await stack.api("PUT", f"/users/ada/permissions/main%2F{name}", {"actions": []}, who="max")
        for name in ("secret", "none")
    ]
    assert [each.status for each in hidden] == [422, 422]
    assert (await stack.api("GET", "/permissions", who="ada")).status == 403


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


async def test_people_who_have_not_logged_in_for_days_are_found(stack):
    await stack.add_user("bob")
    await stack.add_user("eve")
    await stack.ok("POST", "/users", {"username": "robot", "kind": "service"})
    catalog, now_ms = stack.assembly.core.catalog, stack.assembly.core.clock.now_ms()
    for name, made, logged_in in (("bob", 200, None), ("eve", 200, 5), ("robot", 200, None)):
        at = [now_ms - days * 86_400_000 if days else None for days in (made, logged_in)]
        command = "UPDATE account SET created_at = ?, last_login_at = ? WHERE key = ?"
        await catalog.write(lambda tx, command=command, at=at, name=name: tx.execute(command, (*at, name)))
    for days, found in ((90, ["bob"]), (3, ["bob", "eve"])):
        listed = await stack.ok("GET", f"/users?inactive_days={days}&count=true")
        assert ([each["username"] for each in listed["items"]], listed["total"]) == (found, len(found))
    services = await stack.ok("GET", "/users?inactive_days=90&kind=service")
    assert [each["username"] for each in services["items"]] == ["robot"]
    assert (await stack.api("GET", "/users?inactive_days=-1")).status == 422
