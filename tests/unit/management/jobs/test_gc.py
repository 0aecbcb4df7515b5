"""Garbage collection by the API: what is removed and kept, the answer, and the permission."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred

from pkgrepo.repositories.upkeep.gc import KIND
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.images import linked_blobs
from pkgrepo.storage.catalog.images.linked_blobs import FRESH_MS, LASTS_MS
from tests.support.images import Image, Registry, digest_of, make_artifact, make_image, make_index
from tests.support.memory_server import WITHOUT_CONDA, Stack

GC = "/repository/main%2Fimages/gc"
LATER_MS = 48 * 3_600_000  # much longer than the default grace period
LAST_MS = LASTS_MS + FRESH_MS + 1  # when leases are over


@pytest_twisted.async_yield_fixture
async def stack(make_stack: Any) -> Any:
    """A server that keeps nothing in a trash."""
    yield await make_stack(retention__trash_days=0)


@pytest_twisted.async_yield_fixture
async def registry(stack: Stack) -> Any:
    """A registry with one public repository, main/images."""
    await stack.add_repository("images", format="docker")
    yield Registry(stack)


def advance(stack: Stack, ms: int) -> None:
    """Advance the server's clock."""
    clock = stack.assembly.core.clock
    now = clock.now_ms
    clock.now_ms = lambda: now() + ms  # type: ignore[method-assign]


async def collect(registry: Registry, **options: Any) -> Any:
    return await registry.stack.ok("POST", GC, {"grace_seconds": 0, **options})


async def stored(stack: Stack) -> set[str]:
    """The digests of the blob files on disk."""
    core = stack.assembly.core
    storage = core.registry.storages()[0]
    store: Any = core.stores.opened(storage.id)
    return {re.search("[0-9a-f]{64}", locator)[0] for locator, _, _ in await store.scan()}  # type: ignore[index]


async def pull(registry: Registry, image: Image) -> None:
    reply = await registry.below("GET", f"manifests/{image.digest}")
    assert (reply.status, reply.body) == (200, image.manifest)
    for data in image.blobs:
        found = await registry.below("GET", f"blobs/{digest_of(data)}")
        assert (found.status, found.body) == (200, data)


def names(*images: Image) -> set[str]:
    return {digest_of(data)[7:] for image in images for data in (image.manifest, *image.blobs)}


async def test_blobs_of_a_deleted_manifest_are_removed_and_others_stay(registry: Registry) -> None:
    gone, kept = make_image("gone"), make_image("kept")
    await registry.push(gone, "v1")
    await registry.push(kept, "v2")
    assert (await registry.below("DELETE", f"manifests/{gone.digest}")).status == 202
    advance(registry.stack, 1000)
    found = await collect(registry)
    lost = names(gone) - names(kept)
    size = sum(len(data) for data in (gone.manifest, *gone.blobs) if digest_of(data)[7:] in lost)
    assert found["removed"] == {"blobs": len(lost), "manifests": 0, "uploads": 0}
    assert found["freed_bytes"] == size == found["bytes_freed"]
    assert found["state"] == "done"
    assert found["errors"] == []
    assert await stored(registry.stack) == names(kept)
    await pull(registry, kept)
    again = await collect(registry)
    assert again["removed"] == {"blobs": 0, "manifests": 0, "uploads": 0}


async def test_a_dry_run_reports_what_the_next_run_removes(registry: Registry) -> None:
    shared = make_image("shared")
    await registry.push(shared, "v1")
    await registry.push(shared, "v1", name="main/images/other")
    await registry.push(make_image("untagged"))
    await registry.push_blob(b"loose")
    await registry.below("DELETE", f"manifests/{shared.digest}")
    advance(registry.stack, LAST_MS)
    before = await stored(registry.stack)
    dry = await collect(registry, dry_run=True, delete_untagged=True)
    assert await stored(registry.stack) == before
    assert dry["dry_run"] is True
    real = await collect(registry, delete_untagged=True)
    for key in ("removed", "freed_bytes", "kept_by_grace", "scanned"):
        assert dry[key] == real[key], key
    assert real["removed"]["manifests"] == 1
    assert await stored(registry.stack) == names(shared)
    registry.name = "main/images/other"
    await pull(registry, shared)


async def test_the_grace_period_keeps_new_blobs(registry: Registry) -> None:
    await registry.push_blob(b"a layer whose manifest is still to come")
    young = await registry.stack.ok("POST", GC)
    assert (young["removed"]["blobs"], young["kept_by_grace"]) == (0, 1)
    advance(registry.stack, LATER_MS)
    old = await registry.stack.ok("POST", GC)
    assert (old["removed"]["blobs"], old["kept_by_grace"]) == (1, 0)
    assert await stored(registry.stack) == set()


