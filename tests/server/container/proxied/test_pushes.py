"""Pushes through virtual repositories whose members have a part of the image already."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.configurations import hosted, virtual
from tests.support.container_clients import ok, push_image
from tests.support.container_proxy import ONE, TWO, Make, Scene, code
from tests.support.http_client import Reply
from tests.support.images import Image, digest_of, make_artifact, make_image, make_index

ALL = hosted("docker", "own", "base") + virtual(
    "docker", "all", "main/base", "main/own", "main/images", publish_to="main/own"
)
LAYERS = make_image("three layers")


@pytest.fixture
def scene(make: Make) -> Scene:
    return make(more=ALL)


def upload(scene: Scene, name: str, blob: bytes) -> Reply:
    return scene.wire.post(f"/v2/{name}/blobs/uploads/?digest={digest_of(blob)}", blob)


def put(scene: Scene, name: str, image: Image, reference: str = "") -> Reply:
    path = f"/v2/{name}/manifests/{reference or image.digest}"
    return scene.wire.put(path, image.manifest, Content_Type=image.media_type)


def push_as_clients_do(scene: Scene, name: str, image: Image, reference: str = "") -> list[str]:
    """Upload what the repository does not say that it has, and then the manifest. Returns what was uploaded."""
    uploaded = []
    for blob in image.blobs:
        if scene.wire.head(f"/v2/{name}/blobs/{digest_of(blob)}").status == 404:
            assert upload(scene, name, bytes(blob)).status == 201
            uploaded.append(digest_of(blob))
    reply = put(scene, name, image, reference)
    assert reply.status == 201, reply.text
    return uploaded


def check_pull(scene: Scene, name: str, image: Image, reference: str) -> None:
    assert scene.wire.get(f"/v2/{name}/manifests/{reference}").body == image.manifest
    for blob in image.blobs:
        assert scene.wire.get(f"/v2/{name}/blobs/{digest_of(blob)}").body == bytes(blob)


def test_a_push_uses_the_layers_of_another_hosted_member(scene: Scene) -> None:
    push_image(scene.wire, "main/base/app", ONE, "1")
    assert push_as_clients_do(scene, "main/all/app", ONE, "2") == []
    check_pull(scene, "main/own/app", ONE, "2")
    check_pull(scene, "main/all/app", ONE, "2")


@pytest.mark.parametrize("kept", [True, False])
def test_a_push_uses_the_layers_of_an_upstream(scene: Scene, kept: bool) -> None:
    scene.upstream.push("app", ONE, "1")
    if kept:
        scene.pull("app", ONE)
        scene.upstream.stop()
    assert push_as_clients_do(scene, "main/all/app", ONE, "2") == []
    check_pull(scene, "main/own/app", ONE, "2")


def test_the_platforms_of_an_index_are_pushed_one_after_the_other(scene: Scene) -> None:
    shared = ONE.blobs[1]
    images = [make_image("one", architecture=each) for each in ("amd64", "arm64")]
    assert {each.blobs[1] for each in images} == {shared}
    scene.upstream.push("app", images[0], "base")
    scene.upstream.push("app", images[1], "base-arm64")
    heads = [scene.wire.head(f"/v2/main/all/app/blobs/{digest_of(each)}").status for each in images[1].blobs]
    assert heads == [200, 200]
    assert put(scene, "main/all/app", images[0]).status == 201
    assert put(scene, "main/all/app", images[1]).status == 201, "which was promised before the name had an owner"
    assert put(scene, "main/all/app", make_index(images), "1").status == 201
    check_pull(scene, "main/own/app", images[1], images[1].digest)


def test_an_index_uses_the_manifests_of_members(scene: Scene) -> None:
    push_image(scene.wire, "main/base/app", ONE)
    scene.upstream.push("other", TWO, "1")
    assert scene.wire.head(f"/v2/main/all/app/manifests/{ONE.digest}").status == 200
    assert put(scene, "main/all/app", make_index([ONE]), "all").status == 201
    assert put(scene, "main/all/other", make_index([make_index([TWO]), TWO]), "all").status == 400, "no such index"
    assert put(scene, "main/all/other", make_index([TWO]), "all").status == 201
    check_pull(scene, "main/own/app", ONE, ONE.digest)
    check_pull(scene, "main/own/other", TWO, TWO.digest)


def test_what_no_member_has_is_still_missing(scene: Scene) -> None:
    scene.upstream.push("app", ONE, "1")
    reply = put(scene, "main/all/app", TWO, "2")
    assert code(reply) == (400, "MANIFEST_BLOB_UNKNOWN")
    scene.pull("app", ONE)
    assert scene.wire.get("/v2/main/all/app/manifests/1").body == ONE.manifest


def test_upstreams_are_not_asked_for_what_a_private_image_lacks(scene: Scene) -> None:
    push_image(scene.wire, "main/all/secret", ONE, "1")
    scene.upstream.forget()
    assert put(scene, "main/all/secret", TWO, "2").status == 400
    assert scene.upstream.count() == 0


@pytest.mark.parametrize("through", ["main/own", "main/all"])
def test_an_uploaded_blob_claims_no_name(scene: Scene, through: str) -> None:
    scene.upstream.push("app", ONE, "1")
    assert upload(scene, f"{through}/app", b"a blob").status == 201
    assert scene.wire.get(f"/v2/main/all/app/blobs/{digest_of(b'a blob')}").body == b"a blob"
    assert put(scene, f"{through}/app", TWO, "2").status == 400
    check_pull(scene, "main/all/app", ONE, "1")
    assert scene.wire.ask("DELETE", f"/v2/main/own/app/blobs/{digest_of(b'a blob')}").status == 202
    check_pull(scene, "main/all/app", ONE, "1")


def test_a_removed_image_keeps_its_name_when_a_blob_is_uploaded(scene: Scene) -> None:
    push_image(scene.wire, "main/own/app", ONE, "1")
    assert scene.wire.ask("DELETE", f"/v2/main/own/app/manifests/{ONE.digest}").status == 202
    for blob in ONE.blobs:
        assert scene.wire.ask("DELETE", f"/v2/main/own/app/blobs/{digest_of(blob)}").status == 202
    scene.upstream.push("app", TWO, "1")
    assert upload(scene, "main/all/app", b"a blob").status == 201
    assert scene.wire.head(f"/v2/main/all/app/blobs/{digest_of(b'a blob')}").status == 200
    assert scene.wire.get("/v2/main/all/app/manifests/1").status == 404
    assert scene.upstream.count() == 0
    assert push_as_clients_do(scene, "main/all/app", TWO, "2") == [digest_of(each) for each in TWO.blobs]
    check_pull(scene, "main/all/app", TWO, "2")


def test_blobs_are_mounted_out_of_a_virtual_repository(scene: Scene) -> None:
    push_image(scene.wire, "main/base/app", ONE, "1")
    scene.upstream.push("theirs", TWO, "1")
    scene.pull("theirs", TWO)
    for name, image in (("app", ONE), ("theirs", TWO)):
        digest = digest_of(image.blobs[1])
        for into in ("main/all/copy", "main/own/other"):
            reply = scene.wire.post(f"/v2/{into}/blobs/uploads/?mount={digest}&from=main/all/{name}", b"")
            assert reply.status == 201, (into, name)
            assert scene.wire.get(f"/v2/{into}/blobs/{digest}").body == image.blobs[1]


def test_layers_of_a_member_in_another_storage_are_copied(make: Make, tmp_path: Path) -> None:
    scene = make(more=hosted("docker", "own"))
    ok(scene.wire.post_json("/api/storage", {"name": "other", "type": "Local", "path": str(tmp_path / "other")}))
    far = {"name": "far", "storage": "other", "format": "docker", "config": {"type": "Hosted"}}
    ok(scene.wire.post_json("/api/repository", far))
    members = {"type": "Virtual", "members": ["main/own", "other/far"], "publish_to": "main/own"}
    ok(
        scene.wire.post_json(
            "/api/repository", {"name": "all", "storage": "main", "format": "docker", "config": members}
        )
    )
    big = make_image("big", architecture="x" * 3_000_000)
    push_image(scene.wire, "other/far/app", big, "1")
    assert push_as_clients_do(scene, "main/all/app", big, "2") == []
    check_pull(scene, "main/own/app", big, "2")


def test_a_signature_of_another_members_image_is_pushed(scene: Scene) -> None:
    push_image(scene.wire, "main/base/app", ONE, "1")
    signature = make_artifact(ONE, "application/x.signature")
    push_as_clients_do(scene, "main/all/app", signature)
    listed = scene.wire.get(f"/v2/main/own/app/referrers/{ONE.digest}").json["manifests"]
    assert [each["digest"] for each in listed] == [signature.digest]
