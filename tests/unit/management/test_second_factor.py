"""The second factor of an account: set up, asked for everywhere, spent once, limited, required, removed."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from twisted.internet.defer import Deferred, gatherResults

from pkgrepo.auth.login.second_factors import STEP_S, make_code
from pkgrepo.storage.catalog.people.second_factors import find_second_factor
from pkgrepo.storage.catalog.people.users import find_user_by_name
from tests.support.memory_server import OTHER_PASSWORD, PASSWORD, Reply, Stack, running_stacks

BASE = "/user/second-factor"
PROOF = {"username": "bob", "password": OTHER_PASSWORD}


class Person:
    """Bob with an app: each code is of a later time step than the one before, since each counts once."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.secret = ""
        self.recovery: list[str] = []
        self._step = 0

    def code(self) -> str:
        """A code that counts and was not used yet; there are three of them at a time."""
        now = self.stack.assembly.core.clock.now_ms() // 1000 // STEP_S
        self._step = max(now - 1, self._step + 1)
        return make_code(self.secret, self._step)

    async def enrol(self) -> None:
        begun = await self.stack.ok("POST", BASE, PROOF, who=None)
        self.secret = begun["secret"]
        assert f"secret={self.secret}&issuer=pkgrepo" in begun["uri"]
        confirmed = await self.stack.ok("POST", f"{BASE}/confirm", self.confirmation(begun["ticket"]), who=None)
        self.recovery = confirmed["codes"]

    def confirmation(self, ticket: str) -> dict[str, str]:
        return {"ticket": ticket, "code": self.code()}

    async def whoami(self, code: str = "", field: str = "OTP") -> Reply:
        return await self.stack.api("GET", "/user/whoami", who="bob", headers={field: code} if code else {})


async def make_bob(stack: Stack, *, enrolled: bool = True) -> Person:
    await stack.add_user("bob")
    bob = Person(stack)
    if enrolled:
        await bob.enrol()
    return bob


async def test_a_password_needs_a_code_once_the_factor_is_confirmed(stack: Stack) -> None:
    bob = await make_bob(stack, enrolled=False)
    token, before = await stack.token("bob"), await stack.bearer("bob")
    begun = await stack.ok("POST", BASE, PROOF, who=None)
    assert (await bob.whoami()).status == 200
    wrong = {"ticket": begun["ticket"], "code": "000000"}
    assert (await stack.api("POST", f"{BASE}/confirm", wrong, who=None)).status == 401
    assert (await stack.api("POST", f"{BASE}/confirm", {**wrong, "ticket": "v1.x"}, who=None)).status == 409
    await bob.enrol()
    refused = await bob.whoami()
    assert (refused.status, refused.headers["www-authenticate"]) == (401, "OTP")
    assert refused.json["type"].endswith("/problems/second_factor_required")
    assert (await stack.api("GET", "/user/whoami", who=token)).status == 200
    assert (await stack.api("GET", "/user/whoami", who=before)).status == 401
    code = bob.code()
    assert (await bob.whoami(code)).json["username"] == "bob"
    assert (await bob.whoami()).status == 401, "what a code was needed for is not cached"
    assert (await bob.whoami(code)).headers["www-authenticate"] != "OTP"
    assert (await bob.whoami(bob.code(), "npm-otp")).status == 200
    used = bob.recovery[0].upper()
    assert (await bob.whoami(used)).status == 200
    assert (await bob.whoami(used)).status == 401
    assert (await stack.ok("GET", "/users/bob"))["mfa"] is True
    assert (await stack.api("POST", BASE, PROOF, who=None)).status == 401
    assert (await stack.api("POST", BASE, {**PROOF, "code": bob.recovery[1]}, who=None)).status == 409
    stored: Any = await stack.assembly.core.catalog.look(find_user_by_name, "bob")
    factor: Any = await stack.assembly.core.catalog.look(find_second_factor, stored.id)
    assert bob.secret not in factor.secret
    assert len(factor.recovery) == 8
    rows = await stack.audited(object="bob")
    assert {"second_factor.begin", "second_factor.enable"} <= {each["action"] for each in rows}
    assert not any(secret in str(rows) for secret in (bob.secret, code, *bob.recovery))


async def test_a_code_counts_once_also_for_requests_at_the_same_time(stack: Stack) -> None:
    bob = await make_bob(stack)
    for code in (bob.code(), bob.recovery[0]):
        asked = [Deferred.fromCoroutine(bob.whoami(code)) for _ in range(4)]
        statuses = [each.status for each in await gatherResults(asked)]
        assert statuses.count(200) == 1, statuses
        await stack.ok("POST", "/users/bob/unlock")


async def test_codes_are_guessed_no_faster_than_passwords(stack: Stack) -> None:
    bob = await make_bob(stack)
    asked = [Deferred.fromCoroutine(bob.whoami(f"{number:06}")) for number in range(30)]
    statuses = [each.status for each in await gatherResults(asked)]
    assert statuses.count(401) <= 5
    assert statuses.count(429) == 30 - statuses.count(401)
    while (status := (await bob.whoami("000000")).status) != 429:
        assert status == 401
    # neither the right password without a code nor a right code resets anything
    assert (await bob.whoami()).status == 429
    assert (await bob.whoami(bob.code())).status == 429


