"""Stages: releases of every format that wait for an approval, whole and seen by members only until then."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.defer import DeferredList, ensureDeferred

from pkgrepo.storage.catalog.server.stages import expire_stages
from tests.support.format_cases import CASES, VARIES
from tests.support.images import Registry, digest_of, make_artifact, make_image, make_index
from tests.support.maven_files import make_pom
from tests.support.memory_server import Reply, Stack
from tests.support.npm_packages import make_publish

pytestmark = pytest.mark.server


class Staging:
    """A public repository ``main/release`` of one format, and the stages that are opened for it."""

    def __init__(self, stack: Stack, format: str = "npm") -> None:
        self.stack, self.format = stack, format

    async def begin(self, **config: Any) -> None:
        await self.stack.add_repository("release", format=self.format, config={"type": "Hosted", **config})

    async def open(self, of: str = "release", who: str = "admin", **fields: Any) -> Any:
        return await self.stack.ok("POST", f"/repository/main%2F{of}/stages", fields, who=who)

    async def send(self, method: str, path: str, raw: bytes = b"", kind: str = "", at: str = "release") -> Reply:
        headers = {"Content-Type": kind} if kind else {}
        return await self.stack.call(method, f"/repositories/main/{at}{path}", raw=raw, headers=headers)

    async def publish_npm(self, stage: Any, name: str = "demo", version: str = "1.0.0", **rest: Any) -> Reply:
        return await self.send("PUT", f"/{name}", make_publish(name, version, **rest), "application/json", place(stage))

    async def read(self, at: str, path: str, who: str | None = "admin") -> tuple[int, bytes]:
        reply = await self.stack.call("GET", f"/repositories/main/{at}{path}", who=who)
        return reply.status, VARIES.sub(b"", reply.body).replace(f"main/{at}".encode(), b"main/R")

    async def end(self, stage: Any, how: str, who: str = "admin", **fields: Any) -> Reply:
        return await self.stack.api("POST", f"/stages/{stage['id']}/{how}", fields, who=who)

    async def versions(self, name: str = "demo", at: str = "release") -> list[str]:
        reply = await self.stack.call("GET", f"/repositories/main/{at}/{name}", who=None)
        return sorted(reply.json["versions"]) if reply.status == 200 else []


def place(stage: Any) -> str:
    """The name of the repository that is the address of a stage."""
    return str(stage["url"].rpartition("/")[2])


@pytest_twisted.async_yield_fixture
async def npm(stack: Stack) -> Any:
    found = Staging(stack)
    await found.begin()
    yield found


@pytest.mark.parametrize("format", CASES)
async def test_what_is_staged_is_installed_from_its_address_and_becomes_public_whole(stack: Stack, format: str) -> None:
    staging, case = Staging(stack, format), CASES[format]
    await staging.begin()
    await stack.add_repository("direct", format=format, config={"type": "Hosted"})
    for repository in ("release", "direct"):
        await stack.ok("PATCH", f"/repository/main%2F{repository}", {"visibility": "public"})
    stage = await staging.open(description="for the autumn")
    at = place(stage)

    async def send_staged(method: str, path: str, raw: bytes = b"", kind: str = "") -> Reply:
        reply = await staging.send(method, path, raw, kind, at=at)
        assert reply.status < 300, reply.body
        return reply

    async def send_direct(method: str, path: str, raw: bytes = b"", kind: str = "") -> Reply:
        return await staging.send(method, path, raw, kind, at="direct")

    await case.publish(send_staged)
    await case.publish(send_direct)
    blobs = await stack.ok("GET", "/storage")
    shown = (*case.documents, *case.files)
    for path in shown:
        assert (await staging.read(at, path))[0] == 200, path
        assert (await staging.read(at, path, who=None))[0] == 401, path
    assert {(await staging.read("release", path))[0] for path in case.files} == {404}
    for who, status in (("admin", 200), (None, 401)):
        assert (await staging.read(at.replace("+stage-", "+staged-"), case.files[0], who=who))[0] == status
    record = await stack.ok("GET", f"/stages/{stage['id']}")
    assert (record["state"], record["description"], record["may_approve"]) == ("open", "for the autumn", True)
    assert {each["package"] for each in record["content"]} == {case.name}
    reply = await staging.end(stage, "approve", serial=record["serial"])
    assert (reply.status, reply.json["state"], reply.json["url"]) == (200, "approved", None), reply.body
    for path in shown:
        assert (await staging.read(at, path))[0] == 404, path
    for path in case.files:
        assert await staging.read("release", path, who=None) == await staging.read("direct", path, who=None)
    assert {(await staging.read("release", path, who=None))[0] for path in shown} == {200}
    names = await stack.ok("GET", f"/package/main%2Frelease/{case.segment}/versions")
    direct = await stack.ok("GET", f"/package/main%2Fdirect/{case.segment}/versions")
    assert [each["version"] for each in names["items"]] == [each["version"] for each in direct["items"]]
    after = await stack.ok("GET", "/storage")
    if format != "python":  # of whose wheels conda packages are made
        assert after["items"][0]["usage"]["blobs"] == blobs["items"][0]["usage"]["blobs"]
    record = await stack.ok("GET", f"/package/main%2Frelease/{case.segment}/versions/{case.version}")
    assert record["promoted"]["by"] == "admin"


async def test_a_staged_image_comes_with_its_parts_and_signature(stack: Stack) -> None:
    staging = Staging(stack, "docker")
    await staging.begin()
    stage = await staging.open()
    prefix = stage["url"].partition("/")[2]
    assert prefix == f"main/release.stage-{stage['id']}"
    staged, public = Registry(stack, f"{prefix}/app"), Registry(stack, "main/release/app")
    one, two = make_image("one"), make_image("two")
    index = make_index([one, two])
    for each in (one, two):
        await staged.push(each)
    await staged.push(index, "v1")
    signature = make_artifact(index, "application/vnd.example.signature")
    await staged.push(signature)
    await staged.push(make_image("alone"))
    assert (await staged.below("GET", "manifests/v1")).status == 200
    alone = Registry(stack, f"{prefix.replace('.stage-', '.staged-')}/app")
    assert (await alone.below("GET", "manifests/v1")).status == 200
    assert (await alone.below("GET", "manifests/v1", who=None)).status == 401
    assert (await public.below("GET", "manifests/v1")).status == 404
    catalog = (await stack.call("GET", "/v2/_catalog")).json["repositories"]
    assert not [each for each in catalog if "stage" in each]
    record = await stack.ok("GET", f"/stages/{stage['id']}")
    kinds = [each["kind"] for each in record["content"]]
    assert (kinds.count("tag"), "v1" in [each["name"] for each in record["content"]]) == (1, True)
    assert (await staging.end(stage, "approve")).status == 200
    assert (await public.below("GET", "manifests/v1")).body == index.manifest
    for each in (one, two, signature, make_image("alone")):
        assert (await public.below("GET", f"manifests/{each.digest}")).body == each.manifest
    assert (await public.below("GET", f"blobs/{digest_of(one.blobs[-1])}")).status == 200
    assert (await staged.below("GET", "manifests/v1")).status == 404


async def test_a_tag_that_never_moves_refuses_a_stage(stack: Stack) -> None:
    staging = Staging(stack, "docker")
    await staging.begin(policy={"immutable_tags": ["v*"]}, push_rules={"allow_tag_overwrite": True})
    public = Registry(stack, "main/release/app")
    await public.push(make_image("first"), "v1")
    stage = await staging.open()
    staged = Registry(stack, f"{stage['url'].partition('/')[2]}/app")
    await staged.push(make_image("second"), "v1")
    await staged.push(make_image("second"), "latest")
    assert (await staged.below("GET", "manifests/v1")).body == make_image("second").manifest
    reply = await staging.end(stage, "approve")
    assert (reply.status, "v1" in reply.json["detail"]) == (409, True)
    assert (await public.below("GET", "manifests/latest")).status == 404
    await staged.below("DELETE", "manifests/v1")
    assert (await staging.end(stage, "approve")).status == 200
    assert (await public.below("GET", "manifests/v1")).body == make_image("first").manifest
    assert (await public.below("GET", "manifests/latest")).body == make_image("second").manifest


async def test_the_address_shows_what_is_staged_on_top_of_the_repository(npm: Staging) -> None:
    await npm.send("PUT", "/demo", make_publish("demo", "1.0.0"), "application/json")
    await npm.send("PUT", "/other", make_publish("other", "1.0.0"), "application/json")
    stage = await npm.open()
    assert (await npm.publish_npm(stage, version="1.1.0")).status == 201
    document = (await npm.stack.call("GET", f"/repositories/main/{place(stage)}/demo")).json
    assert (sorted(document["versions"]), document["dist-tags"]["latest"]) == (["1.0.0", "1.1.0"], "1.1.0")
    tarball = document["versions"]["1.1.0"]["dist"]["tarball"]
    assert (await npm.stack.call("GET", tarball.partition("registry.example")[2])).status == 200
    assert (await npm.read(place(stage), "/other"))[0] == 200
    assert await npm.versions() == ["1.0.0"]


async def test_an_approved_version_names_who_approved_it(npm: Staging) -> None:
    await npm.stack.add_user("ann", email="ann@corp.example")
    await npm.stack.grant("ann", "main/release", "read", "write")
    stage = await npm.open()
    body = make_publish("demo", "1.0.0")
    where = f"/repositories/main/{place(stage)}/demo"
    sent = await npm.stack.call("PUT", where, who="ann", raw=body, headers={"Content-Type": "application/json"})
    assert sent.status == 201, sent.body
    assert (await npm.stack.api("POST", f"/stages/{stage['id']}/approve", {})).status == 200
    document = (await npm.stack.call("GET", "/repositories/main/release/demo")).json
    assert document["versions"]["1.0.0"]["_npmUser"] == {
        "name": "ann",
        "email": "ann@corp.example",
        "approver": {"name": "admin", "email": ""},
    }


async def test_of_parallel_approvals_and_rejections_one_succeeds(npm: Staging) -> None:
    stage = await npm.open()
    await npm.publish_npm(stage)
    hows = ["approve", "approve", "reject", "approve"]
    waiting = [ensureDeferred(npm.stack.api("POST", f"/stages/{stage['id']}/{how}", {})) for how in hows]
    replies = [reply for _, reply in await DeferredList(waiting)]
    assert sorted(each.status for each in replies) == [200, 409, 409, 409]
    done = next(each.json for each in replies if each.status == 200)
    assert done["state"] == (await npm.stack.ok("GET", f"/stages/{stage['id']}"))["state"]
    assert await npm.versions() == (["1.0.0"] if done["state"] == "approved" else [])
    assert "already" in next(each for each in replies if each.status == 409).json["detail"]


async def test_a_version_published_meanwhile_refuses_the_whole_stage(npm: Staging) -> None:
    stage = await npm.open()
    for name in ("able", "demo"):
        await npm.publish_npm(stage, name)
    await npm.send("PUT", "/demo", make_publish("demo", "1.0.0", description="another one"), "application/json")
    reply = await npm.end(stage, "approve")
    assert reply.status == 409, reply.body
    assert (await npm.versions("able"), await npm.versions()) == ([], ["1.0.0"])
    assert (await npm.stack.ok("GET", f"/stages/{stage['id']}"))["state"] == "open"
    taken = await npm.publish_npm(await npm.open(), description="a third one")
    assert taken.status == 403
    assert "previously published" in taken.json["error"] or "exists" in taken.json["error"]


async def test_a_stage_that_was_changed_since_it_was_seen_is_not_approved(npm: Staging) -> None:
    stage = await npm.open()
    assert (await npm.end(stage, "approve")).status == 409  # it is empty
    await npm.publish_npm(stage)
    seen = (await npm.stack.ok("GET", f"/stages/{stage['id']}"))["serial"]
    await npm.publish_npm(stage, version="1.0.1")
    assert (await npm.end(stage, "approve", serial=seen)).status == 409
    now = (await npm.stack.ok("GET", f"/stages/{stage['id']}"))["serial"]
    assert (await npm.end(stage, "approve", serial=now)).status == 200


async def test_rights(npm: Staging) -> None:
    stack = npm.stack
    for name in ("reader", "stager", "other", "approver", "stranger"):
        await stack.add_user(name)
    rights = {
        "reader": ["read"],
        "stager": ["read", "write"],
        "approver": ["read", "admin"],
        "other": ["read", "write"],
    }
    for name, actions in rights.items():
        given = [{"repository": "main/release", "actions": actions}]
        await stack.ok("PUT", f"/users/{name}/permissions", {"repositories": given})
    opening = ("POST", "/repository/main%2Frelease/stages", {})
    assert (await stack.api(*opening, who="reader")).status == 403
    assert (await stack.api(*opening, who="stranger")).status in (403, 404)
    assert (await stack.api(*opening, who=None)).status in (401, 403)
    stage = await npm.open(who="stager")
    await npm.publish_npm(stage)
    path = f"/stages/{stage['id']}"
    assert (await stack.api("GET", path, who="stranger")).status == 404
    assert (await stack.api("GET", path, who=None)).status == 404
    assert (await stack.ok("GET", path, who="reader"))["may_approve"] is False
    for who, status in (("reader", 403), ("stager", 403), ("stranger", 404)):
        assert (await npm.end(stage, "approve", who=who)).status == status
    assert (await npm.end(stage, "reject", who="other")).status == 403
    listed = [(await stack.ok("GET", "/stages", who=who))["items"] for who in ("reader", "stranger")]
    assert [[each["id"] for each in items] for items in listed] == [[stage["id"]], []]
    for who, status in (("reader", 200), ("stranger", 404)):
        assert (await npm.read(place(stage), "/demo", who=who))[0] == status
    assert (await npm.end(stage, "approve", who="approver")).status == 200
    withdrawn = await npm.open(who="stager")
    assert (await stack.api("DELETE", f"/stages/{withdrawn['id']}", who="stager")).json["state"] == "rejected"


async def test_a_token_for_one_package_sees_and_approves_that_alone(npm: Staging) -> None:
    stack = npm.stack
    every = ["read", "write", "overwrite", "delete"]
    scope = {"repository": "main/release", "actions": every, "packages": ["demo"]}
    token = await stack.token(repositories=[scope])
    mixed, own = await npm.open(), await npm.open()
    for stage, names in ((mixed, ("demo", "other")), (own, ("demo",))):
        for name in names:
            await npm.publish_npm(stage, name)
    shown = await stack.ok("GET", f"/stages/{mixed['id']}", who=token)
    assert ([each["package"] for each in shown["content"]], shown["may_approve"]) == (["demo"], False)
    assert (await npm.end(mixed, "approve", who=token)).status == 403
    assert (await npm.end(own, "approve", who=token)).status == 200
    weak = await stack.token(repositories=[{**scope, "actions": ["read", "write"]}])
    third = await npm.open()
    await npm.publish_npm(third, version="1.0.1")
    assert (await npm.end(third, "approve", who=weak)).status == 403
    found = await stack.ok("GET", "/search/packages?q=demo")
    assert [each["repository"] for each in found["items"]] == ["main/release"]


async def test_with_the_rule_others_than_approvers_publish_by_an_approval_alone(stack: Stack) -> None:
    npm = Staging(stack)
    await npm.begin(push_rules={"requires_approval": True})
    await stack.add_user("robot")
    await stack.grant("robot", "main/release", "read", "write")
    document = make_publish("demo", "1.0.0")

    async def publish(at: str, who: str) -> Reply:
        headers = {"Content-Type": "application/json"}
        return await stack.call("PUT", f"/repositories/main/{at}/demo", raw=document, headers=headers, who=who)

    refused = await publish("release", "robot")
    assert (refused.status, "requires_approval" in refused.json["error"]) == (403, True)
    stage = await npm.open(who="robot")
    assert (await publish(place(stage), "robot")).status == 201
    assert (await npm.end(stage, "approve", who="robot")).status == 403
    path = "/repositories/main/release/-/stage/package/other"
    headers = {"Content-Type": "application/json"}
    staged = await stack.call("POST", path, raw=make_publish("other", "1.0.0"), headers=headers, who="robot")
    assert staged.status == 201, staged.body
    assert (await npm.end({"id": staged.json["stageId"]}, "approve")).status == 200
    assert (await npm.end(stage, "approve")).status == 200
    assert (await npm.send("PUT", "/third", make_publish("third", "1.0.0"), "application/json")).status == 201


async def test_maintainers_of_the_project_approve_its_packages_alone(npm: Staging) -> None:
    stack = npm.stack
    await stack.add_user("mia")
    await stack.add_user("dan")
    await stack.ok("POST", "/project", {"key": "acme", "name": "Acme"})
    await stack.ok("POST", "/project/acme/bindings", {"repository": "main/release", "pattern": "@acme"})
    for user, role in (("mia", "maintainer"), ("dan", "developer")):
        await stack.ok("POST", "/project/acme/members", {"user": user, "role": role})
    stage = await npm.open(who="dan")
    reply = await npm.send(
        "PUT", "/@acme%2fdemo", make_publish("@acme/demo", "1.0.0"), "application/json", place(stage)
    )
    assert reply.status == 201, reply.body
    assert (await npm.end(stage, "approve", who="dan")).status == 403
    await npm.publish_npm(stage, "unowned")
    assert (await npm.end(stage, "approve", who="mia")).status == 403
    await stack.ok("DELETE", f"/package/main%2Frelease+staged-{stage['id']}/unowned")
    assert (await npm.end(stage, "approve", who="mia")).status == 200
    assert await npm.versions("@acme%2fdemo") == ["1.0.0"]


async def test_a_stage_of_a_virtual_repository_is_for_its_target(npm: Staging) -> None:
    config = {"type": "Virtual", "members": ["main/release"], "publish_to": "main/release"}
    await npm.stack.add_repository("all", format="npm", config=config)
    await npm.stack.add_repository("shown", format="npm", config={"type": "Virtual", "members": ["main/release"]})
    stage = await npm.open(of="all")
    assert (stage["repository"], place(stage)) == ("main/release", f"all+stage-{stage['id']}")
    assert (await npm.publish_npm(stage)).status == 201
    listed = await npm.stack.ok("GET", "/repository/main%2Fall/stages?state=open")
    assert [each["id"] for each in listed["items"]] == [stage["id"]]
    assert (await npm.stack.api("POST", "/repository/main%2Fshown/stages", {})).status == 405
    assert (await npm.stack.api("POST", f"/repository/main%2F{place(stage)}/stages", {})).status == 409
    assert (await npm.end(stage, "approve")).status == 200
    assert await npm.versions(at="all") == ["1.0.0"]


async def test_stages_count_towards_quotas_once(npm: Staging) -> None:
    stack = npm.stack
    stage = await npm.open()
    await npm.publish_npm(stage)
    size = (await stack.ok("GET", f"/stages/{stage['id']}"))["size"]
    await stack.ok("PATCH", "/repository/main%2Frelease", {"quota": {"bytes": size, "versions": 1}})
    refused = await npm.publish_npm(stage, version="1.1.0")
    assert (refused.status, "quota" in refused.json["error"].lower()) == (403, True), refused.body
    assert (await npm.end(stage, "approve")).status == 200
    record = await stack.ok("GET", "/repository/main%2Frelease")
    assert (record["usage_bytes"], record["version_count"]) == (size, 1)


async def test_garbage_collection_leaves_what_is_staged_and_takes_what_was_rejected(npm: Staging) -> None:
    stack = npm.stack
    kept, given_up = await npm.open(), await npm.open()
    await npm.publish_npm(kept, "kept")
    await npm.publish_npm(given_up, "gone")
    assert (await npm.end(given_up, "reject", reason="not today")).json["reason"] == "not today"
    collected = await stack.ok("POST", "/repository/main%2Frelease/gc?wait=true", {"grace_seconds": 0})
    assert collected is not None
    assert (await npm.read(place(kept), "/kept/-/kept-1.0.0.tgz"))[0] == 200
    assert (await npm.end(kept, "approve")).status == 200
    assert (await npm.read("release", "/kept/-/kept-1.0.0.tgz"))[0] == 200


async def test_a_stage_that_nobody_approves_expires(npm: Staging) -> None:
    stage = await npm.open()
    await npm.publish_npm(stage)
    core = npm.stack.assembly.core
    day = 86_400_000
    assert await core.catalog.write(expire_stages, core.clock.now_ms() + 29 * day, 10) == 0
    assert await core.catalog.write(expire_stages, core.clock.now_ms() + 31 * day, 10) == 1
    record = await npm.stack.ok("GET", f"/stages/{stage['id']}")
    assert (record["state"], [each["name"] for each in record["content"]]) == ("expired", ["1.0.0"])
    assert (await npm.read(place(stage), "/demo"))[0] == 404
    assert (await npm.end(stage, "approve")).status == 409


async def test_events_and_audit(npm: Staging) -> None:
    stack = npm.stack
    stage, other = await npm.open(), await npm.open()
    await npm.publish_npm(stage)
    await npm.end(stage, "approve")
    await npm.end(other, "reject", reason="empty")
    lines = (await stack.api("GET", "/events?type=stage.*&limit=1000")).body.splitlines()
    events = [json.loads(each) for each in lines]
    assert [each["type"].removeprefix("pkgrepo.").removesuffix(".v1") for each in events] == [
        *["stage.created"] * 2,
        "stage.approved",
        "stage.rejected",
    ]
    assert events[2]["data"]["content"] == ["demo@1.0.0"]
    published = (await stack.api("GET", "/events?type=package.published&limit=1000")).body.splitlines()
    assert [json.loads(each)["data"]["repository"] for each in published] == ["main/release"]
    for action, count in (("stage.create", 2), ("stage.approve", 1), ("stage.reject", 1)):
        assert len(await stack.audited(action=action)) == count


async def test_a_tag_that_the_server_gave_does_not_move_latest(npm: Staging) -> None:
    await npm.send("PUT", "/demo", make_publish("demo", "1.0.0"), "application/json")
    stage = await npm.open()
    await npm.publish_npm(stage, version="2.0.0", tag="beta")
    await npm.end(stage, "approve")
    document = (await npm.stack.call("GET", "/repositories/main/release/demo")).json
    assert document["dist-tags"] == {"latest": "1.0.0", "beta": "2.0.0"}


async def test_a_removed_repository_takes_its_stages_along_and_back(npm: Staging) -> None:
    stack = npm.stack
    stage = await npm.open()
    await npm.publish_npm(stage)
    await stack.ok("DELETE", "/repository/main%2Frelease?confirm=release")
    assert (await stack.api("GET", f"/stages/{stage['id']}")).status == 404
    assert (await npm.read(place(stage), "/demo"))[0] == 404
    [entry] = (await stack.ok("GET", "/trash"))["items"]
    await stack.ok("POST", f"/trash/{entry['id']}/restore")
    assert (await npm.read(place(stage), "/demo"))[0] == 200
    assert (await npm.end(stage, "approve")).status == 200
    assert await npm.versions() == ["1.0.0"]


async def send_bundle(staging: Staging, kind: str = "USER_MANAGED", who: str = "admin") -> str:
    """The id of a deployment with one artifact."""
    archive = io.BytesIO()
    place = "com/example/demo/1.0/demo-1.0"
    with zipfile.ZipFile(archive, "w") as bundle:
        bundle.writestr(f"{place}.pom", make_pom("com.example", "demo", "1.0"))
        bundle.writestr(f"{place}.jar", b"PK demo")
    path = f"/repositories/main/release/deploy?publishing_type={kind}&wait=true"
    headers = {"Content-Type": "application/zip"}
    reply = await staging.stack.call("POST", path, raw=archive.getvalue(), headers=headers, who=who)
    assert reply.status == 201, reply.body
    return reply.body.decode()


async def state_of(staging: Staging, uid: str) -> str:
    reply = await staging.stack.call("GET", f"/repositories/main/release/deploy/{uid}")
    return str(reply.json["state"])


JAR = "/com/example/demo/1.0/demo-1.0.jar"


@pytest.mark.parametrize("how", ["approve", "reject", "publish", "drop"])
async def test_a_java_bundle_that_its_user_manages_is_a_stage(stack: Stack, how: str) -> None:
    staging = Staging(stack, "maven")
    await staging.begin()
    uid = await send_bundle(staging)
    stage = await stack.ok("GET", f"/stages/{uid}")
    assert (stage["state"], [each["name"] for each in stage["content"]]) == ("open", ["1.0"])
    assert (await staging.read(place(stage), JAR))[0] == 200
    assert (await staging.read("release", JAR))[0] == 404
    address = f"/repositories/main/release/deploy/{uid}"
    if how in ("approve", "reject"):
        assert (await staging.end(stage, how)).status == 200
    else:
        assert (await stack.call("POST" if how == "publish" else "DELETE", address)).status < 300
    published = how in ("approve", "publish")
    after = await stack.ok("GET", f"/stages/{uid}")
    assert after["state"] == ("approved" if published else "rejected")
    assert (await staging.read("release", JAR))[0] == (200 if published else 404)
    if how != "drop":
        assert await state_of(staging, uid) == ("PUBLISHED" if published else "FAILED")
    assert (await staging.read(place(stage), JAR))[0] == 404
    assert (await staging.end(stage, "approve")).status == 409
    assert (await stack.call("POST", address)).status in (404, 409)


async def test_a_pipeline_sends_bundles_that_others_approve(stack: Stack) -> None:
    staging = Staging(stack, "maven")
    await staging.begin(push_rules={"requires_approval": True})
    await stack.add_user("robot")
    await stack.grant("robot", "main/release", "read", "write")
    uid = await send_bundle(staging, who="robot")
    address = f"/repositories/main/release/deploy/{uid}"
    assert (await stack.call("POST", address, who="robot")).status == 403
    assert (await staging.end({"id": uid}, "approve")).status == 200
    assert (await staging.read("release", JAR))[0] == 200


async def test_a_bundle_with_more_in_its_stage_is_published_by_its_approval(stack: Stack) -> None:
    staging = Staging(stack, "maven")
    await staging.begin()
    uid = await send_bundle(staging)
    stage = await stack.ok("GET", f"/stages/{uid}")
    more = "/com/example/more/1.0/more-1.0.pom"
    assert (await staging.send("PUT", more, make_pom("com.example", "more", "1.0"), at=place(stage))).status == 201
    assert (await stack.call("POST", f"/repositories/main/release/deploy/{uid}")).status == 409
    assert (await staging.end(stage, "approve")).status == 200
    assert {(await staging.read("release", each))[0] for each in (JAR, more)} == {200}
    assert await state_of(staging, uid) == "PUBLISHED"


@pytest.mark.parametrize("format", ["python", "ruby", "conda"])
async def test_an_approval_takes_back_no_yank(stack: Stack, format: str) -> None:
    staging, case = Staging(stack, format), CASES[format]
    await staging.begin()
    refused: list[int] = []

    async def publish(at: str) -> None:
        async def send(method: str, path: str, raw: bytes = b"", kind: str = "") -> Reply:
            reply = await staging.send(method, path, raw, kind, at=at)
            refused.append(reply.status)
            return reply

        await case.publish(send)

    stage, late = await staging.open(), await staging.open()
    await publish(place(stage))
    await publish("release")
    assert max(refused) < 300
    address = f"/package/main%2Frelease/{case.segment}/versions/{case.version}"
    await stack.ok("POST", f"{address}/yank", {"reason": "it loses data"})
    reply = await staging.end(stage, "approve")
    assert (reply.status, b"is yanked in main/release" in reply.body) == (409, True), reply.body
    assert (await stack.ok("GET", address))["state"] == "yanked"
    await publish(place(late))
    assert refused[-1] in (400, 409)  # early, as whatever is in the way
