"""The trash: what is deleted of every format is restored as it was, and garbage collection leaves it alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pkgrepo.storage.catalog.server.trash import purge_expired, put_kept_days
from tests.support.format_cases import CASES, VARIES
from tests.support.images import Registry, code, digest_of, make_artifact, make_image, make_index, sentence
from tests.support.memory_server import Reply, Stack
from tests.support.npm_packages import make_publish

pytestmark = pytest.mark.server


class Repository:
    """A hosted repository of one format with three versions."""

    def __init__(self, stack: Stack, format: str) -> None:
        self.stack, self.format, self.case = stack, format, CASES[format]

    async def fill(self) -> None:
        await self.stack.add_repository("all", format=self.format, config={"type": "Hosted"})
        await self.case.publish(self.send)

    async def send(self, method: str, path: str, raw: bytes = b"", kind: str = "") -> Reply:
        headers = {"Content-Type": kind} if kind else {}
        reply = await self.stack.call(method, f"/repositories/main/all{path}", raw=raw, headers=headers)
        assert reply.status < 300, (path, reply.status, reply.body)
        return reply

    async def read(self, path: str) -> tuple[int, bytes]:
        reply = await self.stack.call("GET", f"/repositories/main/all{path}")
        return reply.status, VARIES.sub(b"", reply.body)

    async def shown(self) -> list[tuple[int, bytes]]:
        return [await self.read(each) for each in (*self.case.documents, *self.case.files)]

    def place(self, *version: str) -> str:
        return "/".join((f"/package/main%2Fall/{self.case.segment}", *(f"versions/{each}" for each in version)))

    async def used(self) -> int:
        return int((await self.stack.ok("GET", "/repository/main%2Fall"))["usage_bytes"])

    async def collect(self) -> None:
        """Collect garbage without a grace period."""
        await self.stack.ok("POST", "/repository/main%2Fall/gc", {"grace_seconds": 0, "delete_untagged": True})

    async def laid_out(self) -> set[str]:
        """The names in the readable layout, as it is when all changes are shown."""
        follower = self.stack.assembly.core.follower
        follower.notify()
        while follower._following is not None:
            await follower._following
        top = Path(self.stack.assembly.core.config.data.dir) / "storages/main/repositories/all"
        return {each.relative_to(top).as_posix() for each in top.rglob("*") if each.is_file()} - {".repository.json"}


async def entries(stack: Stack, **rest: Any) -> list[Any]:
    found: list[Any] = (await stack.ok("GET", "/trash", **rest))["items"]
    return found


@pytest.mark.parametrize("format", CASES)
async def test_a_version_and_a_package_are_restored_as_they_were(stack: Stack, format: str) -> None:
    repository = Repository(stack, format)
    await repository.fill()
    before, used, laid_out = await repository.shown(), await repository.used(), await repository.laid_out()
    assert {status for status, _ in before} == {200}
    version = await stack.ok("GET", repository.place(repository.case.version))

    for what in ((repository.case.version,), ()):
        gone = await stack.ok("DELETE", repository.place(*what))
        assert gone["trash"] is not None
        assert (await repository.read(repository.case.files[0]))[0] in (404, 410)
        await repository.collect()
        assert await repository.used() == used  # it is still stored
        assert len(await repository.laid_out()) < len(laid_out)
        (entry,) = await entries(stack)
        assert entry["id"] == gone["trash"]
        assert (entry["kind"], entry["by"]) == ("version" if what else "package", "admin")

        restored = await stack.ok("POST", f"/trash/{entry['id']}/restore")
        assert restored["items"] == (1 if what else entry["items"])
        assert await entries(stack) == []
        assert await repository.shown() == before
        assert await repository.used() == used
        assert await repository.laid_out() == laid_out
        assert await stack.ok("GET", repository.place(repository.case.version)) == version


async def test_a_purge_gives_the_bytes_up(stack: Stack) -> None:
    repository = Repository(stack, "npm")
    await repository.fill()
    used = await repository.used()
    await stack.ok("DELETE", f"{repository.place('1.0.0')}?purge=true")
    assert await entries(stack) == []
    after_purge = await repository.used()
    assert after_purge < used
    gone = await stack.ok("DELETE", repository.place("1.1.0"))
    assert await repository.used() == after_purge
    await stack.ok("DELETE", f"/trash/{gone['trash']}")
    assert await repository.used() < after_purge
    assert (await stack.api("POST", f"/trash/{gone['trash']}/restore")).status == 404
    assert (await stack.api("DELETE", f"/trash/{gone['trash']}")).status == 404
    freed = await stack.ok("POST", "/repository/main%2Fall/gc", {"grace_seconds": 0})
    assert freed["removed"]["blobs"] == 2


async def test_what_expires_is_purged(stack: Stack) -> None:
    repository = Repository(stack, "npm")
    await repository.fill()
    await stack.ok("DELETE", repository.place("1.0.0"))
    catalog, now_ms = stack.assembly.core.catalog, stack.assembly.core.clock.now_ms()
    day_ms = 86_400_000
    assert await catalog.write(purge_expired, now_ms + 13 * day_ms, 10) == 0
    assert await catalog.write(purge_expired, now_ms + 15 * day_ms, 10) == 1
    assert await entries(stack) == []


async def test_a_deleted_name_stays_burned_until_it_is_restored(stack: Stack) -> None:
    repository = Repository(stack, "npm")
    await repository.fill()
    gone = await stack.ok("DELETE", repository.place("1.1.0"))
    again = make_publish("demo", "1.1.0", description="another")
    headers = {"Content-Type": "application/json"}
    refused = await stack.call("PUT", "/repositories/main/all/demo", raw=again, headers=headers)
    assert refused.status == 403
    await stack.ok("POST", f"/trash/{gone['trash']}/restore")
    assert (await repository.read("/demo/-/demo-1.1.0.tgz"))[0] == 200


async def test_a_restore_is_refused_where_other_content_took_the_place(stack: Stack) -> None:
    repository = Repository(stack, "npm")
    await repository.fill()
    await stack.ok("PUT", "/repository/main%2Fall/config", {"type": "Hosted", "policy": {"reuse_deleted_names": True}})
    gone = await stack.ok("DELETE", repository.place())
    await repository.send("PUT", "/demo", make_publish("demo", "1.1.0", description="another"), "application/json")
    refused = await stack.api("POST", f"/trash/{gone['trash']}/restore")
    assert (refused.status, "demo-1.1.0.tgz" in refused.json["detail"]) == (409, True)
    (entry,) = await entries(stack)
    assert entry["items"] == 3  # nothing of it was restored
    await stack.ok("DELETE", f"{repository.place('1.1.0')}?purge=true")
    await stack.ok("POST", f"/trash/{gone['trash']}/restore")
    assert (await repository.read("/demo/-/demo-1.0.0.tgz"))[0] == 200


async def test_clients_see_the_trash_of_what_they_may_delete(stack: Stack) -> None:
    repository = Repository(stack, "npm")
    await repository.fill()
    gone = await stack.ok("DELETE", repository.place("1.1.0"))
    await stack.add_user("reader")
    await stack.add_user("keeper")
    await stack.grant("keeper", "main/all", "read", "delete")
    for who in ("reader", None):
        assert await entries(stack, who=who) == []
        for method, path in (("POST", f"/trash/{gone['trash']}/restore"), ("DELETE", f"/trash/{gone['trash']}")):
            assert (await stack.api(method, path, who=who)).status in (401, 404)
    assert [each["id"] for each in await entries(stack, who="keeper")] == [gone["trash"]]
    refused = await stack.api("POST", f"/trash/{gone['trash']}/restore", who="keeper")
    assert (refused.status, "may not publish" in refused.json["detail"]) == (403, True)
    await stack.grant("keeper", "main/all", "read", "write", "delete")
    await stack.ok("POST", f"/trash/{gone['trash']}/restore", who="keeper")


async def test_pages_of_the_trash_have_each_entry_once(stack: Stack) -> None:
    repository = Repository(stack, "npm")
    await repository.fill()
    gone = [(await stack.ok("DELETE", repository.place(each)))["trash"] for each in ("1.0.0", "1.1.0", "2.0.0-rc.1")]
    found, cursor = [], ""
    for _ in gone:
        page = await stack.ok("GET", f"/trash?limit=1{cursor}")
        found += [each["id"] for each in page["items"]]
        cursor = f"&cursor={page['next']}"
    assert (sorted(found), page["next"]) == (sorted(gone), None)
    assert (await stack.api("GET", "/trash?cursor=none")).status == 422
    assert (await stack.api("GET", "/trash?repository=main/none")).status == 422


async def test_a_repository_is_restored_with_its_content(stack: Stack) -> None:
    repository = Repository(stack, "python")
    await repository.fill()
    await stack.add_user("keeper")
    before, laid_out = await repository.shown(), await repository.laid_out()
    shown = await stack.ok("GET", "/repository/main%2Fall")
    await stack.ok("DELETE", "/repository/main%2Fall?confirm=all")
    (entry,) = await entries(stack)
    assert (entry["kind"], entry["repository"], entry["by"]) == ("repository", "main/all", "admin")
    assert (await repository.shown())[0][0] == 404
    assert await entries(stack, who="keeper") == []
    assert (await stack.api("POST", f"/trash/{entry['id']}/restore", who="keeper")).status == 404
    assert await repository.laid_out() == set()

    await stack.add_repository("all", format="npm", config={"type": "Hosted"})
    assert (await stack.api("POST", f"/trash/{entry['id']}/restore")).status == 409
    await stack.ok("DELETE", "/repository/main%2Fall?confirm=all&purge=true")
    await stack.ok("POST", f"/trash/{entry['id']}/restore")
    assert await repository.shown() == before
    assert await repository.laid_out() == laid_out
    again = await stack.ok("GET", "/repository/main%2Fall")
    assert {**again, "updated_at": None} == {**shown, "updated_at": None}

    await stack.ok("DELETE", "/repository/main%2Fall?confirm=all")
    await stack.ok("DELETE", f"/trash/{entry['id']}")
    assert await entries(stack) == []
    assert (await stack.api("POST", f"/trash/{entry['id']}/restore")).status == 404


class Images(Repository):
    """A repository with an image of two platforms, a signature of it, and another tag."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.registry = Registry(stack, "main/all/app")

    async def fill(self) -> None:
        config = {"type": "Hosted", "push_rules": {"allow_tag_overwrite": True}}
        await self.stack.add_repository("all", format="docker", config=config)
        self.children = [make_image("one"), make_image("two", architecture="arm64")]
        self.index = make_index(self.children)
        self.signature = make_artifact(self.index, "application/vnd.example.signature")
        for each in self.children:
            await self.registry.push(each)
        await self.registry.push(self.index, "v1")
        await self.registry.push(self.signature)

    async def status(self, reference: str) -> int:
        return (await self.registry.below("GET", f"manifests/{reference}")).status

    async def whole(self) -> bool:
        """Whether everything of the image can be pulled."""
        blobs = [digest for each in self.children for digest in map(digest_of, each.blobs)]
        found = [await self.registry.below("GET", f"blobs/{each}") for each in blobs]
        names = ["v1", self.index.digest, self.signature.digest, *(each.digest for each in self.children)]
        return {each.status for each in found} | {await self.status(each) for each in names} == {200}