async def test_every_way_in_asks_for_the_code(stack: Stack) -> None:
    await stack.add_repository("npm", format="npm")
    await stack.add_repository("gems", format="ruby")
    bob = await make_bob(stack)
    document = {"name": "bob", "password": OTHER_PASSWORD, "_id": "org.couchdb.user:bob"}
    npm = "/repositories/main/npm/-/user/org.couchdb.user:bob"
    form = f"grant_type=password&service=x&username=bob&password={quote(OTHER_PASSWORD)}".encode()
    asked = {
        "browser": await stack.call("POST", "/api/user/login", PROOF, who=None),
        "npm": await stack.call("PUT", npm, document, who=None),
        "gem": await stack.call("GET", "/repositories/main/gems/api/v1/api_key", who="bob"),
        "docker": await stack.call("GET", "/v2/token", who="bob"),
        "oauth": await stack.call("POST", "/v2/token", raw=form, who=None),
    }
    assert {name: each.status for name, each in asked.items()} == dict.fromkeys(asked, 401)
    assert asked["npm"].headers["www-authenticate"] == "OTP"
    assert asked["gem"].body.startswith(b"You have enabled multifactor authentication")
    made = await stack.call("PUT", npm, document, who=None, headers={"npm-otp": bob.code()})
    assert made.status == 201
    key = await stack.call("GET", "/repositories/main/gems/api/v1/api_key", who="bob", headers={"OTP": bob.code()})
    assert key.body.startswith(b"pkgr_")
    begun = await stack.call("POST", "/api/user/login", {**PROOF, "code": bob.recovery[0]}, who=None)
    assert begun.status == 200
    change = {"old_password": OTHER_PASSWORD, "new_password": f"{PASSWORD} other"}
    session = {"Cookie": begun.headers["set-cookie"].partition(";")[0], "X-CSRF": begun.json["csrf"]}
    path = "/api/user/change-password"
    assert (await stack.call("POST", path, change, who=None, headers=session)).status == 401
    changed = {**change, "code": bob.recovery[1]}
    assert (await stack.call("POST", path, changed, who=None, headers=session)).status == 204


async def test_a_request_that_is_identified_twice_needs_one_code(stack: Stack) -> None:
    await stack.add_repository("py", visibility="private")
    bob = await make_bob(stack)
    await stack.grant("bob", "main/py", "read", "write")
    path = "/repositories/main/py/simple/"
    assert (await stack.call("GET", path, who="bob")).status == 401
    assert (await stack.call("GET", path, who="bob", headers={"OTP": bob.code()})).status == 200
    assert (await stack.call("GET", path, who="bob")).status == 401


async def test_a_factor_is_renewed_and_removed_with_password_and_code_and_by_admins(stack: Stack) -> None:
    bob = await make_bob(stack)
    assert (await stack.api("POST", f"{BASE}/remove", PROOF, who=None)).status == 401
    fresh = await stack.ok("POST", f"{BASE}/recovery-codes", {**PROOF, "code": bob.recovery[0]}, who=None)
    assert (await bob.whoami(bob.recovery[1])).status == 401
    await stack.ok("POST", f"{BASE}/remove", {**PROOF, "code": fresh["codes"][0]}, who=None)
    assert (await bob.whoami()).status == 200
    await bob.enrol()
    await stack.add_user("eve")
    assert (await stack.api("DELETE", "/users/bob/second-factor", who="eve")).status == 403
    await stack.ok("DELETE", "/users/bob/second-factor")
    assert (await bob.whoami()).status == 200
    none = await stack.api("DELETE", "/users/bob/second-factor")
    assert (none.status, b"second factor of 'bob' does not exist" in none.body) == (404, True)
    [first, *_] = await stack.audited(action="second_factor.remove", outcome="ok")
    assert (first["actor"], first["object"]) == ("admin", "bob")


async def test_admins_need_a_factor_where_the_setting_says_so(tmp_path: Path) -> None:
    async with running_stacks(tmp_path) as make:
        stack = await make(auth__second_factor="admins")
        refused = await stack.api("GET", "/user/whoami")
        assert refused.json["type"].endswith("/problems/second_factor_missing")
        login = {"username": "admin", "password": PASSWORD}
        assert (await stack.call("POST", "/api/user/login", login, who=None)).status == 401
        begun = await stack.ok("POST", BASE, login, who=None)
        person = Person(stack)
        person.secret = begun["secret"]
        await stack.ok("POST", f"{BASE}/confirm", person.confirmation(begun["ticket"]), who=None)
        entered = await stack.call("POST", "/api/user/login", {**login, "code": person.code()}, who=None)
        session = {"Cookie": entered.headers["set-cookie"].partition(";")[0], "X-CSRF": entered.json["csrf"]}
        fields = {"username": "bob", "password": OTHER_PASSWORD}
        made = await stack.call("POST", "/api/users", fields, who=None, headers=session)
        assert made.status == 201
        stack.set_password("bob", OTHER_PASSWORD)
        assert (await stack.api("GET", "/user/whoami", who="bob")).status == 200
        promoted = await stack.call("PATCH", "/api/users/bob", {"user_manager": True}, who=None, headers=session)
        assert promoted.status == 200
        assert (await stack.api("GET", "/user/whoami", who="bob")).status == 401
        await stack.ok("POST", f"{BASE}/remove", {**login, "code": person.code()}, who=None)
        assert (await stack.call("GET", "/api/user/me", who=None, headers=session)).status == 401
