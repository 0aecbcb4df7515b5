"""Whatever brings something into sight is judged like publishing it, on every road and at every path."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.format_cases import CASES
from tests.support.images import Registry, make_image
from tests.support.maven_files import make_pom
from tests.support.memory_server import Reply, Stack
from tests.support.npm_packages import make_publish

pytestmark = pytest.mark.server

WRITER = ("read", "write", "overwrite", "delete")
METADATA = b"<metadata><versioning><versions><version>6.6.6</version></versions></versioning></metadata>"
JSON = {"Content-Type": "application/json"}
APPROVED = {"type": "Hosted", "push_rules": {"requires_approval": True}}
BUILD = "1.1-20260101.000000-1234567890"
PATHS = {
    "/archetype-catalog.xml": b"<archetype-catalog/>",
    "/.meta/prefixes.txt": b"## repository-prefixes/2.0\n/evil\n",
    "/.index/nexus-maven-repository-index.properties": b"nexus.index.id=evil\n",
    "/com/acme/maven-metadata.xml": (
        b"<metadata><plugins><plugin><name>g</name><prefix>good</prefix><artifactId>evil-plugin</artifactId>"
        b"</plugin></plugins></metadata>"
    ),
    "/com/acme/lib/1.0/lib-2.0.jar": b"PK",
    "/com/acme/lib/3.0-SNAPSHOT/maven-metadata.xml": METADATA,
    "/com/acme/lib/maven-metadata.xml": METADATA,
    "/com/acme/lib/notes.txt": b"notes",
    f"/com/acme/lib/1.1-SNAPSHOT/lib-{BUILD}.jar": b"PK",
}


def plugin_list(*pairs: tuple[str, str]) -> bytes:
    listed = "".join(
        f"<plugin><name>n</name><prefix>{prefix}</prefix><artifactId>{artifact}</artifactId></plugin>"
        for prefix, artifact in pairs
    )
    return f"<metadata><plugins>{listed}</plugins></metadata>".encode()


async def add_java(stack: Stack, **push_rules: bool) -> None:
    await stack.add_repository("java", format="maven", config={"type": "Hosted", "push_rules": push_rules})
    await stack.add_user("dan")
    await stack.grant("dan", "main/java", *WRITER)


async def put(stack: Stack, path: str, data: bytes, who: str = "admin") -> Reply:
    return await stack.call("PUT", f"/repositories/main/java{path}", raw=data, who=who)


async def bind(stack: Stack, user: str, role: str, pattern: str, key: str = "acme") -> None:
    await stack.ok("POST", "/project", {"key": key, "name": key})
    await stack.ok("POST", f"/project/{key}/bindings", {"repository": "main/java", "pattern": pattern})
    await stack.ok("POST", f"/project/{key}/members", {"user": user, "role": role})


@pytest.mark.parametrize("rule", ["requires_approval", "must_be_project_member"])
async def test_rules_hold_for_every_path_of_a_java_repository(stack: Stack, rule: str) -> None:
    await add_java(stack, **{rule: True})
    assert (await put(stack, "/com/acme/lib/1.0/lib-1.0.jar", b"PK")).status == 201
    for path, data in PATHS.items():
        for each in (path, f"{path}.sha1"):
            refused = await put(stack, each, data, "dan")
            assert (each, refused.status, rule in refused.body.decode()) == (each, 403, True)
        assert (await stack.call("GET", f"/repositories/main/java{path}")).body != data
    for path, data in PATHS.items():
        assert (path, (await put(stack, path, data)).status in (200, 201)) == (path, True)


async def test_a_file_in_the_folder_of_a_package_belongs_to_it(stack: Stack) -> None:
    await add_java(stack, must_be_project_member=True)
    await bind(stack, "dan", "developer", "com.acme:lib")
    assert (await put(stack, "/com/acme/lib/1.0/lib-1.0.jar", b"PK", "dan")).status == 201
    for path in ("/com/acme/lib/1.0/lib-2.0.jar", "/com/acme/lib/notes.txt", "/com/acme/lib/maven-metadata.xml"):
        assert (path, (await put(stack, path, PATHS[path], "dan")).status in (200, 201)) == (path, True)
    token = await stack.token(repositories=[{"repository": "main/java", "actions": WRITER, "packages": ["com.good:*"]}])
    for method in ("PUT", "DELETE"):
        path = "/repositories/main/java/com/acme/lib/notes.txt"
        assert (await stack.call(method, path, raw=b"evil", who=token)).status == 403
    wanted = {"paths": ["com/acme/lib/notes.txt"]}
    answer = await stack.ok("DELETE", "/repository/main%2Fjava/packages", wanted, who=token)
    assert (answer["deleted"], len(answer["rejected"])) == ([], 1)
    assert (await stack.call("DELETE", "/repositories/main/java/com/acme/lib/notes.txt", who="dan")).status == 204


async def test_a_member_lists_own_plugins_in_the_group_and_no_others(stack: Stack) -> None:
    await add_java(stack, must_be_project_member=True)
    await bind(stack, "dan", "developer", "com.acme:own-plugin")
    group = "/com/acme/maven-metadata.xml"
    assert (await put(stack, "/com/acme/own-plugin/1.0/own-plugin-1.0.jar", b"PK", "dan")).status == 201
    assert (await put(stack, "/com/acme/own-plugin/maven-metadata.xml", METADATA, "dan")).status in (200, 201)
    assert (await put(stack, group, plugin_list(("good", "good-plugin")))).status == 201
    assert (await put(stack, group, plugin_list(("good", "good-plugin"), ("own", "own-plugin")), "dan")).status == 200
    assert (await put(stack, f"{group}.sha1", b"0" * 40, "dan")).status == 201
    for wrong in (("good", "own-plugin"), ("other", "other-plugin")):
        assert (wrong, (await put(stack, group, plugin_list(wrong), "dan")).status) == (wrong, 403)
    assert (await put(stack, group, METADATA, "dan")).status == 403
    listed = (await stack.call("GET", f"/repositories/main/java{group}")).body
    assert (b"good-plugin" in listed, b"own-plugin" in listed, b"other" in listed) == (True, True, False)


async def test_a_snapshot_of_a_long_build_number_is_a_version_like_others(stack: Stack) -> None:
    await add_java(stack)
    folder = "/com/acme/lib/1.1-SNAPSHOT"
    pom = make_pom("com.acme", "lib", "1.1-SNAPSHOT")
    for build in ("20260101.000000-7", BUILD.removeprefix("1.1-")):
        assert (await put(stack, f"{folder}/lib-1.1-{build}.pom", pom)).status == 201
    shown = (await stack.call("GET", f"/repositories/main/java{folder}/maven-metadata.xml")).body
    assert b"<buildNumber>1234567890</buildNumber>" in shown
    found = await stack.ok("GET", "/package/main%2Fjava/com.acme:lib/versions")
    assert [each["version"] for each in found["items"]] == ["1.1-SNAPSHOT"]


@pytest.mark.parametrize("format", CASES)
async def test_what_comes_back_is_judged_like_what_is_published(stack: Stack, format: str) -> None:
    case = CASES[format]
    await stack.add_repository("release", format=format, config={"type": "Hosted"})
    await stack.add_user("dan")
    await stack.grant("dan", "main/release", *WRITER)

    async def send(method: str, path: str, raw: bytes = b"", kind: str = "") -> Reply:
        headers = {"Content-Type": kind} if kind else {}
        reply = await stack.call(method, f"/repositories/main/release{path}", raw=raw, headers=headers)
        assert reply.status < 300, reply.body
        return reply

    await case.publish(send)
    place = f"/package/main%2Frelease/{case.segment}/versions/{case.version}"
    entry = (await stack.ok("DELETE", place, who="dan"))["trash"]
    held = {each["version"] for each in (await stack.ok("GET", place.rpartition("/")[0]))["items"]}
    withdrawn = f"/package/main%2Frelease/{case.segment}/versions/{sorted(held)[0]}"
    await stack.ok("POST", f"{withdrawn}/yank", {"reason": "broken"}, who="dan")
    await stack.ok("PUT", "/repository/main%2Frelease/config", APPROVED)
    roads = (f"/trash/{entry}/restore", f"{withdrawn}/unyank")
    shown = await stack.ok("GET", "/trash", who="dan")
    assert [each["id"] for each in shown["items"]] == [entry]
    for road in roads:
        refused = await stack.api("POST", road, {}, who="dan")
        assert (road, refused.status, "requires_approval" in refused.body.decode()) == (road, 403, True)
    for path in case.files:
        assert (await stack.call("GET", f"/repositories/main/release{path}")).status == 404
    for road in roads:
        await stack.ok("POST", road, {})
    for path in case.files:
        assert (await stack.call("GET", f"/repositories/main/release{path}")).status == 200


async def test_images_and_tags_come_back_by_an_approver_alone(stack: Stack) -> None:
    await stack.add_repository("release", format="docker", config={"type": "Hosted"})
    await stack.add_user("dan")
    await stack.grant("dan", "main/release", *WRITER)
    registry = Registry(stack, "main/release/app")
    image = make_image()
    await registry.push(image, "1")
    await registry.put(image, "2")
    place = "/package/main%2Frelease/app/versions"
    tag = (await stack.ok("DELETE", f"{place}/2", who="dan"))["trash"]
    manifest = (await stack.ok("DELETE", f"{place}/{image.digest}", who="dan"))["trash"]
    await stack.ok("PUT", "/repository/main%2Frelease/config", APPROVED)
    for entry in (manifest, tag):
        refused = await stack.api("POST", f"/trash/{entry}/restore", {}, who="dan")
        assert (refused.status, "requires_approval" in refused.body.decode()) == (403, True)
    for entry in (manifest, tag):
        await stack.ok("POST", f"/trash/{entry}/restore", {})


async def npm_stage(stack: Stack, *names: str) -> Any:
    stage = await stack.ok("POST", "/repository/main%2Fnode/stages", {"description": "secret plans"})
    at = stage["url"].rpartition("/")[2]
    for name in names:
        path = f"/repositories/main/{at}/{name.replace('/', '%2f')}"
        reply = await stack.call("PUT", path, raw=make_publish(name, "1.0.0"), headers=JSON)
        assert reply.status == 201, reply.body
    return stage["id"]


async def test_a_token_for_one_package_ends_no_stage_that_has_others(stack: Stack) -> None:
    await stack.add_repository("node", format="npm", config={"type": "Hosted"})
    await stack.add_repository("other", format="npm", config={"type": "Hosted"})
    scope = {"repository": "main/node", "actions": list(WRITER), "packages": ["left-pad"]}
    token = await stack.token(repositories=[scope])
    elsewhere = await stack.token(repositories=[{"repository": "main/other", "actions": list(WRITER)}])
    mixed = await npm_stage(stack, "left-pad", "@acme/secret")
    secret = await npm_stage(stack, "@acme/secret")
    own = await npm_stage(stack, "left-pad")
    for uid, who in ((secret, token), (own, elsewhere), (mixed, elsewhere)):
        for method, path in (("GET", ""), ("POST", "/approve"), ("POST", "/reject"), ("DELETE", "")):
            answer = await stack.api(method, f"/stages/{uid}{path}", {}, who=who)
            assert (uid, method, path, answer.status) == (uid, method, path, 404)
        for method, path in (("GET", ""), ("GET", "/tarball"), ("POST", "/approve"), ("DELETE", "")):
            address = f"/repositories/main/node/-/stage/{uid}{path}"
            assert (await stack.call(method, address, who=who)).status == 404
    assert (await stack.ok("GET", "/stages", who=elsewhere))["items"] == []
    for method, path in (("POST", f"/stages/{mixed}/reject"), ("DELETE", f"/stages/{mixed}")):
        refused = await stack.api(method, path, {}, who=token)
        assert (refused.status, "secret" in refused.body.decode()) == (403, False)
    address = f"/repositories/main/node/-/stage/{mixed}"
    assert (await stack.call("DELETE", address, who=token)).status == 403
    assert (await stack.ok("GET", f"/stages/{mixed}"))["state"] == "open"
    assert (await stack.ok("DELETE", f"/stages/{own}", who=token))["state"] == "rejected"
