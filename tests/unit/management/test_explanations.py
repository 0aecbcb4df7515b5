"""Explanations of what repositories serve, for readers and for editors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred

from tests.support.inprocess_server import turn, until
from tests.support.memory_server import Stack
from tests.support.npm_packages import make_publish
from tests.support.upstreams.faults import failing
from tests.support.upstreams.messages import HEAD, Fault
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import PythonUpstream

PASSWORD = "an upstream's secret"


@pytest.fixture
def up() -> Iterator[NpmUpstream]:
    with NpmUpstream() as started:
        yield started


@pytest_twisted.async_yield_fixture
async def stack(make_stack: Any) -> Any:
    yield await make_stack(proxy__allow_private=["127.0.0.1"])


async def add(stack: Stack, name: str, config: dict[str, Any], **fields: Any) -> None:
    await stack.add_repository(name, **{"format": "npm", "visibility": "public", "config": config} | fields)


async def add_proxy(stack: Stack, name: str, upstream: Any, *, format: str = "npm", **settings: Any) -> None:
    """Add a proxy with one route, ``up``, which has credentials."""
    fields = {key: settings.pop(key) for key in ("visibility",) if key in settings}
    url = upstream.simple if isinstance(upstream, PythonUpstream) else upstream.url
    route = {"url": url, "name": "up", "auth": {"username": "ci", "password": PASSWORD}}
    config = {"type": "Proxy", "proxy": {"routes": [route]}, **settings}
    await add(stack, name, config, format=format, **fields)


async def add_virtual(stack: Stack, name: str, *members: str, **settings: Any) -> None:
    fields = {key: settings.pop(key) for key in ("format",) if key in settings}
    config = {"type": "Virtual", "members": [f"main/{each}" for each in members], **settings}
    await add(stack, name, config, **fields)


async def explain(stack: Stack, repository: str, package: str, *, who: str | None = None, **query: str) -> Any:
    """Return the explanation for a caller, nobody by default."""
    reply = await ask(stack, repository, package, who=who, **query)
    assert reply.status == 200, reply
    text = reply.body.decode()
    assert PASSWORD not in text
    if who != "admin":
        assert "127.0.0.1" not in text
    return reply.json


async def ask(stack: Stack, repository: str, package: str, *, who: str | None = None, **query: str) -> Any:
    parameters = urlencode({"repository": f"main/{repository}", "package": package, **query})
    return await stack.call("GET", f"/api/explain?{parameters}", who=who)


def steps(found: Any) -> list[str]:
    return [f"{each['repository']} {each['step']}" for each in found["steps"]]


def ago(**times: float) -> str:
    return (datetime.now(UTC) - timedelta(**times)).isoformat().replace("+00:00", "Z")


async def publish(stack: Stack, repository: str, name: str, version: str = "1.0.0") -> None:
    reply = await stack.call("PUT", f"/repositories/main/{repository}/{name}", raw=make_publish(name, version))
    assert reply.status == 201, reply


async def test_what_upstreams_said_is_explained_first_fresh_and_then_from_the_cache(
    stack: Stack, up: NpmUpstream
) -> None:
    up.add("left", "1.0.0")
    up.add("left", "1.1.0")
    await add(stack, "own", {"type": "Hosted"})
    await add_proxy(stack, "mirror", up)
    await add_virtual(stack, "all", "own", "mirror")
    first = await explain(stack, "all", "left")
    assert steps(first) == ["main/own not_owned", "main/mirror fetched"]
    assert (first["outcome"], first["sentence"]) == ("served", "served by main/mirror")
    assert first["latest"] == {
        "version": "1.1.0",
        "reason": "tag",
        "repository": "main/mirror",
        "sentence": "main/mirror tags 1.1.0 as latest",
        "hidden": None,
    }
    (serving,) = first["serving"]
    assert (serving["repository"], serving["type"], serving["route"], serving["url"], serving["stale"]) == (
        "main/mirror",
        "Proxy",
        "up",
        None,
        False,
    )
    again = await explain(stack, "all", "left")
    assert steps(again) == ["main/own not_owned", "main/mirror fetched", "main/mirror cached"]
    assert again["steps"][1] == first["steps"][1]  # as it was recorded
    assert again["steps"][2]["sentence"].startswith("main/mirror uses what route up said at 20")
    assert up.count() == 1
    document = json.loads((await stack.call("GET", "/repositories/main/all/left", who=None)).body)
    assert document["dist-tags"]["latest"] == again["latest"]["version"]


async def test_editors_see_the_addresses_of_upstreams(stack: Stack, up: NpmUpstream) -> None:
    up.add("left")
    await add_proxy(stack, "mirror", up)
    path = "left/-/left-1.0.0.tgz"
    assert (await explain(stack, "mirror", "left", who="admin"))["serving"][0]["url"] == f"{up.url}/left"
    assert (await explain(stack, "mirror", "left", who="admin", file=path))["file"]["url"] == up.tarball_url(
        "left", "1.0.0"
    )
    assert (await explain(stack, "mirror", "left", file=path))["file"] == {
        "path": path,
        "repository": "main/mirror",
        "kept": False,
        "route": "up",
        "url": None,
    }
    assert (await stack.call("GET", f"/repositories/main/mirror/{path}", who=None)).status == 200
    while not (await explain(stack, "mirror", "left", file=path))["file"]["kept"]:
        await turn()  # the file is answered before it is stored
    kept = await explain(stack, "mirror", "left", file=path)  # the one before may have found it on its way
    assert steps(kept) == ["main/mirror file_kept"]


async def test_refresh_asks_upstreams_at_most_every_ten_seconds(stack: Stack, up: NpmUpstream) -> None:
    up.add("left")
    await add_proxy(stack, "mirror", up)
    for _ in range(3):
        await explain(stack, "mirror", "left", refresh="true")
    assert up.count() == 1


async def test_failures_are_explained_without_addresses(stack: Stack, up: NpmUpstream) -> None:
    up.misbehave("*", failing(500), repeat=True)
    await add_proxy(stack, "mirror", up)
    found = await explain(stack, "mirror", "left")
    assert (found["outcome"], steps(found)) == ("failed", ["main/mirror failed"])
    assert "it answers 500" in found["sentence"]
    assert "it answers 500" in found["steps"][0]["sentence"]
    up.behave()
    absent = await explain(stack, "mirror", "right")
    assert (absent["outcome"], steps(absent)) == ("not_found", ["main/mirror absent"])


async def test_rules_are_explained(stack: Stack, up: NpmUpstream) -> None:
    for version, days in (("1.0.0", 30), ("1.1.0", 20), ("2.0.0", 1)):
        up.add("left", version, published=ago(days=days))
    policy = {"minimum_release_age": {"days": 3}, "reserved_names": ["acme-*"]}
    await add_proxy(stack, "mirror", up)
    await add_virtual(stack, "all", "mirror", policy=policy)
    found = await explain(stack, "all", "left")
    assert found["latest"] | {"sentence": ""} == {
        "version": "1.1.0",
        "reason": "replaced",
        "repository": "main/mirror",
        "hidden": "2.0.0",
        "sentence": "",
    }
    hidden = found["steps"][-1]
    assert (hidden["step"], hidden["rule"], hidden["days"], hidden["hidden_count"]) == ("hidden", "main/all", 3, 1)
    assert hidden["hidden"][0]["version"] == "2.0.0"
    assert hidden["hidden"][0]["opens_at"] > ago()
    assert hidden["sentence"] == "1 version of main/mirror is younger than the 3 days that main/all asks for"
    young = await explain(stack, "all", "left", version="v2.0.0")
    assert (young["outcome"], young["version"]["hidden"]) == ("too_young", True)
    assert young["sentence"].startswith("version 2.0.0 of main/mirror is hidden until 20")
    assert (await explain(stack, "all", "left", version="1.0.0"))["version"]["published_at"] < ago(days=29)
    assert (await explain(stack, "all", "left", version="3.0.0"))["outcome"] == "not_found"
    file = await explain(stack, "all", "left", file="left/-/left-2.0.0.tgz")
    assert (file["outcome"], file["steps"][-1]["step"]) == ("too_young", "file_refused")
    reserved = await explain(stack, "all", "acme-x")
    assert (reserved["outcome"], steps(reserved)) == ("reserved", ["main/mirror reserved"])
    assert reserved["steps"][0]["sentence"] == "main/mirror is not asked: acme-* is a reserved name of main/all"


async def test_clients_learn_the_reason_from_a_header(stack: Stack, up: NpmUpstream) -> None:
    up.add("left", published=ago())
    await add_proxy(
        stack, "mirror", up, policy={"minimum_release_age": {"days": 3}, "reserved_names": ["acme-*", "\u00fc-*"]}
    )
    for name, pattern in (("acme-x", "acme-*"), ("@\u00fc-x/y", None)):
        reply = await stack.call("GET", f"/repositories/main/mirror/{name}".encode().decode("latin-1"), who=None)
        if pattern is not None:
            assert (reply.status, reply.json["error"]) == (404, "not_found")
            assert pattern in reply.headers["x-pkgrepo-reason"]
    refused = await stack.call("GET", "/repositories/main/mirror/left/-/left-1.0.0.tgz", who=None)
    assert refused.status == 403
    assert refused.headers["x-pkgrepo-reason"] == refused.json["error"]
    assert "it will be served from 20" in refused.json["error"]


async def test_hosted_names_and_switched_off_members_are_explained(stack: Stack, up: NpmUpstream) -> None:
    up.add("mine", "9.0.0")
    await add(stack, "own", {"type": "Hosted"})
    await add_proxy(stack, "mirror", up)
    await add_virtual(stack, "all", "mirror", "own")
    await publish(stack, "own", "mine")
    found = await explain(stack, "all", "mine", version="1.0.0")
    assert (steps(found), found["version"]["repository"]) == (["main/own owned"], "main/own")
    assert found["latest"]["version"] == "1.0.0"
    own = stack.assembly.core.registry.find("main", "own")
    assert own is not None
    await stack.ok("PATCH", f"/repository/{own.uid}", {"active": False})
    off = await explain(stack, "all", "mine")
    assert (off["outcome"], steps(off)) == ("inactive", ["main/own owned_inactive"])
    assert up.count() == 0


@pytest.mark.parametrize("visibility", ["private", "hidden"])
async def test_members_that_no_list_shows_to_a_reader_have_no_names(
    stack: Stack, up: NpmUpstream, visibility: str
) -> None:
    up.add("left", published=ago())
    await add(stack, "own", {"type": "Hosted"}, visibility=visibility)
    await add_proxy(stack, "mirror", up, visibility=visibility, policy={"minimum_release_age": {"days": 3}})
    await add_virtual(stack, "all", "own", "mirror")
    for query in ({}, {"version": "1.0.0"}, {"file": "left/-/left-1.0.0.tgz"}):
        reply = await ask(stack, "all", "left", **query)
        assert reply.status == 200
        assert b"main/own" not in reply.body
        assert b"main/mirror" not in reply.body
    assert steps(await explain(stack, "all", "left"))[0] == "member 1 not_owned"
    await publish(stack, "own", "mine")
    assert (await explain(stack, "all", "mine"))["serving"][0]["repository"] == "member 1"
    assert steps(await explain(stack, "all", "mine", who="admin")) == ["main/own owned"]


async def test_unknown_and_unreadable_repositories_are_answered_alike(stack: Stack) -> None:
    await add(stack, "secret", {"type": "Hosted"}, visibility="private")
    await stack.add_user("bob", "bob keeps bees at home")
    for who, status in ((None, 401), ("bob", 404)):
        replies = [await ask(stack, name, "left", who=who) for name in ("secret", "nowhere")]
        assert [each.status for each in replies] == [status] * 2
        details = [each.json["detail"].replace("secret", "X").replace("nowhere", "X") for each in replies]
        assert details[0] == details[1]


async def test_token_for_some_packages_explains_only_these(stack: Stack) -> None:
    await add(stack, "own", {"type": "Hosted"}, visibility="private")
    for name in ("acme-a", "other"):
        await publish(stack, "own", name)
    repositories = [{"repository": "main/own", "actions": ["read"]}]
    token = await stack.token(name="some", repositories=repositories, packages=["acme-*"])
    assert (await ask(stack, "own", "acme-a", who=token)).status == 200
    assert (await ask(stack, "own", "other", who=token)).status in (403, 404)
    found = await explain(stack, "own", "acme-a", who=token, file="other/-/other-1.0.0.tgz")
    assert (found["outcome"], found["steps"]) == ("not_found", [])


@pytest.mark.parametrize(
    "query",
    [{}, {"package": "left"}, {"repository": "main/own"}, {"version": "1", "file": "x"}, {"version": "a b"}],
)
async def test_incomplete_questions_are_refused(stack: Stack, query: dict[str, str]) -> None:
    await add(stack, "own", {"type": "Hosted"})
    await publish(stack, "own", "left")
    if "version" in query:
        query = {"repository": "main/own", "package": "left", **query}
    assert (await stack.call("GET", f"/api/explain?{urlencode(query)}")).status == 422


@pytest.mark.parametrize("query", [{"version": "sha256:12"}, {"version": "a b"}, {"file": "v2/app/manifests/1"}])
async def test_malformed_questions_about_images_are_refused(stack: Stack, query: dict[str, str]) -> None:
    await stack.add_repository("images", format="docker", visibility="public", config={"type": "Hosted"})
    assert (await ask(stack, "images", "app", **query)).status == 422


async def test_python_projects_are_explained(stack: Stack) -> None:
    with PythonUpstream() as up:
        for version, days in (("1.0", 30), ("2.0rc1", 20), ("1.5", 1)):
            filename, _ = up.add("Left.Pad", version, published=ago(days=days))
        await add_proxy(stack, "mirror", up, format="python", policy={"minimum_release_age": {"days": 3}})
        await add_virtual(stack, "all", "mirror", format="python")
        found = await explain(stack, "all", "Left_Pad")
        assert (found["package"], found["latest"]["version"], found["latest"]["reason"]) == (
            "left-pad",
            "1.0",
            "highest",
        )
        assert [each["version"] for each in found["steps"][-1]["hidden"]] == ["1.5"]
        young = await explain(stack, "all", "left-pad", version="1.5.0")
        assert (young["outcome"], young["version"]["version"]) == ("too_young", "1.5")
        file = await explain(stack, "all", "left-pad", file=f"packages/left-pad/1.5/{filename}")
        assert (file["outcome"], file["steps"][-1]["step"]) == ("too_young", "file_refused")


async def test_a_route_for_other_names_is_said_not_to_be_asked(stack: Stack, up: NpmUpstream) -> None:
    route = {"url": up.url, "name": "up", "packages": ["@acme/*"]}
    await add(stack, "mirror", {"type": "Proxy", "proxy": {"routes": [route]}})
    found = await explain(stack, "mirror", "left-pad")
    sentence = "route up of main/mirror is not asked: its packages have other names"
    assert [each["sentence"] for each in found["steps"]][:1] == [sentence]
    assert up.count() == 0


async def test_documents_of_views_do_not_wait_for_an_upstream_that_is_asked_to_explain(
    stack: Stack, up: NpmUpstream
) -> None:
    up.add("left")
    up.misbehave("/left", Fault(pause_at=HEAD))
    await add_proxy(stack, "mirror", up)
    await add(stack, "own", {"type": "Hosted"})
    assert (await stack.call("PUT", "/repositories/main/own/mine", raw=make_publish("mine", "1.0.0"))).status == 201
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    asked = Deferred.fromCoroutine(ask(stack, "mirror", "left", at=now))
    await until(up.count)
    reply = await stack.call("GET", f"/repositories/main/own@{now}/mine", who=None)
    assert (reply.status, [*json.loads(reply.body)["versions"]]) == (200, ["1.0.0"])
    assert not asked.called
    up.release("/left")
    assert (await asked).status == 200


@pytest.mark.parametrize("status", [503, 404])
async def test_a_version_is_explained_although_its_file_cannot_be_read(stack: Stack, status: int) -> None:
    rule = {"name": "no GPL", "match": {"licences": ["GPL*"]}, "missing": "block"}
    with PythonUpstream() as up:
        filename, _ = up.add("left", sdist=True, metadata=False)
        up.misbehave(up.file_path(filename), failing(status), repeat=True)
        await add_proxy(stack, "mirror", up, format="python", policy={"rules": [rule]})
        found = await explain(stack, "mirror", "left", version="1.0")
    assert (found["outcome"], found["version"]["version"]) == ("served", "1.0")  # as documents list it


async def test_a_version_is_explained_without_its_file(stack: Stack) -> None:
    rule = {"name": "no such bytes", "match": {"digests": [f"sha512:{'0' * 128}"]}}
    with PythonUpstream() as up:
        filename, _ = up.add("left", sdist=True)
        await add_proxy(stack, "mirror", up, format="python", policy={"rules": [rule]})
        found = await explain(stack, "mirror", "left", version="1.0")
        assert up.count(up.file_path(filename)) == 0
    assert found["outcome"] == "served"
