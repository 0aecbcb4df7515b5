"""Copies and moves between repositories: every format, by reference, with the rules of both sides."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.format_cases import CASES, VARIES
from tests.support.images import Registry, digest_of, make_artifact, make_image, make_index
from tests.support.memory_server import Reply, Stack
from tests.support.npm_packages import make_publish

pytestmark = pytest.mark.server


# When a package was changed here; versions have the time at which they were published.
_TIMES = re.compile(rb'"(?:created|modified)":"?[^",}]*"?|<lastUpdated>\d+</lastUpdated>')


class Promoting:
    """A staging and a release repository of one format; the first one is filled."""

    def __init__(self, stack: Stack, format: str) -> None:
        self.stack, self.format = stack, format
        self.case = CASES.get(format)

    async def fill(self, **release: Any) -> None:
        for name in ("staging", "release"):
            config = {"type": "Hosted", **(release if name == "release" else {})}
            await self.stack.add_repository(name, format=self.format, config=config)
        if self.case is not None:
            await self.case.publish(self.send)

    async def send(self, method: str, path: str, raw: bytes = b"", kind: str = "", at: str = "staging") -> Reply:
        headers = {"Content-Type": kind} if kind else {}
        reply = await self.stack.call(method, f"/repositories/main/{at}{path}", raw=raw, headers=headers)
        assert reply.status < 300, (path, reply.status, reply.body)
        return reply

    async def read(self, at: str, path: str) -> tuple[int, bytes]:
        reply = await self.stack.call("GET", f"/repositories/main/{at}{path}")
        body = _TIMES.sub(b"", reply.body)
        return reply.status, VARIES.sub(b"", body).replace(f"main/{at}".encode(), b"main/R")

    async def shown(self, at: str) -> list[tuple[int, bytes]]:
        assert self.case is not None
        return [await self.read(at, each) for each in (*self.case.documents, *self.case.files)]

    async def promote(self, package: str, version: str, **fields: Any) -> Reply:
        path = f"/package/main%2Fstaging/{quote(package, safe='')}/versions/{version}/promote"
        who = fields.pop("who", "admin")
        return await self.stack.api("POST", path, {"to": "main/release", **fields}, who=who)

    async def versions(self, at: str, package: str) -> list[str]:
        reply = await self.stack.api("GET", f"/package/main%2F{at}/{quote(package, safe='')}/versions")
        return [] if reply.status == 404 else sorted(each["version"] for each in reply.json["items"])


@pytest.mark.parametrize("format", CASES)
async def test_promoted_versions_are_served_as_they_were(stack: Stack, format: str) -> None:
    promoting = Promoting(stack, format)
    await promoting.fill()
    case = CASES[format]
    names = await promoting.versions("staging", case.name)
    blobs = await stack.ok("GET", "/storage")
    for each in names:
        reply = await promoting.promote(case.name, each)
        assert (reply.status, bool(reply.json["published"]), reply.json["removed"]) == (200, True, []), reply.body
        again = await promoting.promote(case.name, each)
        assert (again.status, again.json["changed"], again.json["published"]) == (200, False, []), again.body
    assert await promoting.versions("release", case.name) == names
    assert await promoting.shown("release") == await promoting.shown("staging")
    assert {status for status, _ in await promoting.shown("release")} == {200}
    assert (await stack.ok("GET", "/storage"))["items"][0]["usage"]["blobs"] == blobs["items"][0]["usage"]["blobs"]
    record = await stack.ok("GET", f"/package/main%2Frelease/{case.segment}/versions/{case.version}")
    assert (record["promoted"]["repository"], record["promoted"]["by"]) == ("main/staging", "admin")
    lines = (await stack.api("GET", "/events?type=package.promoted&limit=1000")).body.splitlines()
    assert len(lines) == len(names)
    assert b'"from":"main/staging"' in lines[0]
    assert b"promoted" not in b"".join(body for _, body in await promoting.shown("release"))


@pytest.mark.parametrize("format", CASES)
async def test_a_moved_version_leaves_its_source_and_can_be_put_back(stack: Stack, format: str) -> None:
    promoting = Promoting(stack, format)
    await promoting.fill()
    case = CASES[format]
    before = await promoting.versions("staging", case.name)
    reply = await promoting.promote(case.name, case.version, move=True)
    assert (reply.status, reply.json["moved"], bool(reply.json["removed"])) == (200, True, True), reply.body
    assert await promoting.versions("staging", case.name) == [each for each in before if each != case.version]
    assert await promoting.versions("release", case.name) == [case.version]
    assert (await promoting.read("release", case.files[0]))[0] == 200
    await stack.ok("POST", f"/trash/{reply.json['trash']}/restore")
    assert await promoting.versions("staging", case.name) == before


async def test_the_rights_of_both_sides_are_needed(stack: Stack) -> None:
    promoting = Promoting(stack, "npm")
    await promoting.fill()
    await stack.ok("PATCH", "/repository/main%2Fstaging", {"visibility": "private"})
    await stack.ok("PATCH", "/repository/main%2Frelease", {"visibility": "private"})
    await stack.add_user("ada")

    async def grant(**actions: list[str]) -> None:
        given = [{"repository": f"main/{name}", "actions": each} for name, each in actions.items()]
        await stack.ok("PUT", "/users/ada/permissions", {"repositories": given})

    assert (await promoting.promote("demo", "1.0.0", who="ada")).status == 404
    await grant(staging=["read"])
    assert (await promoting.promote("demo", "1.0.0", who="ada")).status == 422  # no such target, as far as ada knows
    await grant(staging=["read"], release=["read"])
    assert (await promoting.promote("demo", "1.0.0", who="ada")).status == 403
    await grant(staging=["read"], release=["read", "write"])
    assert (await promoting.promote("demo", "1.0.0", who="ada", move=True)).status == 403
    assert await promoting.versions("release", "demo") == []
    assert (await promoting.promote("demo", "1.0.0", who="ada")).status == 200
    await grant(staging=["read", "delete"], release=["write"])
    assert (await promoting.promote("demo", "1.1.0", who="ada", move=True)).status == 200
    await grant(release=["read", "write"])
    assert (await promoting.promote("demo", "2.0.0-rc.1", who="ada")).status == 404
    assert (await promoting.promote("demo", "2.0.0-rc.1", who=None)).status == 401


async def test_an_older_version_does_not_become_latest_since_the_newest_one_was_moved_away(stack: Stack) -> None:
    promoting = Promoting(stack, "npm")
    await promoting.fill()
    for version in ("8.0.0", "9.0.0"):
        await promoting.send("PUT", "/older", make_publish("older", version))
    assert (await promoting.promote("older", "9.0.0", move=True)).status == 200

    async def tags(at: str) -> Any:
        return (await stack.call("GET", f"/repositories/main/{at}/-/package/older/dist-tags")).json

    assert await tags("staging") == {"latest": "8.0.0"}  # by itself: nobody has set it
    copied = await promoting.promote("older", "8.0.0")
    assert copied.json["changed"] is True
    assert await tags("release") == {"latest": "9.0.0"}
    assert (await promoting.promote("older", "8.0.0")).json["changed"] is False


async def test_what_contradicts_the_target_is_refused(stack: Stack) -> None:
    promoting = Promoting(stack, "npm")
    await promoting.fill()
    other = make_publish("demo", "1.1.0", description="another")
    await promoting.send("PUT", "/demo", other, "application/json", at="release")
    before = await promoting.shown("release")
    refused = await promoting.promote("demo", "1.1.0", move=True)
    assert (refused.status, "demo-1.1.0.tgz" in refused.json["detail"]) == (409, True)
    assert await promoting.shown("release") == before
    assert "1.1.0" in await promoting.versions("staging", "demo")
    await stack.ok("DELETE", "/package/main%2Frelease/demo")
    assert (await promoting.promote("demo", "1.1.0")).status == 409  # the name is burned
    await stack.ok("POST", "/package/main%2Fstaging/demo/versions/1.0.0/yank", {"reason": "bad"})
    refused = await promoting.promote("demo", "1.0.0")
    assert (refused.status, "yanked" in refused.json["detail"]) == (409, True)
    await stack.add_repository("py")
    for to, status in (("main/py", 409), ("main/staging", 422), ("main/none", 422), ("x", 422), ("", 422)):
        assert (await promoting.promote("demo", "2.0.0-rc.1", to=to)).status == status, to
    assert (await promoting.promote("demo", "9.9.9")).status == 404
    assert (await promoting.promote("none", "9.9.9")).status == 404


async def test_java_releases_only(stack: Stack) -> None:
    promoting = Promoting(stack, "maven")
    await promoting.fill(push_rules={"push_policy": "RELEASES"})
    refused = await promoting.promote("com.example:demo", "2.0-SNAPSHOT")
    assert (refused.status, "accepts only RELEASES" in refused.json["detail"]) == (409, True)
    assert (await promoting.promote("com.example:demo", "1.0")).status == 200


class Images(Promoting):
    """Repositories with an image of two platforms, with a signature and an attestation of it."""

    async def fill(self, **release: Any) -> None:
        await super().fill(**release)
        registry = Registry(self.stack, "main/staging/app")
        self.children = [make_image("one"), make_image("two", architecture="arm64")]
        self.index = make_index(self.children)
        self.artifact = make_artifact(self.index, "application/vnd.example.attestation")
        self.signature = make_image("signature")
        self.signed = f"{self.index.digest.replace(':', '-')}.sig"
        for each in self.children:
            await registry.push(each)
        await registry.push(self.index, "v1")
        await registry.push(self.artifact)
        await registry.push(self.signature, self.signed)

    async def found(self, at: str) -> set[int]:
        """The statuses of all that belongs to the image."""
        registry = Registry(self.stack, f"main/{at}/app")
        every = [*self.children, self.index, self.artifact, self.signature]
        names = ["v1", self.signed, *(each.digest for each in every)]
        blobs = [digest for each in (*self.children, self.signature) for digest in map(digest_of, each.blobs)]
        paths = [*(f"manifests/{each}" for each in names), *(f"blobs/{each}" for each in blobs)]
        return {(await registry.below("GET", path)).status for path in paths}


async def test_an_image_is_promoted_with_all_it_consists_of(stack: Stack) -> None:
    images = Images(stack, "docker")
    await images.fill()
    reply = await images.promote("app", "v1")
    assert (reply.status, len(reply.json["published"])) == (200, 5), reply.body
    assert await images.found("release") == {200}
    assert await images.found("staging") == {200}
    again = await images.promote("app", "v1")
    assert (again.status, again.json["changed"], again.json["published"]) == (200, False, [])
    lines = (await stack.api("GET", "/events?type=package.promoted")).body.splitlines()
    assert [json.loads(each)["subject"] for each in lines] == ["main/release/app:v1"]
    await Registry(stack, "main/staging/app").push(images.children[0], "one")
    tagged = await images.promote("app", "one")
    assert (tagged.status, tagged.json["changed"], tagged.json["published"]) == (200, True, [])
    record = await stack.ok("GET", "/package/main%2Frelease/app/versions/v1")
    assert record["promoted"]["repository"] == "main/staging"
    await stack.ok("POST", "/repository/main%2Frelease/gc", {"grace_seconds": 0, "delete_untagged": True})
    assert await images.found("release") == {200}


async def test_a_moved_image_leaves_nothing_but_what_others_need(stack: Stack) -> None:
    images = Images(stack, "docker")
    await images.fill()
    await Registry(stack, "main/staging/app").push(images.children[0], "one")
    reply = await images.promote("app", "v1", move=True)
    assert reply.status == 200, reply.body
    assert await images.found("release") == {200}
    registry = Registry(stack, "main/staging/app")
    for name in ("v1", images.signed, images.index.digest, images.artifact.digest, images.children[1].digest):
        assert (await registry.below("GET", f"manifests/{name}")).status == 404, name
    assert (await registry.below("GET", "manifests/one")).status == 200
    await stack.ok("POST", f"/trash/{reply.json['trash']}/restore")
    assert await images.found("staging") == {200}


async def test_a_tag_that_may_not_move_is_refused(stack: Stack) -> None:
    images = Images(stack, "docker")
    await images.fill()
    await Registry(stack, "main/release/app").push(make_image("other"), "v1")
    refused = await images.promote("app", "v1", move=True)
    assert refused.status in (403, 409), refused.body
    assert await images.found("staging") == {200}
    assert (await images.promote("app", images.index.digest)).status == 200


@pytest.mark.parametrize("what", ["tag", "digest", "platform", "label"])
async def test_an_image_that_a_rule_refuses_is_not_promoted(stack: Stack, what: str) -> None:
    images = Images(stack, "docker")
    await images.fill()
    labelled = make_image("labelled", settings={"Labels": {"stage": "dev"}})
    await Registry(stack, "main/staging/app").push(labelled, "dev")
    match: dict[str, Any] = {
        "tag": {"versions": "v1"},
        "digest": {"digests": [images.index.digest]},
        "platform": {"digests": [images.children[0].digest]},
        "label": {"labels": {"stage": "dev"}},
    }[what]
    rule = {"name": "no", "reason": "stolen key", "match": match}
    await stack.ok("PUT", "/repository/main%2Fstaging/config/policy", {"rules": [rule]})
    names = ["dev", labelled.digest] if what == "label" else ["v1", images.index.digest]
    for name in names:
        refused = await images.promote("app", name)
        assert (refused.status, "stolen key" in refused.json["detail"]) == (403, True), name
        assert (await images.promote("app", name, move=True)).status == 403
        assert "'no'" in (await stack.ok("GET", f"/package/main%2Fstaging/app/versions/{name}"))["refused"]
    assert not (await stack.ok("GET", "/policy/rules"))["counts"]
    other = "v1" if what == "label" else "dev"
    assert (await images.promote("app", other)).status == 200


async def test_a_platform_that_a_rule_refuses_is_not_promoted_with_its_index(stack: Stack) -> None:
    for name in ("staging", "release"):
        await stack.add_repository(name, format="docker", config={"type": "Hosted"})
    registry = Registry(stack, "main/staging/app")
    good, bad = (make_image(user, settings={"User": user}) for user in ("1000", "root"))
    for each in (good, bad):
        await registry.push(each, each.digest)
    await registry.push(make_index([good, bad]), "v1")
    rule = {"name": "no root", "match": {"contents": ["root_user"]}, "action": "block"}
    await stack.ok("PUT", "/repository/main%2Fstaging/config/policy", {"rules": [rule]})
    promote = "/package/main%2Fstaging/app/versions/{}/promote"
    refused = await stack.api("POST", promote.format("v1"), {"to": "main/release"})
    assert (refused.status, "no root" in refused.json["detail"]) == (403, True)
    assert (await stack.api("GET", "/package/main%2Frelease/app")).status == 404
    assert (await stack.api("POST", promote.format(good.digest), {"to": "main/release"})).status == 200


async def files_of_demo(stack: Stack, **wheel: Any) -> dict[str, str]:
    """Two repositories, and the SHA-256 of the wheel and the archive of a version, by their paths, in the first one."""
    for name in ("staging", "release"):
        config = {"type": "Hosted", "conda": {"from_wheels": False}}
        await stack.add_repository(name, format="python", config=config)
    found = {}
    for sdist in (False, True):
        name = await stack.publish("main/staging", "demo", "1.0", sdist=sdist, **({} if sdist else wheel))
        body = (await stack.call("GET", f"/repositories/main/staging/demo/1.0/{name}")).body
        found[f"demo/1.0/{name}"] = hashlib.sha256(body).hexdigest()
    return found


@pytest.mark.parametrize("at", [0, 1])
async def test_a_version_with_one_file_that_is_blocked_is_not_promoted(stack: Stack, at: int) -> None:
    path, digest = [*(await files_of_demo(stack)).items()][at]
    block = {"repository": "main/staging", "package": "", "digests": [f"sha256:{digest}"], "reason": "malware"}
    await stack.ok("POST", "/policy/blocks", block)
    for move in (False, True):
        body = {"to": "main/release", "move": move}
        refused = await stack.api("POST", "/package/main%2Fstaging/demo/versions/1.0/promote", body)
        assert (refused.status, "malware" in refused.json["detail"]) == (403, True), refused.body
    assert (await stack.call("GET", f"/repositories/main/release/{path}")).status == 404
    assert (await stack.api("GET", "/package/main%2Fstaging/demo/versions/1.0")).status == 200


async def test_what_nobody_has_read_yet_is_read_before_a_promotion(stack: Stack) -> None:
    await files_of_demo(stack, extra_files={"evil.pth": b"import os\n"})
    rule = {"name": "no pth", "match": {"contents": ["pth"]}, "action": "block"}
    await stack.ok("PUT", "/repository/main%2Fstaging/config/policy", {"rules": [rule]})
    promote = "/package/main%2Fstaging/demo/versions/1.0/promote"
    refused = await stack.api("POST", promote, {"to": "main/release"})
    assert (refused.status, "no pth" in refused.json["detail"]) == (403, True), refused.body
    assert (await stack.api("GET", "/package/main%2Frelease/demo")).status == 404


async def test_unsigned_images_wait_where_signatures_are_required(stack: Stack) -> None:
    images = Images(stack, "docker")
    key = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="
    key = f"-----BEGIN PUBLIC KEY-----\n{key}\n-----END PUBLIC KEY-----\n"
    await images.fill(push_rules={"require_content_trust": True}, trust={"keys": [key]})
    await stack.add_user("ada")
    await stack.grant("ada", "main/release", "read")
    assert (await images.promote("app", "v1")).status == 200
    assert await stack.ok("GET", "/package/main%2Frelease/app/versions/v1")
    assert (await stack.api("GET", "/package/main%2Frelease/app/versions/v1", who="ada")).status == 404
    kinds = (await stack.api("GET", "/events?type=package.quarantined")).body
    assert kinds.count(b"package.quarantined") == 5
    assert b"quarantined" not in (await stack.api("GET", "/events?type=package.*", who="ada")).body


@pytest.mark.parametrize("format", CASES)
async def test_what_is_yanked_in_the_target_stays_so(stack: Stack, format: str) -> None:
    promoting = Promoting(stack, format)
    await promoting.fill()
    case = CASES[format]
    assert (await promoting.promote(case.name, case.version)).status == 200
    address = f"/package/main%2Frelease/{case.segment}/versions/{case.version}"
    reply = await stack.api("POST", f"{address}/yank", {"reason": "it loses data"})
    assert reply.status == 200, reply.body
    before = await promoting.shown("release")
    for fields in ({}, {"move": True}):
        again = await promoting.promote(case.name, case.version, **fields)
        assert (again.status, b"is yanked in main/release" in again.body) == (409, True), again.body
    record = await stack.ok("GET", address)
    assert (record["state"], record["reason"]) == ("yanked", "it loses data")
    assert await promoting.shown("release") == before
    assert case.version in await promoting.versions("staging", case.name)