async def test_manifests_that_others_refer_to_are_not_untagged(registry: Registry) -> None:
    children = [make_image("one"), make_image("two")]
    index = make_index(children)
    orphan, loose = make_image("orphan"), make_image("loose")
    signature = make_artifact(children[0], "application/x.signature")
    stray = make_artifact(loose, "application/x.signature")
    for each in (*children, orphan, loose, signature, stray):
        await registry.push(each)
    loose_index = make_index([orphan])
    await registry.push(loose_index)
    await registry.push(index, "v1")
    advance(registry.stack, LAST_MS)
    assert (await collect(registry))["removed"]["manifests"] == 0
    found = await collect(registry, delete_untagged=True)
    assert found["removed"]["manifests"] == 4
    for each in (*children, index, signature):
        await pull(registry, each)
    for each in (orphan, loose, loose_index, stray):
        assert (await registry.below("GET", f"manifests/{each.digest}")).status == 404
    assert await stored(registry.stack) == names(*children, index, signature)


async def test_unfinished_uploads_are_removed_after_a_day(registry: Registry) -> None:
    started = await registry.start()
    assert (await registry.continue_upload(started, "PATCH", b"half")).status == 202
    assert (await collect(registry))["removed"]["uploads"] == 0
    advance(registry.stack, LATER_MS)
    dry = await collect(registry, dry_run=True)
    assert (dry["removed"]["uploads"], (await collect(registry))["removed"]["uploads"]) == (1, 1)


async def test_unfinished_uploads_are_removed_earlier_if_they_were_idle_for_a_given_time(registry: Registry) -> None:
    started = await registry.start()
    assert (await registry.continue_upload(started, "PATCH", b"half")).status == 202
    advance(registry.stack, 60_000)
    assert (await collect(registry, upload_idle_seconds=61))["removed"]["uploads"] == 0
    dry = await collect(registry, upload_idle_seconds=59, dry_run=True)
    assert dry["removed"]["uploads"] == 1
    found = await collect(registry, upload_idle_seconds=59)
    assert (found["removed"]["uploads"], [each for each in found["kept"] if each["reason"] == "open_uploads"]) == (
        1,
        [],
    )
    assert (await registry.continue_upload(started, "PATCH", b"more")).status == 404


async def test_blobs_that_other_repositories_and_formats_use_stay(registry: Registry) -> None:
    await registry.stack.add_repository(config=WITHOUT_CONDA)
    await registry.stack.publish("main/py", "demo", "1.0")
    await registry.stack.add_repository("second", format="docker")
    image = make_image("both")
    await registry.push(image, "v1")
    await registry.push(image, "v1", name="main/second/app")
    await registry.below("DELETE", f"manifests/{image.digest}")
    before = await stored(registry.stack)
    advance(registry.stack, LATER_MS)
    assert (await collect(registry, delete_untagged=True))["removed"]["blobs"] == 0
    assert await stored(registry.stack) == before


async def test_a_run_finishes_the_removal_that_a_crash_interrupted(registry: Registry) -> None:
    core = registry.stack.assembly.core
    digest = await registry.push_blob(b"condemned")
    await registry.below("DELETE", f"blobs/{digest}")

    def condemn(tx: Any) -> None:
        tx.execute("UPDATE blob SET state = 'deleting'")

    await core.catalog.write(condemn)
    found = await registry.stack.ok("POST", GC)
    assert found["removed"]["blobs"] == 1
    assert core.catalog.peek(blobs.count_blobs, core.registry.storages()[0].id) == 0
    assert await stored(registry.stack) == set()


async def test_a_second_request_is_answered_with_the_running_job(registry: Registry) -> None:
    stack, held = registry.stack, Deferred[None]()
    core = stack.assembly.core

    async def slow(_progress: Progress) -> Any:
        await held
        return {}

    uid = await core.jobs.begin(KIND, core.registry.storages()[0].uid, {"on": "storage 'main'"}, slow)
    reply = await stack.api("POST", GC)
    assert reply.status == 409
    assert uid in reply.json["detail"]
    assert reply.headers["location"] == f"/api/job/{uid}"
    held.callback(None)
    await core.jobs.wait(uid)
    assert (await stack.api("POST", GC)).status == 200


