"""Retention of what proxies keep: rules, preview and runs, pins, and the limits of a cache beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pkgrepo.repositories.retention.schedule import RetentionSchedule
from tests.support.images import digest_of, make_image, make_index
from tests.support.inprocess_server import until_value
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.maven import MavenUpstream

from .conftest import Mirror
from .test_purge import evicted, limits

pytestmark = pytest.mark.server

RULES = "config/retention"


async def cached(mirror: Mirror, name: str = "demo") -> set[str]:
    """The versions of a package that are kept."""
    found = await mirror.stack.api("GET", f"/package/main%2Fmirror/{name}/versions")
    return {each["version"] for each in found.json["items"]} if found.status == 200 else set()


async def preview(mirror: Mirror, *rules: Mapping[str, Any]) -> Any:
    body = {"retention": {"rules": list(rules)}} if rules else {}
    return await mirror.api("POST", "retention?dry_run=true", body)


def names(found: Any, field: str = "victims") -> set[str]:
    return {each["version"] for each in found[field]}


async def fill(mirror: Mirror, **settings: Any) -> None:
    """Fetch five versions of a package, two of them new at their upstream, and one of another."""
    upstream = mirror.upstream
    await mirror.create(**settings)
    for version in ("1.0.0", "1.1.0", "1.2.0", "2.0.0-rc.1", "2.0.0"):
        published = "2026-01-01T00:00:00.000Z" if version > "2" else "2020-01-01T00:00:00.000Z"
        upstream.add("demo", version, published=published)
    upstream.add("other")
    for version in ("1.0.0", "1.1.0", "1.2.0", "2.0.0-rc.1", "2.0.0"):
        await mirror.install("demo", version)
    await mirror.install("other")


# What a rule is about, what it keeps, and which versions of demo go.
SELECTED: tuple[tuple[Mapping[str, Any], Mapping[str, Any], set[str]], ...] = (
    ({"packages": ["dem?"], "cached": True}, {"last": 3}, {"1.0.0", "1.1.0"}),
    ({"packages": ["demo"], "prerelease": True}, {}, {"2.0.0-rc.1"}),
    ({"versions": ">=1.1 <2.0.0-0"}, {}, {"1.1.0", "1.2.0"}),
    ({"versions": "/^2/"}, {"last": 1}, {"2.0.0-rc.1"}),
    ({"packages": ["demo"], "versions": "1.*"}, {"last": 1, "downloaded_within_days": 1}, set()),
)


async def test_rules_evict_what_a_proxy_keeps(mirror: Mirror) -> None:
    await fill(mirror)
    for match, keep, gone in SELECTED:
        found = await preview(mirror, {"name": "some", "match": match, "keep": keep})
        assert names(found) == gone, match
        assert {each["action"] for each in found["victims"]} <= {"evict"}
    rule = {"name": "few", "match": {"packages": ["demo"]}, "keep": {"last": 2}}
    await mirror.api("PUT", RULES, {"rules": [rule]})
    shown = await preview(mirror)
    assert (names(shown), shown["needs_confirmation"]) == ({"1.0.0", "1.1.0", "1.2.0"}, True)
    assert all(each["size"] > 0 and each["reason"].startswith("few: published 2020") for each in shown["victims"])
    waiting = await mirror.api("POST", "retention?wait=true")
    assert (waiting["removed"], len(await cached(mirror))) == (0, 5)
    done = await mirror.api("POST", "retention?wait=true&confirm=true")
    assert (done["removed"], done["freed_bytes"], done["errors"]) == (3, shown["bytes"], [])
    assert await cached(mirror) == {"2.0.0", "2.0.0-rc.1"}
    assert [each[:2] for each in await evicted(mirror)] == [("demo", f"1.{number}.0") for number in range(3)]
    assert (await mirror.stack.ok("GET", "/trash"))["items"] == []
    await mirror.install("demo", "1.1.0")
    assert "1.1.0" in await cached(mirror)


async def test_what_was_downloaded_or_published_lately_is_kept(mirror: Mirror) -> None:
    await fill(mirror)
    mirror.advance(days=20)
    assert (await mirror.get(mirror.upstream.tarball_path("demo", "1.1.0"))).status == 200
    await mirror.flush()
    used = {"name": "used", "match": {"packages": ["demo"]}, "keep": {"downloaded_within_days": 10}}
    assert names(await preview(mirror, used)) == {"1.0.0", "1.2.0", "2.0.0-rc.1", "2.0.0"}
    clock = mirror.stack.assembly.core.clock
    days = clock.now_ms() // 86_400_000 - 18_262  # since 2020-01-01
    young = {"name": "young", "match": {"packages": ["demo"]}, "keep": {"newer_than_days": days - 10}}
    assert names(await preview(mirror, young)) == {"1.0.0", "1.1.0", "1.2.0"}


async def test_rules_of_the_server_take_from_caches_only_if_they_say_so(mirror: Mirror) -> None:
    await fill(mirror)
    stack = mirror.stack
    plain = {"name": "all", "keep": {"last": 1}}
    await stack.ok("PUT", "/system/retention", {"retention": {"rules": [plain]}})
    assert (await preview(mirror))["count"] == 0
    assert (await stack.api("POST", "/repository/main%2Fmirror/retention", {})).status == 409
    rule = {"name": "caches", "match": {"cached": True, "packages": ["demo"]}, "keep": {"last": 4}}
    await stack.ok("PUT", "/system/retention", {"retention": {"rules": [plain, rule], "max_delete_percent": 50}})
    shown = await preview(mirror)
    assert (names(shown), shown["victims"][0]["rule"]) == ({"1.0.0"}, "server: caches")
    core = stack.assembly.core
    schedule = RetentionSchedule(core.context, work=core.retention, jobs=core.jobs, reactor=core.reactor)
    await schedule.run_once()
    mirror.advance(days=1.1)
    await schedule.run_once()
    assert "1.0.0" not in await cached(mirror)


async def test_pins_hold_against_rules_and_limits(mirror: Mirror) -> None:
    await fill(mirror, cache={"unused_days": 10})
    await mirror.stack.ok("PUT", "/package/main%2Fmirror/demo/versions/1.0.0/pin", {"reason": "ours"})
    everything = {"name": "all", "match": {"packages": ["demo"]}}
    assert names(await preview(mirror, everything)) == {"1.1.0", "1.2.0", "2.0.0-rc.1", "2.0.0"}
    assert (await preview(mirror))["over_limits"] == []
    mirror.advance(days=12)
    shown = await preview(mirror)
    assert names(shown, "over_limits") == {"1.1.0", "1.2.0", "2.0.0-rc.1", "2.0.0", "1.0.0"}
    assert {each["package"] for each in shown["over_limits"] if each["version"] == "1.0.0"} == {"other"}
    assert (shown["over_limits"][0]["rule"], shown["over_limits_bytes"] > 0) == ("unused_days", True)
    await limits(mirror)
    assert (await mirror.names(), await cached(mirror)) == (["demo"], {"1.0.0"})
    mirror.upstream.stop()
    assert (await mirror.get(mirror.upstream.tarball_path("demo", "1.0.0"))).status == 200
    assert list((await mirror.get("/demo")).json["versions"])


async def test_wrong_rules_of_caches_are_refused(mirror: Mirror) -> None:
    await mirror.create()
    path = "/repository/main%2Fmirror/config/retention"
    for rule, pointer in (
        ({"match": {"cached": False}}, "/rules/0/match/cached"),
        ({"action": "untag"}, "/rules/0/action"),
        ({"match": {"versions": ">=?"}}, "/rules/0/match/versions"),
    ):
        body = {"rules": [{"name": "wrong", **rule}]}
        reply = await mirror.stack.api("PUT", path, body)
        if reply.status == 200:  # ranges are read by the format, when they are applied
            reply = await mirror.stack.api("POST", "/repository/main%2Fmirror/retention?dry_run=true", {})
        assert (reply.status, pointer in reply.body.decode()) == (422, True), rule
    await mirror.stack.add_repository("own", format="npm", config={"type": "Hosted"})
    body = {"rules": [{"name": "none", "match": {"cached": True}}]}
    assert (await mirror.stack.api("PUT", "/repository/main%2Fown/config/retention", body)).status == 422


async def test_an_image_is_evicted_with_its_children(mirror: Mirror) -> None:
    stack, arm, amd = mirror.stack, make_image("arm", architecture="arm64"), make_image("amd")
    both, alone = make_index([amd, arm]), make_image("alone")
    with ContainerUpstream() as registry:
        registry.push("app", both, "both", children=(amd, arm))
        registry.push("app", alone, "alone")
        config = {"type": "Proxy", "proxy": {"routes": [{"url": registry.url, "name": "up"}]}}
        await stack.add_repository("mirror", format="docker", config=config)
        for image, tag in ((both, "both"), (amd, amd.digest), (alone, "alone")):  # the other child is not fetched
            assert (await stack.call("GET", f"/v2/main/mirror/app/manifests/{tag}")).body == image.manifest
        for blob in (*amd.blobs, *alone.blobs):
            assert (await stack.call("GET", f"/v2/main/mirror/app/blobs/{digest_of(blob)}")).body == bytes(blob)
        blobs = len({bytes(each) for each in (*amd.blobs, *alone.blobs)})
        await until_value(blobs, stack.assembly.core.catalog, "SELECT COUNT(*) FROM package_blob")
        rule = {"name": "index", "match": {"tags": ["both"]}}
        shown = await preview(mirror, rule)
        assert {each["version"] for each in shown["victims"]} == {"both", amd.digest}
        await mirror.api("PUT", RULES, {"rules": [rule], "max_delete_percent": 100})
        done = await mirror.api("POST", "retention?wait=true")
        assert (done["removed"], done["errors"], done["freed_bytes"]) == (2, [], shown["bytes"])
        assert await cached(mirror, "app") == {"alone"}
        assert (await stack.call("GET", "/v2/main/mirror/app/manifests/both")).body == both.manifest
        assert (await stack.call("GET", f"/v2/main/mirror/app/manifests/{amd.digest}")).body == amd.manifest
        await stack.ok("PUT", "/package/main%2Fmirror/app/versions/both/pin", {})
        mirror.advance(days=3)
        everything = await preview(mirror, {"name": "all"})
        assert {each["version"] for each in everything["victims"]} == {"alone"}


async def test_builds_of_a_cached_snapshot_are_evicted(mirror: Mirror) -> None:
    stack, version = mirror.stack, "1.0-SNAPSHOT"
    with MavenUpstream() as registry:
        for number in (1, 2, 3):
            registry.build("com.acme", "snap", version, f"2024010{number}.000000", number, b"%d" % number)
        config = {"type": "Proxy", "proxy": {"routes": [{"url": registry.url, "name": "up"}]}}
        await stack.add_repository("mirror", format="maven", config=config)
        folder = f"/repositories/main/mirror/com/acme/snap/{version}"
        for number in (1, 2, 3):
            path = f"{folder}/snap-1.0-2024010{number}.000000-{number}.jar"
            assert (await stack.call("GET", path)).body == b"%d" % number
        await until_value(3, stack.assembly.core.catalog, "SELECT COUNT(*) FROM file WHERE path LIKE '%.jar'")
        rule = {"name": "builds", "match": {"snapshot": True}, "keep": {"last": 1}}
        await mirror.api("PUT", RULES, {"rules": [rule], "max_delete_percent": 100})
        assert names(await preview(mirror)) == {f"{version} 2024010{each}.000000-{each}" for each in (1, 2)}
        assert (await mirror.api("POST", "retention?wait=true"))["removed"] == 2
        assert await cached(mirror, "com.acme:snap") == {version}
        assert (await stack.call("GET", f"{folder}/snap-1.0-20240101.000000-1.jar")).body == b"1"
