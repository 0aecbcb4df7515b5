"""Manifests over HTTP: pushed, read, tagged, deleted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.images import (
    DOCKER_IMAGE,
    OCI_IMAGE,
    OCI_INDEX,
    SCHEMA_1,
    Image,
    Registry,
    code,
    digest_of,
    make_image,
    make_index,
    sentence,
)

APP = "main/images/app"


async def test_an_image_is_read_by_tag_and_digest_exactly_as_it_was_pushed(registry: Registry) -> None:
    image = make_image()
    pushed = await registry.push(image, "v1")
    assert pushed.headers["docker-content-digest"] == image.digest
    assert pushed.headers["location"] == f"/v2/{APP}/manifests/{image.digest}"
    for reference in ("v1", image.digest, image.digest.replace(":", "%3A")):
        for method in ("GET", "HEAD", "GET"):
            reply = await registry.below(method, f"manifests/{reference}", Accept=DOCKER_IMAGE)
            assert reply.status == 200
            assert reply.headers["content-type"] == image.media_type
            assert reply.headers["docker-content-digest"] == image.digest
            assert reply.headers["etag"] == f'"{image.digest}"'
            assert reply.headers["content-length"] == str(len(image.manifest))
            assert reply.body == (b"" if method == "HEAD" else image.manifest)


async def test_a_moved_tag_is_seen_at_once(make_registry: Any) -> None:
    registry = await make_registry(rules={"allow_tag_overwrite": True})
    for text in ("one", "two", "three"):
        image = make_image(text)
        await registry.push(image, "latest")
        for _ in range(2):  # the second is answered from memory
            assert (await registry.below("GET", "manifests/latest")).body == image.manifest
    gone = await registry.below("DELETE", "manifests/latest")
    assert gone.status == 202
    assert (await registry.below("GET", "manifests/latest")).status == 404
    assert (await registry.below("GET", f"manifests/{image.digest}")).status == 200


async def test_a_manifest_without_its_blobs_is_refused_naming_each(registry: Registry) -> None:
    image = make_image()
    await registry.push_blob(image.blobs[0])
    refused = await registry.put(image, "v1")
    assert (refused.status, code(refused)) == (400, "MANIFEST_BLOB_UNKNOWN")
    assert [each["detail"]["digest"] for each in refused.json["errors"]] == [digest_of(image.blobs[1])]
    await registry.push_blob(image.blobs[1], name="main/images/other")
    assert (await registry.put(image, "v1")).status == 400
    assert (await registry.below("GET", "manifests/v1")).status == 404


async def test_a_descriptor_of_another_size_is_refused(registry: Registry) -> None:
    image = make_image()
    for blob in image.blobs:
        await registry.push_blob(blob)
    value = json.loads(image.manifest)
    value["layers"][0]["size"] += 1
    refused = await registry.put(Image(json.dumps(value).encode(), ()), "v1")
    assert (refused.status, code(refused)) == (400, "MANIFEST_INVALID")


async def test_an_index_needs_its_children_unless_the_repository_is_sparse(make_registry: Any) -> None:
    registry = await make_registry()
    children = [make_image("a"), make_image("b", architecture="arm64")]
    await registry.push(children[0])
    index = make_index(children)
    assert code(await registry.put(index, "v1")) == "MANIFEST_BLOB_UNKNOWN"
    await registry.push(children[1])
    assert (await registry.put(index, "v1")).status == 201
    assert (await registry.below("GET", "manifests/v1")).headers["content-type"] == OCI_INDEX
    sparse = await make_registry(policy={"allow_sparse": True}, folder="sparse")
    assert (await sparse.put(index, "v1")).status == 201


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
async def test_a_push_by_digest_sets_the_tags_that_it_names(registry: Registry, algorithm: str) -> None:
    image = make_image()
    for blob in image.blobs:
        await registry.push_blob(blob)
    digest = digest_of(image.manifest, algorithm)
    tags = [f"t{number}" for number in range(12)]
    pushed = await registry.put(image, digest + "?" + "&".join(f"tag={tag}" for tag in tags))
    assert pushed.status == 201
    assert pushed.headers["docker-content-digest"] == digest
    assert (await registry.below("GET", "manifests/t11")).headers["docker-content-digest"] == digest
    assert (await registry.below("GET", f"manifests/{digest}")).body == image.manifest
    assert (await registry.below("GET", "tags/list")).json["tags"] == sorted(tags)


@pytest.mark.parametrize(
    ("reference", "data", "content_type", "error"),
    [
        (digest_of(b"other"), make_image().manifest, "", "DIGEST_INVALID"),
        ("sha256:baddigeststring", make_image().manifest, "", "DIGEST_INVALID"),
        ("v1", b"{}", "application/json", "MANIFEST_INVALID"),
        ("v1", b"{}", SCHEMA_1, "MANIFEST_INVALID"),
        (".v1", make_image().manifest, "", "TAG_INVALID"),
        (f"{digest_of(make_image().manifest)}?tag=.x", make_image().manifest, "", "TAG_INVALID"),
    ],
)
async def test_errors_of_a_manifest_name_the_reason(
    registry: Registry, reference: str, data: bytes, content_type: str, error: str
) -> None:
    for blob in make_image().blobs:
        await registry.push_blob(blob)
    refused = await registry.below("PUT", f"manifests/{reference}", data, Content_Type=content_type)
    assert (refused.status, code(refused)) == (400, error)


async def test_a_large_manifest_is_taken_and_a_larger_one_refused(registry: Registry) -> None:
    large = make_image("large", annotations={"text": "x" * 3_900_000})
    await registry.push(large, "large")
    assert (await registry.below("GET", "manifests/large")).body == large.manifest
    larger = make_image("large", annotations={"text": "x" * 4_200_000})
    refused = await registry.put(larger, "larger")
    assert (refused.status, code(refused)) == (413, "MANIFEST_INVALID")


async def test_a_tag_is_set_on_the_clients_conditions_only(make_registry: Any) -> None:
    registry = await make_registry(rules={"allow_tag_overwrite": True})
    one, two = make_image("one"), make_image("two")
    await registry.push(two)
    await registry.push(one, "v1")
    assert (await registry.put(two, "v1", If_None_Match="*")).status == 412
    assert (await registry.put(two, "v1", If_Match=f'"{two.digest}"')).status == 412
    assert (await registry.put(two, "v1", If_Match=f'"{one.digest}"')).status == 201
    assert (await registry.put(one, "v2", If_Match="*")).status == 412
    assert (await registry.put(one, "v2", If_None_Match="*")).status == 201


async def test_a_manifest_is_deleted_with_every_tag_on_it(registry: Registry) -> None:
    image = make_image()
    await registry.push(image, "v1")
    await registry.put(image, "v2")
    assert (await registry.below("DELETE", f"manifests/{image.digest}")).status == 202
    for reference in ("v1", "v2", image.digest):
        for method in ("GET", "DELETE"):
            reply = await registry.below(method, f"manifests/{reference}")
            assert (reply.status, code(reply)) == (404, "MANIFEST_UNKNOWN")
    for blob in image.blobs:  # they went to the trash with it
        assert (await registry.below("GET", f"blobs/{digest_of(blob)}")).status == 404
    assert code(await registry.below("GET", "tags/list")) == "NAME_UNKNOWN"


async def test_deletion_can_be_switched_off(make_registry: Any) -> None:
    registry = await make_registry(policy={"allow_delete": False})
    image = make_image()
    await registry.push(image, "v1")
    for path in ("manifests/v1", f"manifests/{image.digest}", f"blobs/{digest_of(image.blobs[0])}"):
        refused = await registry.below("DELETE", path)
        assert (refused.status, code(refused)) == (405, "UNSUPPORTED")


async def test_a_manifest_keeps_the_type_under_which_it_came_first(registry: Registry) -> None:
    image = make_image()
    untyped = Image(image.manifest.replace(b'"mediaType": "%s", ' % OCI_IMAGE.encode(), b"", 1), image.blobs)
    assert untyped.digest != image.digest
    await registry.push(untyped, "v1")
    again = await registry.put(Image(untyped.manifest, untyped.blobs, DOCKER_IMAGE), "v1")
    assert again.status == 201
    for reference in ("v1", untyped.digest):
        assert (await registry.below("GET", f"manifests/{reference}")).headers["content-type"] == OCI_IMAGE


async def test_what_is_no_image_is_told_apart(registry: Registry) -> None:
    for path, status, error in (
        ("/main/images/Upper/tags/list", 400, "NAME_INVALID"),
        ("/main/images/tags/list", 404, "NAME_UNKNOWN"),
        ("/nowhere/none/app/tags/list", 404, "NAME_UNKNOWN"),
        ("/main/images/none/tags/list", 404, "NAME_UNKNOWN"),
        ("/main/images/none/manifests/x", 404, "MANIFEST_UNKNOWN"),
        ("/_oci/ext/discover", 404, "NAME_UNKNOWN"),
    ):
        reply = await registry.call("GET", path)
        assert (reply.status, code(reply)) == (status, error), path
    assert "image is missing" in sentence(await registry.call("GET", "/main/images/tags/list"))
    wrong = await registry.below("POST", "manifests/x")
    assert (wrong.status, code(wrong)) == (405, "UNSUPPORTED")
    assert "PUT" in wrong.headers["allow"]


async def test_an_image_is_served_at_the_address_of_its_repository_too(registry: Registry) -> None:
    image = make_image()
    await registry.push(image, "v1")
    base = "/repositories/main/images/v2"
    reply = await registry.stack.call("GET", f"{base}/app/manifests/v1")
    assert reply.body == image.manifest
    started = await registry.stack.call("POST", f"{base}/app/blobs/uploads/")
    assert started.headers["location"].startswith(f"{base}/app/blobs/uploads/")
    done = await registry.stack.call("PUT", f"{started.headers['location']}?digest={digest_of(b'x')}", raw=b"x")
    assert done.headers["location"] == f"{base}/app/blobs/{digest_of(b'x')}"
    assert (await registry.stack.call("GET", f"{base}/")).json == {}
    assert (await registry.stack.call("GET", "/repositories/main/images/")).status == 404
