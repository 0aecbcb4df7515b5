"""Canary tokens: on every road on which a credential is read they are refused as a wrong token is, and reported."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_twisted
from attrs import frozen

from pkgrepo.auth.tokens import canaries
from pkgrepo.auth.tokens.text import hash_token, make_token
from pkgrepo.model import TokenKind
from pkgrepo.storage.catalog.people.tokens import find_token_by_hash
from tests.support.memory_server import Reply, Stack, running_stacks

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
CHANGING = {"date", "x-request-id"}  # fields of responses that no two have alike


@frozen
class Road:
    """A request with a token in one of its places; ``path`` is what the report names of it."""

    name: str
    method: str
    path: str
    headers: Callable[[str], Mapping[str, str]] = lambda _: {}
    body: Callable[[str], bytes] = lambda _: b""
    query: str = ""


def basic(name: str, secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()}


def bearer_of_a_pair(name: str, secret: str) -> dict[str, str]:
    return {"Authorization": basic(name, secret)["Authorization"].replace("Basic", "Bearer")}


def field(template: str) -> Callable[[str], Mapping[str, str]]:
    return lambda token: {"Authorization": template.format(token)}


def form(**fields: str) -> Callable[[str], bytes]:
    return lambda token: urlencode({name: value.format(token) for name, value in fields.items()}).encode()


def document(value: Mapping[str, Any]) -> Callable[[str], bytes]:
    return lambda token: json.dumps(value).replace("TOKEN", token).encode()


READS = {
    "npm": "/repositories/main/npm/demo",
    "python": "/repositories/main/python/simple/demo/",
    "cargo": "/repositories/main/cargo/config.json",
    "go": "/repositories/main/go/example.com/demo/@v/list",
    "helm": "/repositories/main/helm/index.yaml",
    "maven": "/repositories/main/maven/com/example/demo/maven-metadata.xml",
    "ruby": "/repositories/main/ruby/versions",
    "conda": "/repositories/main/conda/noarch/repodata.json",
    "raw": "/repositories/main/raw/file.txt",
    "docker": "/v2/main/docker/demo/tags/list",
    "api": "/api/user/me",
    "console": "/ui/",
    "badge": "/badge/main/npm/demo.svg",
    "feed": "/feed/main/npm.atom",
    "metrics": "/metrics",
    "readiness": "/readyz",
}
FORMATS = ("npm", "python", "cargo", "go", "helm", "maven", "ruby", "conda", "raw", "docker")
ROADS = [
    *(Road(f"bearer-{name}", "GET", path, field("Bearer {}")) for name, path in READS.items()),
    *(Road(f"basic-{name}", "GET", path, lambda token: basic("admin", token)) for name, path in READS.items()),
    Road("basic-token-user", "GET", READS["python"], lambda token: basic("__token__", token)),
    Road("basic-other-user", "GET", READS["python"], lambda token: basic("ann", token)),
    Road("basic-name-alone", "GET", READS["ruby"], lambda token: basic(token, "")),
    Road("bearer-of-a-pair", "GET", READS["maven"], lambda token: bearer_of_a_pair("admin", token)),
    Road("bare", "GET", READS["ruby"], field("{}")),
    Road("bare-cargo", "PUT", "/repositories/main/cargo/api/v1/crates/new", field("{}"), lambda _: b"x"),
    Road("scheme-token", "GET", READS["conda"], field("Token {}")),
    Road("scheme-of-anaconda", "GET", READS["conda"], field("token {}")),
    Road("two-fields", "POST", "/repositories/main/ruby/api/v1/gems", field("Basic eDp5, {}"), lambda _: b"x"),
    Road("gem-key", "GET", "/repositories/main/ruby/api/v1/api_key", lambda token: basic("admin", token)),
    Road("twine", "POST", "/repositories/main/python/", lambda token: basic("__token__", token), lambda _: b"x"),
    Road("npm-publish", "PUT", "/repositories/main/npm/demo", field("Bearer {}"), lambda _: b"{}"),
    Road("npm-whoami", "GET", "/repositories/main/npm/-/whoami", field("Bearer {}")),
    Road("npm-tokens", "GET", "/repositories/main/npm/-/npm/v1/tokens", field("Bearer {}")),
    Road(
        "npm-adduser",
        "PUT",
        "/repositories/main/npm/-/user/org.couchdb.user:admin",
        lambda _: JSON,
        document({"_id": "org.couchdb.user:admin", "name": "admin", "password": "TOKEN", "type": "user"}),
    ),
    Road("docker-ping", "GET", "/v2/", lambda token: basic("admin", token)),
    Road(
        "docker-exchange",
        "GET",
        "/api/auth/token",
        lambda token: basic("admin", token),
        query="?scope=repository:main/docker/demo:pull",
    ),
    Road(
        "docker-password",
        "POST",
        "/api/auth/token",
        lambda _: FORM,
        form(grant_type="password", username="admin", password="{}"),
    ),
    Road(
        "docker-refresh",
        "POST",
        "/api/auth/token",
        lambda _: FORM,
        form(grant_type="refresh_token", refresh_token="{}"),
    ),
    Road("docker-push", "POST", "/v2/main/docker/demo/blobs/uploads/", field("Bearer {}")),
    Road(
        "mvn-deploy",
        "PUT",
        "/repositories/main/maven/com/example/demo/1/demo-1.jar",
        lambda token: basic("ci", token),
        lambda _: b"x",
    ),
    Road("raw-put", "PUT", READS["raw"], field("Bearer {}"), lambda _: b"x"),
    Road("go-put", "PUT", "/repositories/main/go/example.com/demo/@v/v1.0.0.zip", field("Bearer {}"), lambda _: b"x"),
    Road("helm-push", "POST", "/repositories/main/helm/api/charts", field("Bearer {}"), lambda _: b"x"),
    Road("login", "POST", "/api/user/login", lambda _: JSON, document({"username": "admin", "password": "TOKEN"})),
    Road("console-login", "POST", "/ui/login", lambda _: FORM, form(username="admin", password="{}")),
    Road("new-token", "POST", "/api/user/token", field("Bearer {}"), document({"name": "more"})),
    Road("events", "GET", "/api/events", field("Bearer {}")),
]
# The address of a channel has the token: of it the report names what is left.
IN_PATHS = ("/t/{}/repositories/main/conda/noarch/repodata.json", "/repositories/main/conda/t/{}/noarch/repodata.json")


@pytest_twisted.async_yield_fixture(scope="module")
async def place(tmp_path_factory: Any) -> Any:
    """A server with a private repository of each format, and a canary of an admin."""
    async with running_stacks(tmp_path_factory.mktemp("canaries")) as make:
        stack = await make()
        for name in FORMATS:
            await stack.add_repository(name, format=name, visibility="private")
        await stack.add_user("ann")
        yield stack, await stack.token(name="left in a wiki", canary=True)


def alike(reply: Reply, token: str) -> tuple[Any, ...]:
    """What a client sees of a response, but for what no two have alike."""
    fields = sorted((name, value) for name, value in reply.headers.items() if name.lower() not in CHANGING)
    return reply.status, str(fields).replace(token, "TOKEN"), _without_ids(reply.body).replace(token.encode(), b"TOKEN")


def _without_ids(body: bytes) -> bytes:
    return re.sub(
        rb'"instance":"[^"]*"|, request [0-9a-f-]+|"challenge": "[^"]*"|name="ticket" value="[^"]*"', b"", body
    )


async def rung(stack: Stack) -> list[dict[str, Any]]:
    found = await stack.ok("GET", "/user/canary")
    return [each for each in found if each["name"] == "left in a wiki"]


def forget(stack: Stack) -> None:
    """As after a minute."""
    stack.assembly._identification.canaries._minute = 0


@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.name)
async def test_it_is_refused_as_a_wrong_token_is_and_reported(place: Any, road: Road, monkeypatch: Any) -> None:
    stack, canary = place
    wrong = make_token(TokenKind.PERSONAL)
    noted: list[tuple[Any, ...]] = []
    monkeypatch.setattr(stack.assembly._identification.authenticator, "_on_canary", lambda *given: noted.append(given))

    async def ask(token: str) -> tuple[Any, ...]:
        headers = {**road.headers(token), "User-Agent": "thief/1.0"}
        reply = await stack.call(road.method, road.path + road.query, raw=road.body(token), headers=headers, who=None)
        return alike(reply, token)

    refused = await ask(wrong)
    assert noted == []
    assert await ask(canary) == refused
    assert refused[0] in (401, 403, 422), refused
    [(token, address, client, path)] = {each[1:]: each for each in noted}.values()
    assert (token.name, address != "", client, path) == (
        "left in a wiki",
        True,
        "thief/1.0",
        f"{road.method} {road.path}",
    )


@pytest.mark.parametrize("path", IN_PATHS)
async def test_one_in_the_path_is_reported_without_its_text(place: Any, path: str, monkeypatch: Any) -> None:
    stack, canary = place
    wrong = make_token(TokenKind.PERSONAL)
    forget(stack)
    monkeypatch.setattr(canaries, "MINUTE_S", 1e-9)
    replies = [alike(await stack.call("GET", path.format(each), who=None), each) for each in (wrong, canary)]
    assert replies[0] == replies[1]
    newest = (await rung(stack))[0]
    assert newest["road"].startswith("GET /"), newest
    assert canary not in json.dumps(newest)


async def test_a_use_is_an_event_a_row_of_the_audit_log_and_one_for_each_minute(place: Any) -> None:
    stack, canary = place
    forget(stack)
    before = len(await rung(stack))
    for _ in range(3):
        assert (await stack.call("GET", READS["npm"], who=canary, headers={"User-Agent": "curl/8"})).status == 401
    found = await rung(stack)
    assert len(found) - before <= 1  # other tests may have rung in the same minute
    [audited, *_] = await stack.audited(action="token.canary")
    assert (audited["object"], audited["outcome"], audited["detail"]["owner"]) == ("left in a wiki", "refused", "admin")
    lines = (await stack.api("GET", "/events?type=token.canary")).body.splitlines()
    assert json.loads(lines[-1])["data"]["name"] == "left in a wiki"
    assert len(lines) == len(await stack.audited(action="token.canary", limit="1000"))


async def test_only_its_owner_and_admins_see_that_it_is_one(place: Any) -> None:
    stack, _ = place
    made = await stack.ok("POST", "/user/token", {"name": "of ann", "canary": True}, who="ann")
    assert (made["canary"], made["expires_at"], made["token"].startswith("pkgr_p_")) == (True, None, True)
    assert [each["canary"] for each in (await stack.ok("GET", "/user/token", who="ann"))["items"]] == [True]
    assert (await stack.ok("GET", f"/user/token/{made['id']}", who="ann"))["canary"] is True
    of_everyone = {each["name"]: each["canary"] for each in (await stack.ok("GET", "/token"))["items"]}
    assert (of_everyone["of ann"], of_everyone["left in a wiki"]) == (True, True)
    auditor = await stack.token(scopes=["audit"], repositories=[])
    seen = (await stack.ok("GET", "/token", who=auditor))["items"]
    assert {each["canary"] for each in seen} <= {True, False}
    assert (await stack.call("GET", READS["npm"], who=made["token"])).status == 401
    mine = await stack.ok("GET", "/user/canary", who="ann")
    assert {each["owner"] for each in mine} == {"ann"}
    assert {"admin", "ann"} <= {each["owner"] for each in await stack.ok("GET", "/user/canary")}


async def test_a_revoked_one_does_not_ring_and_a_replaced_one_is_a_canary_again(place: Any) -> None:
    stack, _ = place
    made = await stack.ok("POST", "/user/token", {"name": "turned", "canary": True})
    fresh = await stack.ok("POST", f"/user/token/{made['id']}/rotate", {})
    assert fresh["canary"] is True

    async def rings() -> int:
        forget(stack)
        return sum(each["name"] == "turned" for each in await stack.ok("GET", "/user/canary"))

    assert (await stack.call("GET", READS["npm"], who=made["token"])).status == 401
    assert await rings() == 0
    assert (await stack.call("GET", READS["npm"], who=fresh["token"])).status == 401
    assert await rings() == 1


async def test_one_of_a_service_account_is_refused(place: Any) -> None:
    stack, _ = place
    made = await stack.ok("POST", "/users", {"username": "robot", "kind": "service"})
    refused = await stack.api("POST", f"/users/{made['id']}/token", {"name": "x", "canary": True})
    assert (refused.status, b"a canary is a token of your own" in refused.body) == (422, True)


async def test_addresses_in_a_minute_are_bounded(place: Any, monkeypatch: Any) -> None:
    stack, canary = place
    monkeypatch.setattr(canaries, "MOST_RUNG", 2)
    rings = stack.assembly._identification.canaries
    forget(stack)
    await rings.flush()
    token = await stack.assembly.core.catalog.look(_token_of, canary)
    for number in range(5):
        rings.note(token, f"192.0.2.{number}", "", "GET /")
    assert (len(rings._pending), rings._lost) == (2, 3)
    await rings.flush()
    assert rings._pending == []


def _token_of(r: Any, text: str) -> Any:
    return find_token_by_hash(r, hash_token(text))
