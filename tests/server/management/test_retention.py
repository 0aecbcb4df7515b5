"""Retention: what rules select in each format, the preview, runs, confirmation and schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.repositories.retention.schedule import RetentionSchedule
from tests.server.management.test_trash import Images, Repository, entries
from tests.support.images import digest_of, make_artifact, make_image, make_index
from tests.support.memory_server import Stack
from tests.support.npm_packages import make_publish

pytestmark = pytest.mark.server

DAY_MS = 86_400_000
PLACE = "/repository/main%2Fall/retention"


def advance(stack: Stack, days: float) -> None:
    """Advance the server's clock."""
    clock = stack.assembly.core.clock
    now = clock.now_ms
    clock.now_ms = lambda: now() + round(days * DAY_MS)  # type: ignore[method-assign]


async def set_rules(stack: Stack, *rules: Mapping[str, Any], **more: Any) -> None:
    await stack.ok("PUT", "/repository/main%2Fall/config/retention", {"rules": list(rules), **more})


async def preview(stack: Stack, *rules: Mapping[str, Any]) -> set[str]:
    """The names of what these rules would remove."""
    body = {"retention": {"rules": list(rules)}} if rules else {}
    found = await stack.ok("POST", f"{PLACE}?dry_run=true", body)
    assert all(each["reason"].startswith(each["rule"]) for each in found["victims"])
    return {each["version"] for each in found["victims"]}


async def run(stack: Stack, query: str = "confirm=true", **rest: Any) -> Any:
    return await stack.ok("POST", f"{PLACE}?wait=true&{query}", {}, **rest)