async def test_an_image_is_restored_with_children_signatures_and_tags(stack: Stack) -> None:
    images = Images(stack)
    await images.fill()
    used, laid_out = await images.used(), await images.laid_out()
    gone = await stack.ok("DELETE", "/package/main%2Fall/app")
    assert await images.status("v1") == 404
    (blob, *_) = map(digest_of, images.children[0].blobs)
    assert (await images.registry.below("GET", f"blobs/{blob}")).status == 404
    await images.collect()
    assert await images.used() == used
    (entry,) = await entries(stack)
    assert (entry["kind"], entry["items"], entry["size"]) == ("package", 4, used)
    await stack.ok("POST", f"/trash/{gone['trash']}/restore")
    assert await images.whole()
    assert (await images.used(), await images.laid_out()) == (used, laid_out)


async def test_a_manifest_deleted_by_a_client_is_restored_with_its_tag(stack: Stack) -> None:
    images = Images(stack)
    await images.fill()
    used = await images.used()
    assert (await images.registry.below("DELETE", f"manifests/{images.index.digest}")).status == 202
    assert await images.status("v1") == 404
    (entry,) = await entries(stack)
    assert (entry["kind"], entry["names"]) == ("manifest", ["v1"])
    await images.collect()
    await stack.ok("POST", f"/trash/{entry['id']}/restore")
    assert (await images.whole(), await images.used()) == (True, used)


