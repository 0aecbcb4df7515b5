"""Images in the management API: tags and manifests as versions are listed, shown and deleted."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
import pytest_twisted

from tests.support.images import (
    OCI_CONFIG,
    OCI_INDEX,
    Image,
    Registry,
    describe,
    digest_of,
    make_artifact,
    make_image,
    make_index,
)
from tests.support.memory_server import Stack
from tests.support.signing import Signer, sign_simply, signature_tag

ONE, TWO = make_image("one"), make_image("two", architecture="arm64")
BOTH = make_index([ONE, TWO])
LOOSE = make_image("loose")
PACKAGES = "/repository/main%2Fimages/packages"
APP = "/package/main%2Fimages/app"


def size_of(*images: Image) -> int:
    """The size of images; blobs that they share count once."""
    return sum(map(len, {data for image in images for data in (image.manifest, *image.blobs)}))


@pytest_twisted.async_yield_fixture
async def registry(stack: Stack) -> Any:
    """An index of two images by two tags, one of the images by another, and a manifest by its digest only."""
    await stack.add_repository("images", format="docker")
    found = Registry(stack)
    for image in (ONE, TWO, LOOSE):
        await found.push(image)
    await found.push(BOTH, "v1")
    await found.push(BOTH, "latest")
    await found.push(ONE, "amd64")
    yield found


async def names(stack: Stack) -> list[str]:
    return [each["version"] for each in (await stack.ok("GET", f"{APP}/versions"))["items"]]


async def test_tags_are_listed_with_their_manifests(registry: Registry) -> None:
    stack = registry.stack
    (package,) = (await stack.ok("GET", PACKAGES))["items"]
    assert (package["name"], package["latest"], package["versions"], package["files"]) == ("app", "latest", 3, 10)
    assert package["size"] == size_of(ONE, TWO, BOTH, LOOSE)
    listed = await stack.ok("GET", f"{APP}/versions?count=true")
    assert listed["total"] == 4
    found = {each["version"]: each for each in listed["items"]}
    assert set(found) == {"v1", "latest", "amd64", LOOSE.digest}  # manifests of an index are no versions
    assert (found["v1"]["digest"], found["v1"]["publisher"], found["v1"]["state"]) == (BOTH.digest, "admin", "live")
    assert (found["v1"]["size"], found["v1"]["files"]) == (size_of(ONE, TWO, BOTH), 7)
    assert (found["amd64"]["size"], found["amd64"]["files"]) == (size_of(ONE), 3)
    assert found["v1"]["platforms"] is None
    assert (found["v1"]["statements"], found["v1"]["signed_by"], found["v1"]["pulled_on"]) == ([], [], None)
    times = [datetime.fromisoformat(each["published_at"]) for each in listed["items"]]
    assert times == sorted(times, reverse=True)
    paged: list[str] = []
    after = ""
    while True:
        page = await stack.ok("GET", f"{APP}/versions?limit=1{after}")
        paged += [each["version"] for each in page["items"]]
        if page["next"] is None:
            break
        after = f"&cursor={page['next']}"
    assert paged == [each["version"] for each in listed["items"]]


async def test_a_version_lists_its_manifests_and_blobs(registry: Registry) -> None:
    stack = registry.stack
    shown = await stack.ok("GET", f"{APP}/versions/v1")
    assert (shown["digest"], shown["tags"]) == (BOTH.digest, ["latest", "v1"])
    assert shown["metadata"]["media_type"] == OCI_INDEX
    by_digest = {each["name"]: each for each in shown["files"]}
    assert set(by_digest) >= {BOTH.digest, ONE.digest, TWO.digest}
    assert sum(each["size"] for each in shown["files"]) == size_of(ONE, TWO, BOTH)
    for each in shown["files"]:  # every URL is served
        path = each["url"].partition("registry.example")[2]
        assert len((await stack.call("GET", path)).body) == each["size"]
    assert (await stack.ok("GET", f"{APP}/versions/{TWO.digest}"))["version"] == TWO.digest
    for missing in ("v2", "sha256:" + "0" * 64, "..."):
        assert (await stack.api("GET", f"{APP}/versions/{missing}")).status == 404


async def test_a_tag_is_deleted_alone_and_a_manifest_with_its_tags(registry: Registry) -> None:
    stack = registry.stack
    dry = await stack.ok("DELETE", f"{APP}/versions/{BOTH.digest}?dry_run=true")
    assert dry == {"deleted": [BOTH.digest, "latest", "v1"], "dry_run": True, "trash": None}
    gone = await stack.ok("DELETE", f"{APP}/versions/amd64")
    assert (gone["deleted"], gone["dry_run"]) == (["amd64"], False)
    assert (await registry.below("GET", "manifests/amd64")).status == 404
    assert (await registry.below("GET", f"manifests/{ONE.digest}")).status == 200
    gone = await stack.ok("DELETE", f"{APP}/versions/{BOTH.digest}")
    assert gone["deleted"] == [BOTH.digest, "latest", "v1"]
    assert (await registry.below("GET", "manifests/latest")).status == 404
    assert sorted(await names(stack)) == sorted([ONE.digest, TWO.digest, LOOSE.digest])
    objects = [each["object"] for each in await stack.audited(action="version.delete")]
    assert f"main/images/app@{BOTH.digest}" in objects
    assert "main/images/app:amd64" in objects


async def test_an_image_is_deleted_with_its_manifests_and_blobs(registry: Registry) -> None:
    stack = registry.stack
    await registry.push_blob(b"no manifest names this")
    assert len((await stack.ok("DELETE", f"{APP}?dry_run=true"))["deleted"]) == 11
    assert len((await stack.ok("DELETE", f"{APP}?purge=true"))["deleted"]) == 11
    assert (await stack.api("GET", APP)).status == 404
    assert (await stack.ok("GET", PACKAGES))["items"] == []
    stats = await stack.ok("GET", "/repository/main%2Fimages/stats")
    assert (stats["logical_bytes"], stats["total_blobs"]) == (0, 0)


async def test_paths_of_images_are_deleted_by_tag_or_digest(registry: Registry) -> None:
    stack = registry.stack
    await registry.push(ONE, "v1", name="main/images/team/tool")
    paths = ["app/v1", f"app/{LOOSE.digest}", "app/never", "team/tool"]
    done = await stack.ok("DELETE", PACKAGES, {"paths": paths})
    assert (done["deleted"], done["missing"]) == (["app/v1", f"app/{LOOSE.digest}", "team/tool"], ["app/never"])
    assert sorted(await names(stack)) == ["amd64", "latest"]


async def test_the_policy_against_deletion_holds_for_the_api(registry: Registry) -> None:
    stack = registry.stack
    config = {"type": "Hosted", "policy": {"allow_delete": False}}
    await stack.ok("PUT", "/repository/main%2Fimages/config", config)
    for path in (APP, f"{APP}/versions/v1"):
        refused = await stack.api("DELETE", path)
        assert (refused.status, "allow_delete" in refused.json["detail"]) == (409, True)
    assert (await stack.api("POST", f"{APP}/versions/v1/yank", {})).status == 409


async def test_readers_do_not_see_images_that_wait_for_a_signature(registry: Registry) -> None:
    stack = registry.stack
    await stack.add_user("reader")
    signer = Signer()
    rules = {"require_content_trust": True}
    config = {"type": "Hosted", "push_rules": rules, "trust": {"keys": [signer.pem]}}
    await stack.ok("PUT", "/repository/main%2Fimages/config", config)
    await registry.push(make_image("unsigned"), "v2")
    states = {each["version"]: each["state"] for each in (await stack.ok("GET", f"{APP}/versions"))["items"]}
    assert (states["v2"], states["v1"]) == ("waiting", "live")
    assert (await stack.ok("GET", f"{APP}/versions", who="reader"))["items"] == []
    assert (await stack.api("GET", f"{APP}/versions/v2", who="reader")).status == 404
    assert (await stack.ok("GET", APP))["latest"] == "latest"
    await registry.push(sign_simply(signer, BOTH.digest), signature_tag(BOTH.digest))
    seen = {each["version"] for each in (await stack.ok("GET", f"{APP}/versions", who="reader"))["items"]}
    assert seen == {"v1", "latest", "amd64", signature_tag(BOTH.digest)}


@pytest.mark.parametrize("cursor", ["x", "-1/v1", "12"])
async def test_an_invented_cursor_is_refused_or_gives_a_page(registry: Registry, cursor: str) -> None:
    reply = await registry.stack.api("GET", f"{APP}/versions?cursor={cursor}")
    assert reply.status in (200, 422)


async def test_a_pull_of_many_blobs_counts_as_one_download(registry: Registry) -> None:
    stack = registry.stack

    async def downloads() -> int:
        await stack.assembly.core.downloads.flush()
        stats = await stack.ok("GET", "/repository/main%2Fimages/stats")
        assert stats["top_packages"][0]["downloads"] == stats["downloads"]["total"]
        return int(stats["downloads"]["total"])

    assert await downloads() == 0
    for _ in range(2):  # the second answer is from the response cache
        await registry.below("HEAD", "manifests/v1")
        assert (await registry.below("GET", "manifests/v1")).status == 200
        assert (await registry.below("GET", f"manifests/{ONE.digest}")).status == 200
        for data in ONE.blobs:
            await registry.push_blob(data)
    same = {"If_None_Match": f'"{BOTH.digest}"'}
    assert (await registry.below("GET", "manifests/v1", **same)).status == 304
    assert await downloads() == 2
    await registry.below("GET", f"manifests/{LOOSE.digest}")
    assert await downloads() == 3
    assert (await stack.ok("GET", APP))["downloads"] == 3


async def test_an_image_shows_its_platforms_layers_commands_labels_and_signatures(stack: Stack) -> None:
    history = [{"created_by": "/bin/sh -c #(nop) COPY . /"}, {"created_by": "ENV A=1", "empty_layer": True}]
    settings = {"Labels": {"a": "<b>"}, "Entrypoint": ["/run"], "Cmd": ["-v"], "ExposedPorts": {"80/tcp": {}}}
    first = make_image("one", settings=settings, history=history)
    both, signer = make_index([first, TWO]), Signer()
    await stack.add_repository("images", format="docker")
    registry = Registry(stack)
    for image in (first, TWO):
        await registry.push(image)
    await registry.push(both, "v1")
    await registry.push(sign_simply(signer, both.digest), signature_tag(both.digest))
    await registry.push(make_artifact(both, "application/spdx+json"))
    found = await stack.ok("GET", f"{APP}/versions/v1/image", who=None)
    assert (found["digest"], found["platform_count"], found["signed_by"]) == (both.digest, 2, [])
    amd, arm = found["platforms"]
    assert (amd["os"], amd["architecture"], amd["layers"], amd["stored"]) == ("linux", "amd64", 1, True)
    assert amd["steps"] == [
        {
            "command": "COPY . /",
            "digest": digest_of(ONE.blobs[1]),
            "size": len(ONE.blobs[1]),
            "media_type": "application/vnd.oci.image.layer.v1.tar+gzip",
        },
        {"command": "ENV A=1", "digest": None, "size": None, "media_type": None},
    ]
    assert (amd["labels"], amd["entrypoint"], amd["command"], amd["ports"]) == (
        {"a": "<b>"},
        ["/run"],
        ["-v"],
        ["80/tcp"],
    )
    assert [step["command"] for step in arm["steps"]] == [""]
    assert [(each["artifact_type"], each["tag"]) for each in found["referrers"]] == [
        ("application/spdx+json", ""),
        (OCI_CONFIG, signature_tag(both.digest)),
    ]
    single = await stack.ok("GET", f"{APP}/versions/{first.digest}/image")
    assert [each["architecture"] for each in single["platforms"]] == ["amd64"]


async def test_the_case_of_keys_hides_nothing_of_what_an_image_runs(stack: Stack) -> None:
    image = make_image("one", settings={"Entrypoint": ["/run"], "ENTRYPOINT": ["/evil"], "cmd": ["-v"], "user": "0"})
    await stack.add_repository("images", format="docker")
    registry = Registry(stack)
    await registry.push(image, "v1")
    (found,) = (await stack.ok("GET", f"{APP}/versions/v1/image", who=None))["platforms"]
    assert (found["entrypoint"], found["command"], found["user"]) == (["/evil"], ["-v"], "0")


@pytest.mark.parametrize(
    "config",
    [b"", b"[]", b"{", b'{"history": 5, "os": "linux"}', b"[" * 100_000, b'{"config": {"Labels": {"a": 1}}}'],
    ids=["empty", "list", "broken", "wrong", "deep", "number"],
)
async def test_a_malformed_configuration_hides_nothing_else(stack: Stack, config: bytes) -> None:
    await stack.add_repository("images", format="docker")
    manifest = {**json.loads(ONE.manifest), "config": describe(config, OCI_CONFIG)}
    await Registry(stack).push(Image(json.dumps(manifest).encode(), (config, *ONE.blobs[1:])), "v1")
    (platform,) = (await stack.ok("GET", f"{APP}/versions/v1/image"))["platforms"]
    assert (platform["size"], len(platform["steps"])) == (len(ONE.blobs[1]), 1)


async def test_only_images_have_platforms(stack: Stack) -> None:
    await stack.add_repository()
    await stack.publish("main/py", "demo", "1.0")
    assert (await stack.api("GET", "/package/main%2Fpy/demo/versions/1.0/image")).status == 404


@pytest.mark.parametrize("order", ["version", "-version", "published_at", "-published_at"])
async def test_tags_are_paged_in_every_order(registry: Registry, order: str) -> None:
    every = (await registry.stack.ok("GET", f"{APP}/versions?sort={order}"))["items"]
    by = [each["version" if "version" in order else "published_at"] for each in every]
    assert by == sorted(by, reverse=order.startswith("-"))
    paged: list[str] = []
    after = ""
    while True:
        page = await registry.stack.ok("GET", f"{APP}/versions?sort={order}&limit=1{after}")
        paged += [each["version"] for each in page["items"]]
        if page["next"] is None:
            break
        after = f"&cursor={page['next']}"
    assert paged == [each["version"] for each in every]
    assert (await registry.stack.api("GET", f"{APP}/versions?sort=size")).status == 422


async def test_no_more_documents_are_read_than_a_request_may(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = len(BOTH.manifest) + len(ONE.manifest) + len(ONE.blobs[0])
    monkeypatch.setattr("pkgrepo.management.packages.image_contents.MOST_BYTES", most)
    first, second = (await registry.stack.ok("GET", f"{APP}/versions/v1/image"))["platforms"]
    assert (first["stored"], first["architecture"], len(first["steps"])) == (True, "amd64", 1)
    assert (second["stored"], second["architecture"], second["steps"]) == (False, "arm64", [])
    monkeypatch.setattr("pkgrepo.management.packages.image_contents.MOST_BYTES", 1)
    assert (await registry.stack.api("GET", f"{APP}/versions/v1/image")).status == 404


async def test_a_list_says_platforms_pulls_and_what_is_about_each_tag(registry: Registry) -> None:
    stack = registry.stack
    signature = {"dev.sigstore.bundle.content": "message-signature"}
    statement = {
        "dev.sigstore.bundle.content": "dsse-envelope",
        "dev.sigstore.bundle.predicateType": "https://slsa.dev",
    }
    bundle = "application/vnd.dev.sigstore.bundle.v0.3+json"
    for kind, said in (("application/spdx+json", {}), (bundle, signature), (bundle, statement), ("x/y", {})):
        await registry.push(make_artifact(BOTH, kind, annotations=said))
    await registry.push(make_artifact(None, "x/z"), signature_tag(ONE.digest))
    for _ in range(2):
        await stack.call("GET", "/v2/main/images/app/manifests/v1")
    await stack.assembly.core.downloads.flush()
    listed = await stack.ok("GET", f"{APP}/versions?platforms=true&without_statements=true&count=true")
    items = listed["items"]
    assert (len(items), listed["total"]) == (4, 4)
    assert len((await stack.ok("GET", f"{APP}/versions"))["items"]) == 9
    found = {each["version"]: each for each in items}
    assert found["v1"]["platforms"] == ["linux/amd64", "linux/arm64"]
    assert found["amd64"]["platforms"] == found[LOOSE.digest]["platforms"] == ["linux/amd64"]
    assert found["v1"]["statements"] == ["SBOM", "attestation", "signature", "x/y"]
    assert found["amd64"]["statements"] == ["signature"]
    assert found["v1"]["downloads"] == found["latest"]["downloads"] == 2
    assert found["v1"]["pulled_on"] == found["latest"]["pulled_on"]
    assert found["v1"]["pulled_on"]
    assert found["amd64"]["pulled_on"] is None
    image = await stack.ok("GET", f"{APP}/versions/v1/image")
    kinds = {(each["kind"], each["says"]) for each in image["referrers"]}
    assert kinds == {("SBOM", ""), ("signature", ""), ("attestation", "https://slsa.dev"), ("x/y", "")}
    downloads = await stack.ok("GET", f"{APP}/downloads")
    assert downloads["versions"] == [{"version": "latest", "count": 2}, {"version": "v1", "count": 2}]


async def test_attestations_in_an_index_are_no_platforms(registry: Registry) -> None:
    about = make_artifact(None, "application/vnd.in-toto+json")
    reference = {"vnd.docker.reference.digest": ONE.digest, "vnd.docker.reference.type": "attestation-manifest"}
    unknown = {"os": "unknown", "architecture": "unknown"}
    one = {**ONE.descriptor, "platform": {"os": "linux", "architecture": "amd64"}}
    listed = [one, {**about.descriptor, "platform": unknown, "annotations": reference}]
    await registry.push(about)
    await registry.push(make_index([], manifests=listed), "built")
    stack = registry.stack
    found = {each["version"]: each for each in (await stack.ok("GET", f"{APP}/versions?platforms=true"))["items"]}
    assert (found["built"]["platforms"], found["built"]["statements"]) == (["linux/amd64"], ["attestation"])
    assert found["v1"]["statements"] == []
    image = await stack.ok("GET", f"{APP}/versions/built/image")
    assert (image["platform_count"], image["attestations"]) == (1, [about.digest])