@pytest_twisted.async_yield_fixture
async def npm(stack: Stack) -> Any:
    """Versions of two packages: 1.0.0 to 1.4.0 are a day apart, and so are 2.0.0-rc.1 and 2.0.0, which is latest."""
    repository = Repository(stack, "npm")
    await stack.add_repository("all", format="npm", config={"type": "Hosted"})
    for version in ("1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "2.0.0-rc.1", "2.0.0"):
        await repository.send("PUT", "/demo", make_publish("demo", version), "application/json")
        advance(stack, 1)
    await repository.send("PUT", "/other", make_publish("other", "1.0.0"), "application/json")
    yield repository


# What a rule is about, what it keeps, and what goes. The tag next is on 1.4.0.
SELECTED: tuple[tuple[Mapping[str, Any], Mapping[str, Any], set[str]], ...] = (
    ({}, {"last": 3}, {"1.0.0", "1.1.0", "1.2.0", "1.3.0"}),
    ({}, {"newer_than_days": 4}, {"1.0.0", "1.1.0", "1.2.0", "1.3.0"}),
    ({}, {"newer_than_days": 4, "last": 6}, {"1.0.0"}),
    ({"packages": ["oth*"]}, {}, set()),  # its only version is latest
    ({"packages": ["dem?"], "prerelease": True}, {}, {"2.0.0-rc.1"}),
    ({"prerelease": False}, {"last": 5}, {"1.0.0"}),
    ({"versions": "1.[01].*"}, {}, {"1.0.0", "1.1.0"}),
    ({"versions": "/^1\\.[3-9]/"}, {}, {"1.3.0", "1.4.0"}),
    ({"versions": ">=1.2 <1.4.0"}, {}, {"1.2.0", "1.3.0"}),
    ({"versions": ">=1.2.0, !=1.3.0"}, {}, {"1.2.0", "1.4.0", "2.0.0-rc.1"}),
    ({"tags": ["next"]}, {}, {"1.4.0"}),
    ({"tagged": False}, {"last": 5}, set()),
)


async def test_rules_select_versions(npm: Repository) -> None:
    stack = npm.stack
    headers = {"Content-Type": "application/json"}
    path = "/repositories/main/all/-/package/demo/dist-tags/next"
    assert (await stack.call("PUT", path, raw=b'"1.4.0"', headers=headers)).status == 201
    for match, keep, gone in SELECTED:
        # what a tag stands for goes only by rules about tags
        expected = gone if "tags" in match else gone - {"1.4.0"}
        assert await preview(stack, {"name": "rule", "match": match, "keep": keep}) == expected, (match, keep)


async def test_a_clause_of_any_rule_keeps(npm: Repository) -> None:
    old = {"name": "old", "keep": {"newer_than_days": 1}}
    assert await preview(npm.stack, old, {"name": "line", "match": {"versions": "1.2.*"}, "keep": {"last": 1}}) == {
        "1.0.0",
        "1.1.0",
        "1.3.0",
        "1.4.0",
        "2.0.0-rc.1",
    }
    assert await preview(npm.stack, {**old, "enabled": False}) == set()


async def test_downloads_keep_versions(npm: Repository) -> None:
    stack = npm.stack
    assert (await npm.read("/demo/-/demo-1.0.0.tgz"))[0] == 200
    await stack.assembly.core.downloads.flush()
    rule = {"name": "unused", "keep": {"downloaded_within_days": 3}}
    assert await preview(stack, rule) == {"1.1.0", "1.2.0", "1.3.0", "1.4.0", "2.0.0-rc.1"}
    advance(stack, 5)
    assert "1.0.0" in await preview(stack, rule)


async def test_a_run_moves_to_the_trash_what_the_preview_lists(npm: Repository) -> None:
    stack = npm.stack
    used = await npm.used()
    rule = {"name": "keep three", "match": {"packages": ["demo"]}, "keep": {"last": 3}}
    await set_rules(stack, rule, max_delete_percent=50)
    found = await stack.ok("POST", f"{PLACE}?dry_run=true", {})
    assert (found["count"], found["examined"], found["percent"], found["needs_confirmation"]) == (4, 8, 50.0, False)
    assert found["bytes"] == sum(each["size"] for each in found["victims"]) > 0
    done = await run(stack, "")
    assert (done["removed"], done["freed_bytes"], done["victims"]) == (4, found["bytes"], found["victims"])
    assert await npm.used() == used  # until the trash is purged
    (entry,) = await entries(stack)
    assert (entry["items"], entry["reason"], entry["by"]) == (4, "retention: keep three", "admin")
    shown = await stack.ok("GET", "/package/main%2Fall/demo/versions")
    assert {each["version"] for each in shown["items"]} == {"1.4.0", "2.0.0-rc.1", "2.0.0"}
    assert (await run(stack, ""))["count"] == 0
    await stack.ok("POST", f"/trash/{entry['id']}/restore")
    assert await preview(stack) == {"1.0.0", "1.1.0", "1.2.0", "1.3.0"}


async def test_a_run_that_takes_too_much_waits_for_confirmation(npm: Repository) -> None:
    stack = npm.stack
    await set_rules(stack, {"name": "all but two", "keep": {"last": 2}, "action": "delete"})
    waiting = await run(stack, "")
    assert (waiting["needs_confirmation"], waiting["count"], waiting["removed"]) == (True, 5, 0)
    assert (await npm.read("/demo/-/demo-1.0.0.tgz"))[0] == 200
    used = await npm.used()
    done = await run(stack, "confirm=true")
    assert (done["needs_confirmation"], done["removed"], used - await npm.used()) == (False, 5, done["freed_bytes"])
    assert await entries(stack) == []  # deleted for good


async def test_what_goes_is_the_same_for_those_who_may_not_run_it(npm: Repository) -> None:
    stack = npm.stack
    await set_rules(stack, {"name": "rule", "keep": {"last": 1}})
    await stack.add_user("writer")
    await stack.grant("writer", "main/all", "read", "write", "delete", "edit")
    for who, status in (("writer", 403), (None, 401)):
        assert (await stack.api("POST", f"{PLACE}?dry_run=true", {}, who=who)).status == status
    assert (await stack.api("POST", f"{PLACE}?dry_run=maybe", {})).status == 422
    assert (await stack.api("POST", PLACE, {"retention": {"rules": []}})).status == 422
    await stack.ok("PUT", "/repository/main%2Fall/config/retention", raw=b"null")
    assert (await stack.api("POST", f"{PLACE}?dry_run=true", {})).status == 409


WRONG: tuple[tuple[Any, str], ...] = (
    ({"schedule": "61 * * * *"}, "/schedule"),
    ({"schedule": "0 0 30 2 *"}, "/schedule"),
    ({"rules": [{"name": "a", "match": {"versions": "/(a+)+/"}}]}, "/rules/0/match/versions"),
    ({"rules": [{"name": "a", "match": {"versions": "/[/"}}]}, "/rules/0/match/versions"),
    ({"rules": [{"name": "a", "keep": {"last": -1}}]}, "/rules/0/keep/last"),
    ({"rules": [{"name": "a", "action": "shred"}]}, "/rules/0/action"),
    ({"rules": [{"name": "a", "when": 1}]}, "/rules/0/when"),
    ({"max_delete_percent": 101}, "/max_delete_percent"),
)


async def test_wrong_rules_are_refused(stack: Stack) -> None:
    await stack.add_repository("all", format="npm", config={"type": "Hosted"})
    for value, pointer in WRONG:
        refused = await stack.api("PUT", "/repository/main%2Fall/config/retention", value)
        assert (refused.status, refused.pointer) == (422, pointer), value


async def test_a_range_of_what_is_no_version_is_refused(npm: Repository) -> None:
    rules = {"rules": [{"name": "rule", "match": {"versions": ">=one"}}]}
    refused = await npm.stack.api("PUT", "/repository/main%2Fall/config/retention", rules)
    assert (refused.status, refused.pointer) == (422, "/rules/0/match/versions")


async def test_builds_of_a_java_snapshot_are_counted_within_their_version(stack: Stack) -> None:
    java = Repository(stack, "maven")
    await java.fill()
    builds = {"2.0-SNAPSHOT 20260101.000000-1"}
    snapshots = {"name": "snapshots", "match": {"snapshot": True}, "keep": {"last": 1}}
    assert await preview(stack, snapshots) == builds
    assert await preview(stack, {"name": "releases", "match": {"snapshot": False}, "keep": {"last": 1}}) == {"1.0"}
    assert await preview(stack, {"name": "both", "keep": {"last": 1}}) == builds | {"1.0"}
    await set_rules(stack, snapshots)
    await run(stack)
    metadata = (await java.read("/com/example/demo/2.0-SNAPSHOT/maven-metadata.xml"))[1]
    assert (b"20260102.000000-2" in metadata, b"20260101.000000-1" in metadata) == (True, False)
    assert (await java.read("/com/example/demo/2.0-SNAPSHOT/demo-2.0-20260101.000000-1.pom"))[0] == 404
    assert (await java.read("/com/example/demo/2.0-SNAPSHOT/demo-2.0-20260102.000000-2.pom"))[0] == 200
    await set_rules(stack, {"name": "snapshots", "match": {"snapshot": True}})
    await run(stack)
    assert b"SNAPSHOT" not in (await java.read("/com/example/demo/maven-metadata.xml"))[1]


@pytest.mark.parametrize(("format", "gone"), [("python", "1.0"), ("ruby", "1.0.0"), ("conda", "1.0")])
async def test_old_versions_of_every_format_go(stack: Stack, format: str, gone: str) -> None:
    repository = Repository(stack, format)
    await repository.fill()
    before = await repository.shown()
    await set_rules(stack, {"name": "rule", "keep": {"last": 1}})
    assert await preview(stack) == {gone}
    assert (await run(stack))["removed"] == 1
    assert (await stack.api("GET", repository.place(gone))).status == 404
    (entry,) = await entries(stack)
    await stack.ok("POST", f"/trash/{entry['id']}/restore")
    after = await repository.shown()  # the lines of gems are in the order in which they came
    assert [sorted(body.splitlines()) for _, body in after] == [sorted(body.splitlines()) for _, body in before]


async def test_an_image_goes_with_its_children_and_signatures(stack: Stack) -> None:
    images = Images(stack)
    await images.fill()
    registry = images.registry
    shared = make_image("shared")
    newer = make_index([images.children[1], shared])
    await registry.push(shared)
    advance(stack, 1)
    await registry.push(newer, "v2")
    await registry.push(images.children[0], "old")
    cosign = make_artifact(None, "application/vnd.example.signature")
    cosign_tag = f"sha256-{images.index.digest.removeprefix('sha256:')}.sig"
    await registry.push(cosign, cosign_tag)
    with_it = {"v1", images.signature.digest, cosign_tag}
    assert await preview(stack, {"name": "old", "keep": {"last": 2}}) == with_it
    assert await preview(stack, {"name": "old", "keep": {"last": 2, "tagged": ["v*"]}}) == set()
    await set_rules(stack, {"name": "v1", "match": {"tags": ["v1"]}})
    await run(stack)
    assert await images.status("v1") == 404
    for each in (images.index, images.signature, cosign):
        assert await images.status(each.digest) == 404
    # a child that another index has, and one with a tag of its own, stay with their blobs
    for name in ("v2", "old", shared.digest, images.children[1].digest, images.children[0].digest):
        assert await images.status(name) == 200
    for image in (*images.children, shared):
        for blob in image.blobs:
            assert (await registry.below("GET", f"blobs/{digest_of(blob)}")).status == 200
    (entry,) = await entries(stack)
    await stack.ok("POST", f"/trash/{entry['id']}/restore")
    assert await images.whole()


async def test_tags_of_images_are_removed_alone(stack: Stack) -> None:
    images = Images(stack)
    await images.fill()
    await images.registry.push(images.children[0], "pr-1")
    await images.registry.push(images.index, "pr-2")
    await set_rules(stack, {"name": "pr", "match": {"tags": ["pr-*"]}, "keep": {"in_use": False}, "action": "untag"})
    assert await preview(stack) == {"pr-1", "pr-2"}
    await run(stack)
    assert [await images.status(each) for each in ("pr-1", "pr-2", "v1")] == [404, 404, 200]
    assert await images.whole()


async def test_untagged_images_go_when_no_push_can_need_them(stack: Stack) -> None:
    images = Images(stack)
    await images.fill()
    loose = make_image("loose")
    await images.registry.push(loose)
    rule = {"name": "untagged", "match": {"tagged": False}}
    assert await preview(stack, rule) == set()
    advance(stack, 2)
    assert await preview(stack, rule) == {loose.digest}


async def test_immutable_tags_stay(stack: Stack) -> None:
    images = Images(stack)
    await images.fill()
    config = {"type": "Hosted", "policy": {"immutable_tags": ["v*"]}}
    await stack.ok("PUT", "/repository/main%2Fall/config", config)
    assert await preview(stack, {"name": "all"}) == set()


async def test_a_schedule_runs_once_when_it_is_due(npm: Repository) -> None:
    stack = npm.stack
    core = stack.assembly.core
    await set_rules(stack, {"name": "old", "keep": {"last": 6}}, schedule="0 4 * * *", max_delete_percent=50)
    schedule = RetentionSchedule(core.context, work=core.retention, jobs=core.jobs, reactor=core.reactor)
    await schedule.run_once()
    jobs = "/job?kind=retention"
    assert (await stack.ok("GET", jobs))["items"] == []  # it was just seen
    advance(stack, 1)
    await schedule.run_once()
    await schedule.run_once()
    (job,) = (await stack.ok("GET", jobs))["items"]
    assert (job["state"], job["result"]["removed"], job["started_by"]) == ("done", 1, "")
    (entry,) = await entries(stack)
    assert (entry["by"], entry["reason"]) == ("system", "retention: old")


async def test_a_dist_tag_is_removed_and_its_version_stays(npm: Repository) -> None:
    stack = npm.stack
    headers = {"Content-Type": "application/json"}
    await stack.call("PUT", "/repositories/main/all/-/package/demo/dist-tags/pr-7", raw=b'"1.1.0"', headers=headers)
    rule = {"name": "branches", "match": {"tags": ["pr-*"]}, "keep": {"newer_than_days": 4}, "action": "untag"}
    await set_rules(stack, rule)
    assert await preview(stack) == {"1.1.0"}
    await run(stack)
    document = await npm.send("GET", "/demo")
    assert ("pr-7" in document.json["dist-tags"], "1.1.0" in document.json["versions"]) == (False, True)
    assert document.json["dist-tags"]["latest"] == "2.0.0"


async def test_what_is_restored_is_as_old_as_before(stack: Stack) -> None:
    images = Images(stack)
    await images.fill()
    for number in (1, 2, 3):
        await images.registry.push(make_image(f"build {number}"), f"build-{number}")
        advance(stack, 1)
    await stack.ok("DELETE", "/package/main%2Fall/app/versions/build-2")  # the tag, without its manifest
    rule = {"name": "builds", "match": {"tags": ["build-*"]}, "keep": {"last": 1}}
    await set_rules(stack, rule)
    assert await preview(stack) == {"build-1"}
    await run(stack)
    assert [await images.status(f"build-{number}") for number in (1, 2, 3)] == [404, 404, 200]
    for entry in (await stack.ok("GET", "/trash"))["items"]:
        await stack.ok("POST", f"/trash/{entry['id']}/restore")
    assert [await images.status(f"build-{number}") for number in (1, 2, 3)] == [200, 200, 200]
    assert await preview(stack) == {"build-1", "build-2"}


async def test_what_is_pinned_of_an_image_stays(stack: Stack) -> None:
    images = Images(stack)
    await images.fill()
    loose = make_image("loose")
    await images.registry.push(loose)
    for number in (1, 2):
        await images.registry.push(make_image(f"build {number}"), f"build-{number}")
    advance(stack, 2)
    rules = ({"name": "builds", "match": {"tags": ["build-*"]}}, {"name": "untagged", "match": {"tagged": False}})
    assert await preview(stack, *rules) == {"build-1", "build-2", loose.digest}
    for pinned in ("build-1", loose.digest):
        await stack.ok("PUT", f"/package/main%2Fall/app/versions/{pinned.replace(':', '%3A')}/pin", {})
    assert await preview(stack, *rules) == {"build-2"}