async def test_an_index_comes_back_only_with_what_it_lists(stack: Stack) -> None:
    images = Images(stack)
    await images.fill()
    for each in (images.index, images.children[0]):
        assert (await images.registry.below("DELETE", f"manifests/{each.digest}")).status == 202
    child, index = await entries(stack)
    refused = await stack.api("POST", f"/trash/{index['id']}/restore")
    assert (refused.status, images.children[0].digest in refused.body.decode()) == (409, True)
    assert await images.status("v1") == 404
    for each in (child, index):
        await stack.ok("POST", f"/trash/{each['id']}/restore")
    assert await images.whole()


async def test_the_manifest_of_a_deleted_tag_stays_until_the_tag_is_purged(stack: Stack) -> None:
    images = Images(stack)
    await images.fill()
    for keeps in (True, False):
        assert (await images.registry.below("DELETE", "manifests/v1")).status == 202
        (entry,) = await entries(stack)
        assert (entry["kind"], entry["names"], entry["size"]) == ("tag", ["v1"], 0)
        if keeps:
            await images.collect()
            await stack.ok("POST", f"/trash/{entry['id']}/restore")
            assert await images.whole()
        else:
            await stack.ok("DELETE", f"/trash/{entry['id']}")
            await images.collect()
            assert await images.status(images.index.digest) == 404


