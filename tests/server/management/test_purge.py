"""Purges of caches, and their limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.storage.catalog.packages import events
from tests.support.images import digest_of, make_image, make_index
from tests.support.inprocess_server import until_value, value_of
from tests.support.memory_server import running_stacks
from tests.support.upstreams.container import ContainerUpstream

from .conftest import Mirror

pytestmark = pytest.mark.server

PURGE = "cache/purge"
NOTHING = {"packages": 0, "versions": 0, "files": 0, "documents": 0, "freed_bytes": 0, "dry_run": False}


@pytest_twisted.async_yield_fixture
async def slow(tmp_path: Path, upstream: Any) -> Any:
    """A proxy whose files and documents wait for a minute to be stored."""
    async with running_stacks(tmp_path) as make:
        found = Mirror(await make(proxy__allow_private=["127.0.0.1"], proxy__store_delay="1m"), upstream)
        await found.create()
        yield found


async def read_whole(mirror: Any, name: str) -> None:
    assert (await mirror.get(f"/{name}")).status == 200
    assert (await mirror.get(mirror.upstream.tarball_path(name, "1.0.0"))).status == 200


async def evicted(mirror: Any) -> list[tuple[str, str, str]]:
    """Package, version and actor of the events of evictions."""
    catalog = mirror.stack.assembly.core.catalog
    found = await catalog.look(events.events_after, 0, 1000)
    return [(each.package_key, each.version_key, each.actor) for each in found if each.kind == "evicted"]


async def documents(mirror: Any) -> int:
    count: int = (await mirror.api("GET", "upstream"))["documents"]
    return count


async def limits(mirror: Any) -> None:
    """What happens every hour."""
    await mirror.stack.assembly._proxies._limits.run_once()


async def test_what_was_served_and_is_not_stored_yet_is_purged(slow: Any, upstream: Any) -> None:
    tarball = upstream.add("waiting")
    path = upstream.tarball_path("waiting", "1.0.0")
    await read_whole(slow, "waiting")
    assert await slow.names() == []
    told = await slow.api("POST", PURGE)
    assert (told["packages"], told["files"], told["documents"]) == (1, 1, 1)
    upstream.forget()
    await read_whole(slow, "waiting")
    assert (upstream.count("/waiting"), upstream.count(path)) == (1, 1)
    assert (await slow.api("POST", PURGE, {"dry_run": True}))["freed_bytes"] >= len(tarball)


async def test_what_was_served_and_is_not_stored_yet_is_deleted(slow: Any, upstream: Any) -> None:
    for at in ("/package/main%2Fmirror/brief", "/package/main%2Fmirror/brief/versions/1.0.0"):
        upstream.add("brief")
        await read_whole(slow, "brief")
        assert (await slow.stack.ok("DELETE", at))["deleted"] == ["brief/-/brief-1.0.0.tgz"]
    await read_whole(slow, "brief")
    body = {"paths": ["brief/-/brief-1.0.0.tgz"]}
    assert (await slow.api("DELETE", "packages", body))["deleted"] == body["paths"]


async def test_everything_is_purged_and_fetched_again(mirror: Any, upstream: Any) -> None:
    await mirror.create()
    for name in ("one", "@sc/two"):
        upstream.add(name)
        await mirror.install(name)
    upstream.add("seen")
    await mirror.look_up("seen")
    held = (await mirror.api("GET", "upstream"))["cached_bytes"]
    expected = {**NOTHING, "packages": 2, "versions": 2, "files": 2, "documents": 3, "freed_bytes": held}
    told = await mirror.api("POST", PURGE, {"dry_run": True})
    assert told == {**expected, "dry_run": True}
    assert await mirror.names() == ["@sc/two", "one"]
    assert await mirror.api("POST", PURGE) == expected
    assert (await mirror.names(), await documents(mirror)) == ([], 0)
    assert (await mirror.stack.ok("GET", "/repository/main%2Fmirror"))["usage_bytes"] == 0
    assert await evicted(mirror) == [("@sc/two", "1.0.0", "admin"), ("one", "1.0.0", "admin")]
    upstream.forget()
    await mirror.install("one")
    assert upstream.count("/one") == 1
    assert await mirror.names() == ["one"]
    row, dry = await mirror.stack.audited(action="cache.purge")
    assert (row["object"], row["detail"]["packages"], dry["detail"]["dry_run"]) == ("main/mirror", 2, True)


@pytest.mark.parametrize(
    ("wish", "left"),
    [
        ({"package": "aa"}, ["@sc/ab", "b"]),
        ({"package": "absent"}, ["@sc/ab", "aa", "b"]),
        ({"pattern": "A*"}, ["@sc/ab", "b"]),
        ({"pattern": "@sc/*"}, ["aa", "b"]),
        ({"older_than": "1h"}, ["@sc/ab", "aa", "b"]),
        ({"older_than": 0}, []),
    ],
)
async def test_a_purge_has_conditions(mirror: Any, upstream: Any, wish: Any, left: list[str]) -> None:
    await mirror.create()
    for name in ("aa", "@sc/ab", "b"):
        upstream.add(name)
        await mirror.install(name)
    mirror.advance(days=0.02)
    assert (await mirror.api("POST", PURGE, wish))["packages"] == 3 - len(left)
    assert (await mirror.names(), await documents(mirror)) == (left, len(left))


async def test_documents_are_purged_without_files(mirror: Any, upstream: Any) -> None:
    await mirror.create()
    upstream.add("kept", "1.0.0")
    await mirror.install("kept")
    upstream.add("kept", "2.0.0")
    assert list((await mirror.get("/kept")).json["versions"]) == ["1.0.0"]
    found = await mirror.api("POST", PURGE, {"package": "kept", "documents_only": True})
    assert (found["documents"], found["versions"]) == (1, 0)
    assert list((await mirror.get("/kept")).json["versions"]) == ["1.0.0", "2.0.0"]
    assert await mirror.names() == ["kept"]


async def test_wrong_wishes_and_other_callers_are_refused(mirror: Any) -> None:
    await mirror.create()
    await mirror.stack.add_repository()
    path = f"/repository/main%2Fmirror/{PURGE}"
    for wish in ({"limits": True, "package": "a"}, {"older_than": "soon"}, {"older_than": -1}, {"package": "../x"}):
        assert (await mirror.stack.api("POST", path, wish)).status == 422, wish
    assert (await mirror.stack.api("POST", f"/repository/main%2Fpy/{PURGE}")).status == 404
    await mirror.stack.add_user("bob")
    await mirror.stack.grant("bob", "main/mirror", "read", "write", "delete")
    assert (await mirror.stack.api("POST", path, who="bob")).status == 403
    await mirror.stack.grant("bob", "main/mirror", "read", "edit")
    assert await mirror.api("POST", PURGE, who="bob") == NOTHING


async def test_a_long_purge_is_a_job_for_its_editor(mirror: Any, upstream: Any) -> None:
    await mirror.create()
    upstream.add("one")
    await mirror.install("one")
    await mirror.stack.add_user("bob")
    await mirror.stack.grant("bob", "main/mirror", "read", "edit")
    reply = await mirror.stack.api("POST", f"/repository/main%2Fmirror/{PURGE}?wait=0", who="bob")
    assert reply.status == 202
    job = reply.headers["location"].removeprefix("/api")
    await mirror.stack.assembly.core.jobs.wait(job.rpartition("/")[2])
    found = await mirror.stack.ok("GET", job, who="bob")
    assert (found["kind"], found["state"], found["result"]["packages"]) == ("cache_purge", "done", 1)


async def test_a_full_cache_loses_what_was_not_used_for_longest(mirror: Any, upstream: Any) -> None:
    await mirror.create(cache={"max_bytes": 250_000})
    for name in ("first", "second", "third"):
        upstream.add(name, pad=100_000)
        await mirror.install(name)
        mirror.advance(days=2)
    assert (await mirror.get("/first/-/first-1.0.0.tgz")).status == 200
    await mirror.flush()
    told = await mirror.api("POST", PURGE, {"limits": True, "dry_run": True})
    assert (told["packages"], told["versions"]) == (1, 1)
    assert len(await mirror.names()) == 3
    await limits(mirror)
    assert await mirror.names() == ["first", "third"]
    assert await evicted(mirror) == [("second", "1.0.0", "system")]
    shown = await mirror.api("GET", "upstream")
    assert shown["cached_bytes"] <= shown["max_bytes"] == 250_000
    await limits(mirror)
    assert await mirror.names() == ["first", "third"]


async def test_what_is_unused_for_days_goes(mirror: Any, upstream: Any) -> None:
    await mirror.create(cache={"unused_days": 10})
    for name in ("idle", "busy"):
        upstream.add(name)
        await mirror.install(name)
    mirror.advance(days=8)
    assert (await mirror.get("/busy/-/busy-1.0.0.tgz")).status == 200
    await mirror.flush()
    await limits(mirror)
    assert await mirror.names() == ["busy", "idle"]
    mirror.advance(days=4)
    await limits(mirror)
    assert (await mirror.names(), await documents(mirror)) == (["busy"], 1)


@pytest.mark.folder("an open file outlives its deletion")
async def test_a_file_is_read_to_its_end_while_it_is_evicted(mirror: Any, upstream: Any) -> None:
    await mirror.create()
    tarball = upstream.add("read", pad=300_000)
    await mirror.install("read")
    core = mirror.stack.assembly.core
    storage = core.registry.storages()[0]
    store = core.stores.opened(storage.id)
    locator = await value_of(core.catalog, "SELECT b.locator FROM file f JOIN blob b ON b.sha256 = f.sha256")
    blob = store.open(locator)
    await mirror.api("POST", PURGE)
    await mirror.stack.ok("POST", "/repository/main%2Fmirror/gc", {"grace_seconds": 0})
    assert await blob.read(0, len(tarball)) == tarball
    assert await value_of(core.catalog, "SELECT COUNT(*) FROM blob") == 0


async def test_documents_of_packages_that_nobody_installed_are_forgotten(mirror: Any, upstream: Any) -> None:
    await mirror.create()
    for name in ("looked-at", "installed"):
        upstream.add(name)
        await mirror.look_up(name)
    await mirror.install("installed")
    mirror.advance(days=29)
    await limits(mirror)
    assert await documents(mirror) == 2
    mirror.advance(days=2)
    await limits(mirror)
    assert await documents(mirror) == 1
    upstream.stop()
    assert (await mirror.get("/installed")).status == 200


async def test_answers_of_removed_routes_are_not_served(mirror: Any, upstream: Any) -> None:
    await mirror.create()
    upstream.add("moved", "1.0.0")
    await mirror.look_up("moved")
    with type(upstream)() as other:
        other.add("moved", "3.0.0")
        config = {"type": "Proxy", "proxy": {"routes": [{"url": other.url, "name": "other"}]}}
        await mirror.api("PUT", "config", config)
        assert list((await mirror.get("/moved")).json["versions"]) == ["3.0.0"]
        await mirror.api("PUT", "config", {"type": "Proxy", "proxy": {"routes": [{"url": upstream.url, "name": "up"}]}})
        upstream.stop()
        assert (await mirror.get("/moved")).status == 503, "what another route said is not served as stale either"


async def test_images_are_purged_with_the_blobs_that_they_do_not_share(mirror: Any) -> None:
    shared, stack = make_image("shared"), mirror.stack
    both = make_index([shared, make_image("other", architecture="arm64")])
    with ContainerUpstream() as registry:
        registry.push("app", both, "both", children=(shared, make_image("other", architecture="arm64")))
        registry.push("app", make_image("alone"), "alone")
        routes = [{"url": registry.url, "name": "up"}]
        config = {"type": "Proxy", "proxy": {"routes": routes}}
        await stack.add_repository("mirror", format="docker", config=config)
        for image, tag in ((both, "both"), (shared, shared.digest), (make_image("alone"), "alone")):
            assert (await stack.call("GET", f"/v2/main/mirror/app/manifests/{tag}")).body == image.manifest
        catalog = stack.assembly.core.catalog
        for image in (shared, make_image("alone")):
            for blob in image.blobs:
                path = f"/v2/main/mirror/app/blobs/{digest_of(blob)}"
                assert (await stack.call("GET", path)).body == bytes(blob)
        every = {bytes(blob) for image in (shared, make_image("alone")) for blob in image.blobs}
        await until_value(len(every), catalog, "SELECT COUNT(*) FROM package_blob")
        listed = await mirror.package("app")
        assert (listed["source"], listed["route"]) == ("cached", "up")
        tagged = (await stack.ok("GET", "/package/main%2Fmirror/app/versions"))["items"]
        assert {(each["version"], each["route"]) for each in tagged} == {("both", "up"), ("alone", "up")}
        usage = (await stack.ok("GET", "/repository/main%2Fmirror"))["usage_bytes"]
        told = await mirror.api("POST", PURGE, {"dry_run": True})
        assert (told["versions"], told["files"], told["freed_bytes"]) == (3, 3 + len(every), usage)
        found = await mirror.api("POST", PURGE)
        assert {**found, "dry_run": True} == told
        assert await mirror.names() == []
        assert (await stack.ok("GET", "/repository/main%2Fmirror"))["usage_bytes"] == 0
        assert (await stack.call("GET", "/v2/main/mirror/app/manifests/alone")).status == 200