async def test_a_request_that_does_not_wait_is_answered_with_the_job(registry: Registry) -> None:
    stack = registry.stack
    reply = await stack.api("POST", f"{GC}?wait=0")
    assert reply.status == 202
    assert reply.json["status"] == "running"
    uid = reply.json["id"]
    assert reply.headers["location"] == f"/api/job/{uid}"
    await stack.assembly.core.jobs.wait(uid)
    job = await stack.ok("GET", f"/job/{uid}")
    assert (job["state"], job["result"]["job_id"]) == ("done", uid)
    assert (await stack.ok("GET", GC))["id"] == uid
    assert (await stack.api("GET", f"/job/{uid}", who=None)).status == 401
    await stack.add_user("bob")
    assert (await stack.api("GET", f"/job/{uid}", who="bob")).status == 404
    assert (await stack.api("GET", "/job/no-such")).status == 404


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_only_admins_may_collect_garbage(registry: Registry, method: str) -> None:
    await registry.stack.add_user("bob")
    await registry.stack.grant("bob", "main/images", "read", "write", "delete", "edit")
    assert (await registry.stack.api(method, GC, who="bob")).status == 403
    assert (await registry.stack.api(method, GC, who=None)).status == 401


async def test_invalid_parameters_are_refused(registry: Registry) -> None:
    stack = registry.stack
    assert (await stack.api("POST", GC, {"grace_seconds": -1})).status == 422
    assert (await stack.api("POST", GC, {"grace": 1})).status == 422
    assert (await stack.api("POST", f"{GC}?wait=soon")).status == 422


async def test_a_job_of_a_dead_process_ends_with_its_lease(registry: Registry) -> None:
    stack = registry.stack
    core = stack.assembly.core
    uid = (await stack.ok("POST", GC))["job_id"]

    def revive(tx: Any) -> None:
        now_ms = core.clock.now_ms()
        tx.execute("UPDATE job SET state = 'running', finished_at = NULL, lease_until = ?", (now_ms + 60_000,))

    await core.catalog.write(revive)
    assert (await stack.api("POST", GC)).status == 409
    advance(stack, 61_000)
    assert (await stack.api("POST", GC)).status == 200
    assert (await stack.ok("GET", f"/job/{uid}"))["state"] == "failed"


async def test_a_blob_that_a_client_was_told_of_is_kept_for_the_grace_period(registry: Registry) -> None:
    layer = await registry.push_blob(b"a layer that many clients read")
    child = make_image("child")
    await registry.push(child)
    for path in (f"blobs/{layer}", f"manifests/{child.digest}"):
        assert (await registry.below("GET", path)).status == 200
    advance(registry.stack, LATER_MS)
    for path in (f"blobs/{layer}", f"manifests/{child.digest}"):
        assert (await registry.below("HEAD", path)).status == 200
    found = await registry.stack.ok("POST", GC, {"delete_untagged": True})
    assert found["removed"] == {"blobs": 0, "manifests": 0, "uploads": 0}
    assert (await registry.below("GET", f"blobs/{layer}")).status == 200


async def test_the_grace_period_of_a_manifest_begins_when_it_loses_its_tag(registry: Registry) -> None:
    image = make_image()
    await registry.push(image, "v1")
    advance(registry.stack, LATER_MS)
    assert (await registry.below("DELETE", "manifests/v1")).status == 202
    options = {"delete_untagged": True}
    assert (await registry.stack.ok("POST", GC, options))["removed"]["manifests"] == 0
    advance(registry.stack, LATER_MS)
    assert (await registry.stack.ok("POST", GC, options))["removed"]["manifests"] == 1
    assert await stored(registry.stack) == set()


def kept(found: Any) -> dict[str, int]:
    """How many things a collection kept, by reason."""
    return {each["reason"]: each["count"] for each in found["kept"]}


async def client(registry: Registry) -> str:
    """A bearer token for all actions on the image, as each run of a client program requests one."""
    return await registry.stack.bearer(scope="repository:main/images/app:pull,push,delete")


async def test_the_default_grace_period_is_15_minutes_and_the_answer_names_it(registry: Registry) -> None:
    image = make_image()
    await registry.push(image, "v1")
    await registry.below("DELETE", f"manifests/{image.digest}")
    advance(registry.stack, 1000)
    found = await registry.stack.ok("POST", GC)
    assert (found["removed"]["blobs"], found["kept_by_grace"]) == (0, 3)
    (only,) = found["kept"]
    assert (only["reason"], only["count"]) == ("grace_time", 3)
    assert "grace_seconds" in only["message"]
    until = datetime.fromisoformat(only["until"]).timestamp() * 1000
    assert 0 < until - registry.stack.assembly.core.clock.now_ms() <= 15 * 60_000
    advance(registry.stack, 15 * 60_000)
    found = await registry.stack.ok("POST", GC)
    assert (found["removed"]["blobs"], found["kept"]) == (3, [])
    assert await stored(registry.stack) == set()


