"""One-time links with which people choose a password."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, gatherResults

from pkgrepo.storage.catalog.people.linked_identities import Person, ensure_linked
from tests.support.memory_server import Reply, Stack

BASE = "/user/password-link"
NEW = "a door that opens inwards"


async def make(stack: Stack, name: str, who: str = "admin", **fields: Any) -> Any:
    return await stack.ok("POST", f"/users/{name}/password-link", fields, who=who)


async def use(stack: Stack, link: Any, password: str = NEW) -> Reply:
    secret = link["url"].partition("#")[2]
    return await stack.api("POST", BASE, {"secret": secret, "password": password}, who=None)


async def test_an_invited_person_chooses_a_password_once(stack: Stack) -> None:
    await stack.ok("POST", "/users", {"username": "ann"})
    link = await make(stack, "ann")
    assert link["invitation"] is True
    assert link["url"].startswith("http://registry.example/ui/password-link#")
    assert (await use(stack, link, "short")).status == 422, "which does not use it up"
    assert (await use(stack, link)).json == {"username": "ann"}
    stack.set_password("ann", NEW)
    assert (await stack.ok("GET", "/user/me", who="ann"))["username"] == "ann"
    assert (await use(stack, link, "another password of ann")).status == 403
    rows = await stack.audited(action="account.password")
    assert [(each["object"], each["outcome"]) for each in rows if each["outcome"] == "ok"] == [("ann", "ok")]
    assert link["url"].partition("#")[2] not in str(await stack.audited())


async def test_a_link_ends_what_was_logged_in_before(stack: Stack) -> None:
    await stack.add_user("bob")
    token, bearer = await stack.token("bob"), await stack.bearer("bob")
    fields = {"username": "bob", "password": stack.password("bob")}
    session = (await stack.api("POST", "/user/login", fields, who=None)).headers["set-cookie"].partition(";")[0]
    link = await make(stack, "bob")
    assert link["invitation"] is False
    assert (await use(stack, link)).status == 200
    whoami = (await stack.call("GET", "/api/user/whoami", who=None, headers={"Cookie": session})).json
    assert whoami["authenticated"] is False
    assert (await stack.api("GET", "/user/me", who=bearer)).status == 401
    assert (await stack.api("GET", "/user/whoami", who=token)).json["username"] == "bob"


async def test_a_link_ends_with_another_one_and_with_a_change_of_the_password(stack: Stack) -> None:
    await stack.add_user("bob")
    first = await make(stack, "bob")
    second = await make(stack, "bob")
    assert (await use(stack, first)).status == 403
    await stack.ok("DELETE", "/users/bob/password-link")
    assert (await stack.api("DELETE", "/users/bob/password-link")).status == 404
    third = await make(stack, "bob")
    await stack.ok("PUT", "/users/bob/password", {"password": "set by the admin"})
    fourth = await make(stack, "bob")
    await stack.ok("PUT", "/users/bob/status", {"active": False})
    for link in (second, third, fourth):
        assert (await use(stack, link)).status == 403
    assert (await stack.api("POST", "/users/bob/password-link", {})).status == 409, "bob is switched off"


async def test_of_many_requests_at_once_one_counts(stack: Stack) -> None:
    await stack.add_user("bob")
    link = await make(stack, "bob")
    asked = [Deferred.fromCoroutine(use(stack, link, f"password number {each} of bob")) for each in range(8)]
    statuses = [each.status for each in await gatherResults(asked)]
    assert sorted(statuses) == [200] + [403] * 7


async def test_who_may_make_links_for_whom(stack: Stack) -> None:
    await stack.add_user("eve", user_manager=True)
    await stack.add_user("bob")
    await stack.ok("POST", "/users", {"username": "robot", "kind": "service"})
    assert (await make(stack, "bob", "eve"))["username"] == "bob"
    refused = {("admin", "eve"): 403, ("eve", "bob"): 403, ("robot", "admin"): 409, ("nobody", "admin"): 404}
    for (name, who), status in refused.items():
        reply = await stack.api("POST", f"/users/{name}/password-link", {}, who=who)
        assert reply.status == status, (name, who)
    reply = await stack.api("POST", "/users/bob/password-link", {}, who=await stack.bearer("eve"))
    assert reply.status == 403
    for hours in (0, 169):
        assert (await stack.api("POST", "/users/bob/password-link", {"hours": hours})).status == 422


async def test_a_link_expires(stack: Stack) -> None:
    await stack.add_user("bob")
    link = await make(stack, "bob", hours=1)
    command = "UPDATE one_time_link SET expires_at = 1"
    await stack.assembly.core.catalog.write(lambda tx: tx.execute(command, ()))
    assert (await use(stack, link)).status == 403


async def test_people_of_a_provider_get_no_password_beside_it(stack: Stack) -> None:
    person = Person("https://login.example", "1", "ida", "Ida", "ida@corp.example", (), admin=None)
    catalog, now_ms = stack.assembly.core.catalog, stack.assembly.core.clock.now_ms()
    await stack.ok("POST", "/users", {"username": "ida", "email": "ida@corp.example"})
    link = await make(stack, "ida")
    await catalog.write(ensure_linked, person, auto_create=False, link_by_email=True, refresh="", now_ms=now_ms)
    assert (await use(stack, link)).status == 409, "it was made before the first login there"
    assert (await stack.api("POST", "/users/ida/password-link", {})).status == 409
    await stack.ok("POST", "/users", {"username": "uma", "password": NEW, "user_manager": True})
    stack.set_password("uma", NEW)
    given = {"password": NEW}
    assert (await stack.api("PUT", "/users/ida/password", given, who="uma")).status == 409
    assert (await stack.api("PUT", "/users/ida/password", {"password": None}, who="uma")).status == 204
    methods = {"password": False, "providers": ["https://login.example"], "directories": []}
    assert await stack.ok("GET", "/users/ida/login-methods", who="uma") == methods
    narrow = await stack.token(scopes=["users"])
    assert (await stack.api("PUT", "/users/ida/password", given, who=narrow)).status == 409, "it has no admin's rights"
    assert (await stack.api("PUT", "/users/ida/password", given)).status == 204, "an admin has decided so"
    assert (await stack.api("PUT", "/users/ida/password", given, who="uma")).status == 204, "it is one of many now"
    stack.set_password("ida", NEW)
    assert await stack.ok("GET", "/user/me/login-methods", who="ida") == methods | {"password": True}
    assert (await stack.api("GET", "/users/uma/login-methods", who="ida")).status == 403
