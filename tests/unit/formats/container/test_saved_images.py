"""Images in archives that forms send: what programs save is published as if it were pushed."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.support.http_client import BOUNDARY, form_body
from tests.support.images import (
    Image,
    Registry,
    digest_of,
    make_docker_archive,
    make_image,
    make_index,
    make_oci_archive,
    make_tar,
)
from tests.support.memory_server import Reply

ONE, TWO = make_image("one"), make_image("two", architecture="arm64")
INDEX = make_index([ONE, TWO])


async def send(
    registry: Registry, data: bytes, *, tag: str = "", image: str = "app", who: str | None = "admin"
) -> Reply:
    body = form_body([("image", image), ("tag", tag), ("file", "saved.tar", data)])
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    return await registry.stack.call("POST", "/api/repository/main%2Fimages/upload", who=who, headers=headers, raw=body)


async def pulled(registry: Registry, tag: str) -> tuple[str, bytes]:
    reply = await registry.below("GET", f"manifests/{tag}")
    assert reply.status == 200, reply.body
    return reply.headers["content-type"], reply.body


@pytest.mark.parametrize("packed", [False, True])
async def test_an_image_is_published_with_its_blobs(registry: Registry, packed: bool) -> None:
    data = make_oci_archive({"registry.example/app:v1": ONE})
    reply = await send(registry, gzip.compress(data) if packed else data)
    assert (reply.status, reply.json["version"], reply.json["changed"]) == (200, "v1", True)
    assert await pulled(registry, "v1") == (ONE.media_type, ONE.manifest)
    for blob in ONE.blobs:
        assert (await registry.below("GET", f"blobs/{digest_of(blob)}")).body == blob
    again = await send(registry, data)
    assert (again.status, again.json["changed"]) == (200, False)


async def test_an_index_comes_with_the_images_of_its_platforms(registry: Registry) -> None:
    reply = await send(registry, make_oci_archive({"": INDEX}, [ONE, TWO]), tag="v2")
    assert (reply.status, reply.json["version"]) == (200, "v2")
    assert await pulled(registry, "v2") == (INDEX.media_type, INDEX.manifest)
    for each in (ONE, TWO):
        assert (await pulled(registry, each.digest))[1] == each.manifest


async def test_the_one_platform_that_docker_saves_of_an_index_gets_the_tag(registry: Registry) -> None:
    reply = await send(registry, make_oci_archive({"v1": INDEX}, [TWO]))
    assert (reply.status, len(reply.json["notes"])) == (200, 1), reply.body
    assert (await pulled(registry, "v1"))[1] == TWO.manifest


async def test_several_images_get_their_own_tags(registry: Registry) -> None:
    reply = await send(registry, make_oci_archive({"app:v1": ONE, "app:v2": TWO}))
    assert reply.status == 200, reply.body
    assert [(await pulled(registry, tag))[1] for tag in ("v1", "v2")] == [ONE.manifest, TWO.manifest]


async def test_a_docker_archive_gets_a_manifest(registry: Registry) -> None:
    reply = await send(registry, make_docker_archive(ONE, "acme/app:v1", "acme/app:latest"))
    assert (reply.status, reply.json["version"]) == (200, "v1"), reply.body
    manifest = json.loads((await pulled(registry, "latest"))[1])
    config, layer = ONE.blobs
    assert manifest["config"]["digest"] == digest_of(config)
    [found] = manifest["layers"]
    assert found["mediaType"] == "application/vnd.oci.image.layer.v1.tar"
    assert (await registry.below("GET", f"blobs/{found['digest']}")).body == gzip.decompress(bytes(layer))


async def test_a_docker_archive_is_read_as_docker_reads_it(registry: Registry) -> None:
    archive = make_docker_archive(ONE, "acme/app:v1")
    for key in (b'"Config"', b'"RepoTags"', b'"Layers"', b'"rootfs"'):
        archive = archive.replace(key, key.upper())
    reply = await send(registry, archive)
    assert (reply.status, reply.json["version"]) == (200, "v1"), reply.body


LISTED = {"schemaVersion": 2, "manifests": [{**ONE.descriptor, "digest": digest_of(b"other")}]}
REFUSED: dict[str, tuple[bytes, str]] = {
    "no archive": (b"text" * 1000, "not a tar archive"),
    "no list": (make_tar({"a.tar": b""}), "neither index.json nor manifest.json"),
    "no image": (make_oci_archive({}), "has no images"),
    "no tag": (make_oci_archive({"": ONE}), "does not say the tag"),
    "two names": (make_oci_archive({"a:v1": ONE, "b:v1": TWO}), "images of several names: a, b"),
    "other layer": (make_docker_archive(ONE, "a:v1", damaged=True), "its configuration says"),
    "no manifest": (make_tar({"index.json": json.dumps(LISTED).encode()}), "lacks the manifest"),
    "no layer": (make_oci_archive({"v1": Image(ONE.manifest, ONE.blobs[:1])}), "refers to content"),
    "two platforms missing": (make_oci_archive({"v1": INDEX}), "refers to content"),
    "bad index": (make_tar({"index.json": b"[]"}), "no list of manifests"),
    "bad list": (make_tar({"manifest.json": b"[1]"}), "lists objects"),
    "bad path": (make_tar({"manifest.json": b'[{"Config":"x","Layers":[]}]'}), "lacks 'x'"),
    "bad JSON": (make_tar({"manifest.json": b"{"}), "is not JSON"),
    "wrong digest": (make_oci_archive({"v1": ONE}, **{f"blobs/sha256/{'0' * 64}": b"x"}), "digest"),
    "large list": (make_tar({"index.json": bytes(5_000_000)}), "more than 4194304 bytes"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_no_image_is_refused_and_leaves_nothing(registry: Registry, case: str) -> None:
    data, why = REFUSED[case]
    reply = await send(registry, data)
    assert 400 <= reply.status < 500, reply.body
    assert why in reply.body.decode(), reply.body
    assert (await registry.below("GET", "tags/list")).status == 404


async def test_rules_are_those_of_pushes(registry: Registry) -> None:
    data = make_oci_archive({"v1": ONE})
    assert (await send(registry, data, image="Not a name")).status in (400, 422)
    assert (await send(registry, data, tag="not a tag")).status in (400, 422)
    await registry.stack.add_user("rita")
    await registry.stack.grant("rita", "main/images", "read")
    assert (await send(registry, data, who="rita")).status == 403
    assert (await send(registry, data, who=None)).status == 401
    assert (await registry.below("GET", "tags/list")).status == 404