async def test_the_answer_names_what_only_other_parameters_remove(registry: Registry) -> None:
    await registry.push(make_image(), "v1")
    await registry.below("DELETE", "manifests/v1")
    await registry.start()
    advance(registry.stack, 1000)
    found = await collect(registry)
    messages = {each["reason"]: (each["count"], each["message"], each["until"]) for each in found["kept"]}
    assert messages.keys() == {"untagged", "upload"}
    assert "delete_untagged" in messages["untagged"][1]
    assert messages["untagged"][2] is None
    assert (await collect(registry, delete_untagged=True))["removed"]["manifests"] == 1


@pytest.mark.parametrize("how", ["uploaded", "asked for", "mounted"])
async def test_without_a_grace_period_blobs_of_a_running_push_are_kept(registry: Registry, how: str) -> None:
    image, one = make_image(), await client(registry)
    if how != "uploaded":
        await registry.push(image, "old", name="" if how == "asked for" else "main/images/base")
    for blob in image.blobs:
        digest = digest_of(blob)
        if how == "uploaded":
            await registry.push_blob(blob, who=one)
        elif how == "asked for":
            assert (await registry.below("HEAD", f"blobs/{digest}", who=one)).status == 200
        else:
            query = f"?mount={digest}&from=main/images/base"
            assert (await registry.start(query)).status == 201
    if how == "asked for":
        assert (await registry.below("DELETE", f"manifests/{image.digest}")).status == 202
    advance(registry.stack, 1000)
    found = await collect(registry, delete_untagged=True)
    assert (found["removed"]["blobs"], kept(found)) == (1 if how == "asked for" else 0, {"push_under_way": 2})
    assert (await registry.put(image, "v1", who=one)).status == 201
    await pull(registry, image)


async def test_blobs_are_not_kept_for_a_push_that_is_complete(registry: Registry) -> None:
    image, one, other = make_image(), await client(registry), await client(registry)
    assert one != other
    await registry.push(image, "v1", who=one)
    for blob in image.blobs:
        assert (await registry.below("HEAD", f"blobs/{digest_of(blob)}", who=other)).status == 200
    await registry.below("DELETE", f"manifests/{image.digest}")
    advance(registry.stack, 1000)
    assert kept(await collect(registry)) == {"push_under_way": 2}  # the other client still pushes
    advance(registry.stack, LAST_MS)
    assert (await collect(registry))["removed"]["blobs"] == 2
    await registry.push(image, "v1", who=one)
    await registry.below("DELETE", f"manifests/{image.digest}")
    advance(registry.stack, 1000)
    assert kept(await collect(registry)) == {}
    assert await stored(registry.stack) == set()


async def test_manifests_are_kept_for_an_index_that_is_being_pushed(registry: Registry) -> None:
    children = [make_image("one"), make_image("two", architecture="arm64")]
    who = await client(registry)
    for each in children:
        await registry.push(each, who=who)
    advance(registry.stack, 1000)
    found = await collect(registry, delete_untagged=True)
    assert (found["removed"], kept(found)) == ({"blobs": 0, "manifests": 0, "uploads": 0}, {"push_under_way": 2})
    await registry.push(make_index(children), "v1", who=who)
    await registry.below("DELETE", f"manifests/{make_index(children).digest}")
    advance(registry.stack, 1000)
    assert (await collect(registry, delete_untagged=True))["removed"]["manifests"] == 2
    assert await stored(registry.stack) == set()


async def test_requests_of_callers_who_may_not_push_keep_no_blob(registry: Registry) -> None:
    image = make_image()
    await registry.push(image, "v1")
    await registry.stack.add_user("rita")
    for who in ("rita", None):
        for blob in image.blobs:
            assert (await registry.below("HEAD", f"blobs/{digest_of(blob)}", who=who)).status == 200
    await registry.below("DELETE", f"manifests/{image.digest}")
    advance(registry.stack, 1000)
    assert kept(await collect(registry)) == {}
    assert await stored(registry.stack) == set()


async def test_rows_of_many_clients_are_bounded_and_expire(registry: Registry) -> None:
    catalog, digest = registry.stack.assembly.core.catalog, await registry.push_blob(b"wanted by many")

    def rows() -> int:
        return int(catalog.peek(lambda r: r.one("SELECT COUNT(*) FROM push_lease"))[0])

    now_ms = registry.stack.assembly.core.clock.now_ms()
    for number in range(3 * linked_blobs.MAX_CLIENTS):
        await catalog.write(linked_blobs.lease, 1, digest, f"client {number}", now_ms)
    assert rows() <= linked_blobs.MAX_CLIENTS + 1
    await catalog.write(linked_blobs.end_leases, 1, [digest], "client 40")
    assert catalog.peek(linked_blobs.is_leased, 1, digest, now_ms)
    advance(registry.stack, LAST_MS)
    await collect(registry)
    assert rows() == 0
