"""The token service: it issues bearer tokens for Basic credentials or a form."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.inprocess_server import PASSWORD
from tests.support.memory_server import OTHER_PASSWORD, Stack


def claims(text: str) -> dict[str, Any]:
    payload = text.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return found


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", ["/api/auth/token", "/token"])
async def test_an_admins_token_opens_the_api(stack: Stack, method: str, path: str) -> None:
    reply = await stack.call(method, f"{path}?service=anything&account=admin")
    assert reply.status == 200
    assert reply.headers["cache-control"] == "no-store"
    answer = reply.json
    assert answer["token"] == answer["access_token"]
    assert answer["expires_in"] > 0
    assert answer["issued_at"].endswith("Z")
    assert (await stack.api("GET", "/users", who=answer["token"])).status == 200
    assert (await stack.audited(action="login"))[0]["object"] == "admin"


async def test_wrong_credentials_get_a_basic_challenge(stack: Stack) -> None:
    reply = await stack.api("POST", "/auth/token", headers={"Authorization": "Basic YWRtaW46d3Jvbmc="})
    assert reply.status == 401
    assert reply.headers["www-authenticate"].startswith("Basic ")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", ["/api/auth/token", "/token"])
async def test_basic_credentials_without_name_and_password_are_anonymous(stack: Stack, method: str, path: str) -> None:
    await stack.add_repository("open")
    query = "?scope=repository:main/open/app:push,pull"
    blank = {"Authorization": "basic  Og== "}
    reply = await stack.call(method, path + query, who=None, headers=blank)
    assert (reply.status, reply.json["scope"]) == (200, "repository:main/open/app:pull")
    for header in ("Basic Og", "Basic eDo=", "Basic Ong=", "Basic", "Bearer Og=="):  # no credentials, x:, :x, ...
        assert (await stack.call(method, path, who=None, headers={"Authorization": header})).status == 401
    assert (await stack.api("GET", "/users", who=None, headers=blank)).status == 401


async def test_credentials_may_come_as_a_form(stack: Stack) -> None:
    form = f"grant_type=password&service=x&username=admin&password={quote(PASSWORD)}"
    reply = await stack.api("POST", "/auth/token", raw=form.encode(), who=None)
    assert reply.status == 200
    assert (await stack.ok("GET", "/user/whoami", who=reply.json["token"]))["username"] == "admin"
    for wrong, status in (
        ("grant_type=password&username=admin&password=nonsense", 401),
        ("grant_type=refresh_token&refresh_token=x", 401),
        ("grant_type=client_credentials", 422),
        ("grant_type=password", 401),
    ):
        assert (await stack.api("POST", "/auth/token", raw=wrong.encode(), who=None)).status == status


async def test_scopes_are_cut_to_what_is_allowed(stack: Stack) -> None:
    await stack.add_repository("open")
    await stack.add_repository("shut", visibility="private")
    await stack.add_user("ada")
    await stack.grant("ada", "main/open", "read", "write")

    async def granted(who: str | None, *scopes: str) -> str:
        query = "&".join(f"scope={quote(scope)}" for scope in scopes)
        return str((await stack.ok("GET", f"/auth/token?{query}", who=who))["scope"])

    wanted = ("repository:main/open/app:push,pull", "repository:main/shut/app:pull")
    assert await granted(None, *wanted) == "repository:main/open/app:pull"
    assert await granted("ada", *wanted) == "repository:main/open/app:pull,push"
    assert await granted("ada", " ".join(wanted)) == "repository:main/open/app:pull,push"
    assert await granted("admin", *wanted) == "repository:main/open/app:pull,push repository:main/shut/app:pull"
    assert (
        await granted("admin", "repository:main/none/app:pull", "registry:catalog:*", "nonsense", "repository:") == ""
    )


async def test_a_scoped_bearer_token_opens_only_its_scopes(stack: Stack) -> None:
    await stack.add_repository("one", visibility="private")
    await stack.add_repository("two", visibility="private")
    await stack.add_user("ada", default_repository_actions=["read"])
    answer = await stack.ok("GET", "/auth/token?scope=repository:main/one/demo:pull", who="ada")
    token = answer["token"]
    assert [each["repository"] for each in claims(token)["access"]] == ["main/one"]
    await stack.publish("main/one", "demo", "1.0")
    assert (await stack.call("GET", "/repositories/main/one/simple/demo/", who=token)).status == 200
    assert (await stack.call("GET", "/repositories/main/two/simple/demo/", who=token)).status in (403, 404)
    for path in ("/package/main%2Fone/demo", "/repository/main%2Ftwo", "/user/me"):
        assert (await stack.api("GET", path, who=token)).status == 403
    await stack.ok("PUT", "/users/ada/password", {"password": "another one entirely"})
    assert (await stack.call("GET", "/repositories/main/one/simple/demo/", who=token)).status == 401


async def test_no_password_is_in_the_audit_of_a_login(stack: Stack) -> None:
    await stack.add_user("ada")
    await stack.ok("POST", "/auth/token", who="ada")
    lines = await stack.audited(action="login")
    assert [line["actor"] for line in lines] == ["ada"]
    assert OTHER_PASSWORD not in str(lines)
