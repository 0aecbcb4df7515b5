"""What is shown of upstreams and of the use of caches."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pkgrepo.storage.catalog.server.upstream_states import note_upstream
from tests.support.certificates import write_certificate
from tests.support.host_names import host_names
from tests.support.images import digest_of, make_image
from tests.support.inprocess_server import turn, value_of
from tests.support.ports import closed_port
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.faults import failing
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import PythonUpstream
from tests.support.upstreams.server import ScriptedUpstream

pytestmark = pytest.mark.server

STATS = "/repository/main%2Fmirror/stats"


async def test_use_of_the_cache_is_counted(mirror: Any, upstream: Any) -> None:
    await mirror.create(cache_ttl=0)
    tarball = upstream.add("counted", pad=100_000)
    await mirror.install("counted")
    for _ in range(3):
        assert (await mirror.get("/counted/-/counted-1.0.0.tgz")).body == tarball
    await mirror.get("/counted")
    upstream.misbehave("/counted", failing(500), repeat=True)
    assert (await mirror.get("/counted")).status == 200
    assert (await mirror.get("/nowhere")).status == 404
    await mirror.flush()
    cache = (await mirror.stack.ok("GET", STATS))["cache"]
    assert cache["fetched_bytes"] > len(tarball)
    assert cache["upstream_seconds"] > 0
    assert {name: cache[name] for name in ("hits", "confirmed", "stale_served", "absent", "saved_bytes")} == {
        "hits": 3,
        "confirmed": 2,
        "stale_served": 1,
        "absent": 1,
        "saved_bytes": 3 * len(tarball),
    }
    assert cache["misses"] == 2  # the document and the tarball
    assert cache["hit_ratio"] == pytest.approx(4 / 8)
    assert (await mirror.api("GET", "upstream"))["cache"] == cache
    text = (await mirror.stack.call("GET", "/metrics")).body.decode()
    found = dict(re.findall(r'^pkgrepo_proxy_requests_total\{repo="main/mirror",result="(\w+)"\} (\S+)$', text, re.M))
    assert found == {"hit": "3.0", "miss": "2.0", "confirmed": "2.0", "stale": "1.0", "absent": "1.0"}
    assert f'pkgrepo_proxy_saved_bytes_total{{repo="main/mirror"}} {3 * len(tarball):.1f}' in text
    assert 'pkgrepo_upstream_up{repo="main/mirror",route="up"} 1.0' in text


async def test_lists_of_repositories_have_the_worst_state_of_their_upstreams(mirror: Any, upstream: Any) -> None:
    async def states() -> dict[str, str | None]:
        listed = (await mirror.stack.ok("GET", "/repository"))["items"]
        return {each["name"]: each["upstream_state"] for each in listed}

    await mirror.create()
    await mirror.stack.add_repository("ours", format="npm")
    assert await states() == {"mirror": "unused", "ours": None}
    upstream.add("known")
    await mirror.install("known")
    assert await states() == {"mirror": "closed", "ours": None}
    upstream.serve("/broken", Answer(500))
    assert (await mirror.get("/broken")).status >= 500
    assert await states() == {"mirror": "failing", "ours": None}
    dead = {"url": f"http://127.0.0.1:{closed_port()}/", "name": "dead", "priority": 9}
    routes = [dead, {"url": upstream.url, "name": "up"}]
    await mirror.api("PUT", "config", {"type": "Proxy", "proxy": {"routes": routes}})
    while (await states())["mirror"] != "open":
        await mirror.get("/other")


async def test_what_another_process_knows_to_be_down_is_down(mirror: Any, upstream: Any) -> None:
    await mirror.create()
    upstream.add("known")
    await mirror.install("known")
    core = mirror.stack.assembly.core
    place = core.registry.find_path("main/mirror").id, "up"
    for reason, state in (("it refuses connections", "open"), (None, "closed")):
        await core.catalog.write(note_upstream, *place, reason, core.clock.now_ms())
        assert (await mirror.stack.ok("GET", "/repository/main%2Fmirror"))["upstream_state"] == state
        assert (await mirror.api("GET", "upstream"))["routes"][0]["state"] == state


async def test_kept_layers_of_images_are_hits(mirror: Any) -> None:
    image, stack = make_image("layered"), mirror.stack
    layer = max(image.blobs, key=len)
    with ContainerUpstream() as registry:
        registry.push("app", image, "1")
        config = {"type": "Proxy", "proxy": {"routes": [{"url": registry.url, "name": "up"}]}}
        await stack.add_repository("mirror", format="docker", config=config)
        assert (await stack.call("GET", "/v2/main/mirror/app/manifests/1")).body == image.manifest
        path = f"/v2/main/mirror/app/blobs/{digest_of(layer)}"
        assert (await stack.call("GET", path)).body == bytes(layer)
        catalog = stack.assembly.core.catalog
        while not await value_of(catalog, "SELECT COUNT(*) FROM package_blob"):
            await turn()
        await mirror.flush()
        before = (await stack.ok("GET", STATS))["cache"]
        for headers in ({}, {}, {}, {"Range": "bytes=1-2"}):
            assert (await stack.call("GET", path, headers=headers)).status in (200, 206)
        await mirror.flush()
        stats = await stack.ok("GET", STATS)
    assert stats["cache"]["hits"] - before["hits"] == 3
    assert stats["cache"]["saved_bytes"] - before["saved_bytes"] == 3 * len(layer)


async def test_hosted_repositories_have_no_cache_and_no_upstreams(mirror: Any) -> None:
    await mirror.stack.add_repository()
    assert (await mirror.stack.ok("GET", "/repository/main%2Fpy/stats"))["cache"] is None
    for method, path in (("GET", "upstream"), ("POST", "upstream/check")):
        assert (await mirror.stack.api(method, f"/repository/main%2Fpy/{path}")).status == 404


async def test_health_of_each_route_is_shown(mirror: Any, upstream: Any) -> None:
    with NpmUpstream() as second:
        await mirror.create(second.url)
        second.add("healthy")
        shown = await mirror.api("GET", "upstream")
        assert [(each["name"], each["state"]) for each in shown["routes"]] == [("up", "unused"), ("up2", "unused")]
        await mirror.look_up("healthy")
        upstream.misbehave("/sick", failing(500), repeat=True)
        second.misbehave("/sick", failing(500), repeat=True)
        assert (await mirror.get("/sick")).status == 502
        shown = await mirror.api("GET", "upstream")
        first, other = shown["routes"]
        assert (first["state"], first["last_error"], first["documents"]) == ("closed", "it answers 500", 0)
        # While the first route fails, this one is not asked for what it has not served.
        assert (other["successes"], other["failures"], other["documents"]) == (1, 0, 1)
        assert other["latency_ms"] is not None
        assert (shown["documents"], shown["document_bytes"]) == (1, other["document_bytes"])
        assert other["document_bytes"] > 0
        usage = (await mirror.stack.ok("GET", "/repository/main%2Fmirror"))["usage_bytes"]
        assert shown["cached_bytes"] == usage + shown["document_bytes"]


async def test_a_check_asks_every_route_now(mirror: Any, upstream: Any) -> None:
    with NpmUpstream(authorization="Bearer x") as locked, NpmUpstream() as broken, NpmUpstream() as gone:
        await mirror.create(locked.url, broken.url, gone.url)
        upstream.serve("/-/ping", b"{}")
        broken.misbehave("*", failing(500), repeat=True)
        gone.stop()
        found = await mirror.api("POST", "upstream/check")
        assert found["ok"] is False
        first, second, third, fourth = found["routes"]
        assert (first["name"], first["ok"], first["status"], first["message"]) == ("up", True, 200, "it answers")
        assert first["latency_ms"] is not None
        assert (second["ok"], second["status"]) == (False, 401)
        assert "credentials" in second["message"]
        assert (third["ok"], third["status"], third["message"]) == (False, None, "it answers 500")
        assert (fourth["ok"], fourth["status"]) == (False, None)
        assert "127.0.0.1" not in fourth["message"]
        rows = await mirror.stack.audited(action="upstream.check")
        assert [(row["object"], row["outcome"]) for row in rows] == [("main/mirror", "ok")]


async def test_a_configuration_is_tried_before_it_is_saved_with_what_is_unusual_about_its_address(
    mirror: Any, upstream: Any
) -> None:
    await mirror.create()
    upstream.serve("/-/ping", b"{}")
    config = {"type": "Proxy", "proxy": {"routes": [{"url": f"{upstream.url}/package/", "name": "new"}]}}
    for found in (
        await mirror.stack.ok("POST", "/upstream/check", {"format": "npm", "config": config}),
        await mirror.api("POST", "upstream/check", {"config": config}),
    ):
        [route] = found["routes"]
        assert (route["name"], route["ok"], route["status"]) == ("new", False, 404)
        assert route["remarks"] == ["It goes on below the address of a repository: leave out package and what follows"]
    config["proxy"]["routes"][0]["url"] = upstream.url
    [route] = (await mirror.stack.ok("POST", "/upstream/check", {"format": "npm", "config": config}))["routes"]
    assert (route["ok"], route["remarks"]) == (True, [])
    await mirror.flush()  # what is not saved is not counted
    assert await mirror.api("GET", "upstream")
    hosted = {"format": "npm", "config": {"type": "Hosted"}}
    assert (await mirror.stack.api("POST", "/upstream/check", hosted)).status == 422


async def test_a_new_proxy_is_answered_with_remarks_on_its_address(mirror: Any) -> None:
    config = {"type": "Proxy", "proxy": {"routes": ["http://www.registry.invalid/-/all"]}}
    body = {"name": "far", "storage": "main", "format": "npm", "config": config}
    made = await mirror.stack.ok("POST", "/repository", body)
    said = " ".join(made["warnings"])
    assert all(each in said for each in ("begins with http://", "may be a web site", "goes on below"))
    assert "begins with http://" not in " ".join((await mirror.stack.ok("GET", "/repository/main%2Ffar"))["warnings"])


async def test_mirrors_without_a_ping_are_asked_for_their_root(mirror: Any, upstream: Any) -> None:
    await mirror.create()
    (route,) = (await mirror.api("POST", "upstream/check"))["routes"]
    assert (route["ok"], route["status"]) == (False, 404)
    assert "may be wrong" in route["message"]
    upstream.serve("/", b"{}")
    (route,) = (await mirror.api("POST", "upstream/check"))["routes"]
    assert (route["ok"], route["status"]) == (True, 200)


async def test_registries_without_ping_and_root_are_asked_for_a_search(mirror: Any, upstream: Any) -> None:
    """As those of Gitea."""
    await mirror.create()
    upstream.serve("/-/v1/search", b'{"objects":[],"total":0}')
    (route,) = (await mirror.api("POST", "upstream/check"))["routes"]
    assert (route["ok"], route["status"]) == (True, 200)
    upstream.serve("/-/v1/search", Answer(401))
    (route,) = (await mirror.api("POST", "upstream/check"))["routes"]
    assert (route["ok"], route["message"]) == (False, "it answers 401: it wants credentials")


@pytest.mark.parametrize("path", ["/simple/", "/simple", ""])
async def test_indexes_are_checked_at_their_simple_index(mirror: Any, path: str) -> None:
    with PythonUpstream() as index:
        config = {"type": "Proxy", "proxy": {"routes": [{"url": index.url + path, "name": "up"}]}}
        await mirror.stack.add_repository("mirror", config=config)
        found = await mirror.api("POST", "upstream/check")
        assert (found["ok"], found["routes"][0]["status"]) == (True, 200)
        assert [each.path for each in index.requests()] == ["/simple/"]


@pytest.mark.parametrize("path", ["/simple/", ""])
async def test_indexes_without_a_list_are_checked_by_a_page(mirror: Any, path: str) -> None:
    """As those of Gitea, which takes uploads above them."""
    with PythonUpstream() as index:
        config = {"type": "Proxy", "proxy": {"routes": [{"url": index.url + path, "name": "up"}]}}
        await mirror.stack.add_repository("mirror", config=config)
        index.misbehave("/simple/", Answer(404), repeat=True)
        found = await mirror.api("POST", "upstream/check")
        assert (found["ok"], found["routes"][0]["status"]) == (False, 404)
        index.serve("/", Answer(405))
        found = await mirror.api("POST", "upstream/check")
        assert (found["ok"], found["routes"][0]["status"]) == (True, 405)
        index.serve("/simple/pip/", Answer(401))
        found = await mirror.api("POST", "upstream/check")
        assert (found["ok"], found["routes"][0]["status"]) == (False, 401)


@pytest.mark.parametrize("challenge", ["bearer", "basic"])
async def test_credentials_of_a_registry_are_checked_as_pulls_use_them(mirror: Any, challenge: str) -> None:
    with ContainerUpstream(challenge=challenge, credentials="Basic dTpw") as registry:
        for number, (auth, ok, said) in enumerate(
            (
                ({"username": "u", "password": "p"}, True, "it answers"),
                ({"username": "u", "password": "x"}, False, "refuses the credentials of the route"),
                (None, challenge == "bearer", "it answers" if challenge == "bearer" else "it wants credentials"),
            )
        ):
            route = {"url": registry.url, "name": "up", **({} if auth is None else {"auth": auth})}
            config = {"type": "Proxy", "proxy": {"routes": [route]}}
            await mirror.stack.add_repository(f"images{number}", format="docker", config=config)
            found = await mirror.stack.ok("POST", f"/repository/main%2Fimages{number}/upstream/check")
            assert (found["ok"], said in found["routes"][0]["message"]) == (ok, True), found


async def test_upstreams_are_for_editors(mirror: Any) -> None:
    await mirror.create()
    await mirror.stack.add_user("bob")
    await mirror.stack.grant("bob", "main/mirror", "read", "write", "delete")
    for method, path in (("GET", "upstream"), ("POST", "upstream/check")):
        assert (await mirror.stack.api(method, f"/repository/main%2Fmirror/{path}", who="bob")).status == 403
        assert (await mirror.stack.api(method, f"/repository/main%2Fmirror/{path}", who=None)).status == 401
    await mirror.stack.grant("bob", "main/mirror", "read", "edit")
    assert (await mirror.api("GET", "upstream", who="bob"))["routes"][0]["name"] == "up"


async def test_routes_that_cannot_be_used_are_in_the_answer_to_who_configures_them(mirror: Any, tmp_path: Path) -> None:
    stack, (authority, key) = mirror.stack, write_certificate(tmp_path)

    def proxy(*routes: dict[str, str]) -> dict[str, Any]:
        return {"type": "Proxy", "proxy": {"routes": [*routes]}}

    with (
        ScriptedUpstream(certificate=(authority, key)) as secure,
        ScriptedUpstream() as plain,
        host_names(**{"private.example": "10.0.0.1"}),
    ):
        routes = (
            {"name": "literal", "url": "http://10.0.0.1"},
            {"name": "local", "url": "http://localhost:1"},
            {"name": "named", "url": "https://private.example"},
            {"name": "untrusted", "url": secure.url},
            {"name": "unreadable", "url": secure.url, "ca_file": str(tmp_path / "none.pem")},
            {"name": "trusted", "url": secure.url, "ca_file": str(authority)},
            {"name": "plain", "url": plain.url},
            {"name": "down", "url": f"http://127.0.0.1:{closed_port()}"},
        )
        made = await stack.add_repository("tried", format="npm", config=proxy(*routes))
        named = [each.split("'")[1] for each in made["warnings"]]
        assert named == ["literal", "local", "named", "untrusted", "unreadable"]
        for sentence, what in zip(made["warnings"], ["not public"] * 3 + ["not trusted", "certificates"], strict=True):
            assert what in sentence
        path = f"/repository/{made['id']}"
        assert (await stack.ok("GET", path))["warnings"] == made["warnings"]
        changed = await stack.ok("PUT", f"{path}/config", proxy(routes[3], routes[-1]))
        assert [each.split("'")[1] for each in changed["warnings"]] == ["untrusted"]
        assert "warnings" not in await stack.ok("PUT", f"{path}/config", proxy(routes[-1]))
        assert plain.requests() == secure.requests() == []


async def test_a_route_whose_upstream_answers_again_has_no_warning(mirror: Any, upstream: Any) -> None:
    await mirror.create(cache_ttl=0)
    upstream.add("restricted")
    upstream.misbehave("/restricted", Answer(401), repeat=True)
    path = "/repository/main%2Fmirror"
    assert (await mirror.get("/restricted")).status == 424
    assert "wants credentials" in (await mirror.stack.ok("GET", path))["warnings"][0]
    upstream.behave()
    assert (await mirror.get("/restricted")).status == 200
    assert (await mirror.stack.ok("GET", path))["warnings"] == []
