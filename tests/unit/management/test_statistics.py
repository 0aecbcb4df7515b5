"""Statistics of a repository."""

from __future__ import annotations

import pytest

from pkgrepo.management.api.services import Histogram
from pkgrepo.management.statistics import for_people
from tests.support.images import Registry, make_image
from tests.support.memory_server import Stack

DOCUMENTED = {
    "repository_id", "total_images", "total_tags", "storage_used", "last_activity", "top_images", "format", "type",
    "total_packages", "total_versions", "total_files", "storage_used_bytes", "logical_bytes", "unreferenced_bytes",
    "downloads", "uploads", "warnings", "top_packages", "total_manifests", "total_blobs", "shared_bytes",
    "pending_uploads", "gc", "cache",
}  # fmt: skip


async def test_images_are_counted_with_what_they_share(stack: Stack) -> None:
    made = await stack.add_repository("images", format="docker")
    await stack.add_repository("second", format="docker")
    registry = Registry(stack)
    one, two = make_image("one"), make_image("two")
    await registry.push(one, "v1")
    await registry.push(one, "latest")
    await registry.push(two, "v1", name="main/images/other")
    await registry.push(one, "v1", name="main/second/app")
    await registry.push_blob(b"loose")
    await registry.start()
    found = await stack.ok("GET", f"/repository/{made['id']}/stats")
    assert set(found) == DOCUMENTED
    once = {data for image in (one, two) for data in (image.manifest, *image.blobs)} | {b"loose"}
    every = [*one.blobs, one.manifest, *two.blobs, two.manifest, b"loose"]
    assert (found["total_images"], found["total_tags"], found["total_manifests"]) == (2, 3, 2)
    assert found["total_blobs"] == len(once)
    assert found["storage_used_bytes"] == sum(map(len, once))
    assert found["logical_bytes"] == sum(map(len, every))
    assert found["shared_bytes"] == sum(map(len, {one.manifest, *one.blobs}))
    assert found["unreferenced_bytes"] == 5
    assert found["pending_uploads"] == 1
    assert found["top_images"] == [{"name": "app", "tag_count": 2}, {"name": "other", "tag_count": 1}]
    assert found["last_activity"] is not None
    assert found["gc"] is None
    await stack.ok("POST", f"/repository/{made['id']}/gc")
    assert (await stack.ok("GET", f"/repository/{made['id']}/stats"))["gc"]["state"] == "done"


async def test_packages_of_other_formats_repeat_under_the_names_of_images(stack: Stack) -> None:
    await stack.add_repository()
    await stack.publish("main/py", "demo", "1.0")
    await stack.publish("main/py", "demo", "2.0")
    found = await stack.ok("GET", "/repository/main%2Fpy/stats")
    assert (found["total_images"], found["total_packages"]) == (1, 1)
    assert (found["total_tags"], found["total_versions"]) == (2, 2)
    assert found["top_images"] == [{"name": "demo", "tag_count": 2}]
    assert found["top_packages"][0]["bytes"] == found["logical_bytes"]
    assert found["uploads"] == {"total": 2, "day": 2}


async def test_blobs_are_counted_once_in_a_repository_and_shared_across_kinds(stack: Stack) -> None:
    for name in ("one", "two"):
        await stack.add_repository(name, format="maven")
    await stack.add_repository("images", format="docker")
    twice, files, layer = b"twice in one", b"in two of files", b"also a layer of an image"
    for path, data in {
        "one/x/a": twice,
        "one/x/b": twice,
        "one/x/c": files,
        "one/x/d": layer,
        "two/x/c": files,
    }.items():
        name = path.rpartition("/")[2]
        assert (await stack.call("PUT", f"/repositories/main/{path}/1/{name}-1.jar", raw=data)).status == 201
    await Registry(stack).push_blob(layer)
    found = await stack.ok("GET", "/repository/main%2Fone/stats")
    assert (found["total_files"], found["total_blobs"]) == (4, 3)
    assert found["storage_used_bytes"] == len(twice + files + layer)
    assert found["logical_bytes"] == len(twice + twice + files + layer)
    assert found["shared_bytes"] == len(files + layer)
    assert found["unreferenced_bytes"] == 0


async def test_an_empty_repository_has_statistics(stack: Stack) -> None:
    await stack.add_repository()
    found = await stack.ok("GET", "/repository/main%2Fpy/stats")
    assert (found["storage_used"], found["last_activity"], found["top_images"]) == ("0B", None, [])


async def test_only_admins_may_read_statistics(stack: Stack) -> None:
    await stack.add_repository()
    await stack.add_user("bob")
    assert (await stack.api("GET", "/repository/main%2Fpy/stats", who="bob")).status == 403
    assert (await stack.api("GET", "/repository/main%2Fpy/stats", who=None)).status == 401


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0B"), (1023, "1023B"), (1024, "1KB"), (1536, "1.5KB"), (2684354560, "2.5GB"), (2**70, "1024EB")],
)
def test_sizes_have_binary_units(size: int, text: str) -> None:
    assert for_people(size) == text


async def test_downloads_and_uploads_are_counted_by_day(stack: Stack) -> None:
    await stack.add_repository("py")
    filename = await stack.publish("main/py", "demo", "1.0")
    for _ in range(2):
        await stack.call("GET", f"/repositories/main/py/demo/1.0/{filename}", who=None)
    await stack.assembly.core.downloads.flush()
    found = await stack.ok("GET", "/statistics?days=3")
    assert [(each["downloads"], each["uploads"], each["hit_ratio"]) for each in found["days"]] == [
        (0, 0, None),
        (0, 0, None),
        (2, 1, None),
    ]
    assert [each["count"] for each in found["times"] if each["name"] == "python"] == [2]
    assert (await stack.api("GET", "/statistics?days=0")).status == 422
    await stack.add_user("ada")
    for path in ("/statistics", "/server/state"):
        assert [(await stack.api("GET", path, who=who)).status for who in ("ada", None)] == [403, 401]


async def test_the_state_has_the_checks_and_the_versions(stack: Stack) -> None:
    found = await stack.ok("GET", "/server/state")
    assert found["status"] == "ok"
    assert {each["name"]: each["status"] for each in found["checks"]} == dict.fromkeys(
        (
            "catalog",
            "database",
            "storage main",
            "stored bytes",
            "readable layout",
            "searches",
            "webhooks",
            "advisories",
            "backup",
            "twins",
        ),
        "ok",
    )
    assert {"pkgrepo", "commit", "catalog schema", "Python", "Twisted", "SQLite"} == set(found["versions"])


def test_quantiles_are_bounds_of_classes() -> None:
    assert Histogram((0.1, 1.0), [0, 0, 0]).quantile(0.5) is None
    counted = Histogram((0.1, 1.0), [5, 4, 1])
    assert [counted.quantile(part) for part in (0.5, 0.9, 1.0)] == [0.1, 1.0, 1.0]
    assert (counted + counted).total == 20