async def test_a_tag_that_was_pushed_again_is_not_overwritten(stack: Stack) -> None:
    images = Images(stack)
    await images.fill()
    gone = await stack.ok("DELETE", "/package/main%2Fall/app/versions/v1")
    await images.registry.push(images.children[0], "v1")
    assert (await stack.api("POST", f"/trash/{gone['trash']}/restore")).status == 409


async def test_a_manifest_comes_back_without_the_tag_that_another_one_has_now(stack: Stack) -> None:
    images = Images(stack)
    await images.fill()
    assert (await images.registry.below("DELETE", f"manifests/{images.index.digest}")).status == 202
    await images.registry.push(images.children[0], "v1")
    (entry,) = await entries(stack)
    await stack.ok("POST", f"/trash/{entry['id']}/restore")
    assert await images.status(images.index.digest) == 200
    tagged = await images.registry.below("HEAD", "manifests/v1")
    assert tagged.headers["docker-content-digest"] == images.children[0].digest


async def test_without_days_there_is_no_trash(stack: Stack) -> None:
    await stack.assembly.core.catalog.write(put_kept_days, 0)
    repository = Repository(stack, "npm")
    await repository.fill()
    used = await repository.used()
    assert (await stack.ok("DELETE", repository.place("1.1.0")))["trash"] is None
    assert (await entries(stack), await repository.used() < used) == ([], True)


async def history(stack: Stack, tag: str) -> list[tuple[str | None, bool]]:
    found = await stack.ok("GET", f"/package/main%2Fall/app/tags/{tag}/history")
    return [(each["digest"], each["stored"]) for each in found["items"]]


async def test_a_tag_has_a_history_and_returns_to_an_earlier_manifest(stack: Stack) -> None:
    images = Images(stack)
    await images.fill()
    first, second = images.index.digest, images.children[0].digest
    await images.registry.push(images.children[0], "v1")
    await images.registry.push(images.children[1], "v10")
    await stack.ok("DELETE", "/package/main%2Fall/app/versions/v1")
    assert await history(stack, "v1") == [(None, False), (second, True), (first, True)]
    page = await stack.ok("GET", "/package/main%2Fall/app/tags/v1/history?limit=2")
    page = await stack.ok("GET", f"/package/main%2Fall/app/tags/v1/history?limit=2&cursor={page['next']}")
    assert [each["digest"] for each in page["items"]] == [first]

    place = "/package/main%2Fall/app/tags/v1"
    await stack.ok("POST", place, {"digest": first})
    assert (await images.registry.below("GET", "manifests/v1")).headers["docker-content-digest"] == first
    assert (await history(stack, "v1"))[0] == (first, True)
    assert (await stack.api("POST", place, {"digest": "sha256:" + "0" * 64})).status == 404
    assert (await stack.api("POST", place, {"digest": "latest"})).status == 422
    await stack.add_user("reader")
    assert (await stack.api("POST", place, {"digest": second}, who="reader")).status == 403


async def test_immutable_tags_are_neither_moved_nor_deleted(stack: Stack) -> None:
    images = Images(stack)
    await images.fill()
    rules = {"push_rules": {"allow_tag_overwrite": True}, "policy": {"immutable_tags": ["v*"]}}
    await stack.ok("PUT", "/repository/main%2Fall/config", {"type": "Hosted", **rules})
    registry, child = images.registry, images.children[0]
    moved = await registry.put(child, "v1")
    assert (moved.status, code(moved)) == (403, "DENIED")
    for reference in ("v1", images.index.digest):
        refused = await registry.below("DELETE", f"manifests/{reference}")
        assert (refused.status, code(refused), "immutable_tags" in sentence(refused)) == (403, "DENIED", True)
    place = "/package/main%2Fall/app"
    assert (await stack.api("DELETE", f"{place}/versions/v1")).status == 409
    assert (await stack.api("DELETE", place)).status == 409
    assert (await stack.api("POST", f"{place}/tags/v1", {"digest": child.digest})).status == 409
    assert await images.whole()
    await registry.push(child, "v2")  # a new tag that matches
    await registry.push(child, "edge")
    await registry.push(images.children[1], "edge")
    assert (await registry.below("DELETE", "manifests/edge")).status == 202


async def test_a_single_file_that_a_client_deleted_is_restored(stack: Stack) -> None:
    repository = Repository(stack, "maven")
    await repository.fill()
    before, used = await repository.shown(), await repository.used()
    await repository.send("DELETE", "/com/example/demo/1.1/demo-1.1.jar")
    assert (await repository.read("/com/example/demo/1.1/demo-1.1.pom"))[0] == 200
    (entry,) = await entries(stack)
    assert (entry["kind"], entry["names"]) == ("files", ["1.1"])
    await stack.ok("POST", f"/trash/{entry['id']}/restore")
    assert (await repository.shown(), await repository.used()) == (before, used)
