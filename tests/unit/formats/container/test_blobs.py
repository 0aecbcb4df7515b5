"""Stored blobs over HTTP: read, in part and whole, and deleted."""

from __future__ import annotations

import json

import pytest

from tests.support.images import Registry, code, digest_of, make_image, sentence

DATA = bytes(range(256)) * 8
OTHER = "main/images/other"


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
@pytest.mark.parametrize("data", [DATA, b""])
async def test_a_blob_is_read_by_the_digest_it_was_pushed_with(registry: Registry, algorithm: str, data: bytes) -> None:
    digest = digest_of(data, algorithm)
    whole = await registry.start(f"?digest={digest}", raw=data)
    assert whole.status == 201
    assert whole.headers["docker-content-digest"] == digest
    for hint in ("", f"?digest-algorithm={algorithm}"):
        started = await registry.start(hint, name=OTHER + hint.replace("?digest-algorithm=", "-"))
        done = await registry.continue_upload(started, "PUT", data, f"?digest={digest}")
        assert done.status == 201
        assert done.headers["docker-content-digest"] == digest
    assert (await registry.below("GET", f"blobs/{digest}")).body == data
    assert (await registry.below("GET", f"blobs/{digest}", name=OTHER)).body == data


@pytest.mark.parametrize(
    ("wanted", "status", "body"),
    [
        ("bytes=500-1499", 206, DATA[500:1500]),
        ("bytes=500-", 206, DATA[500:]),
        ("bytes=-500", 206, DATA[-500:]),
        ("bytes=2000-5000", 206, DATA[2000:]),
        ("bytes=500-0", 416, b""),
        ("bytes=5000-10000", 416, b""),
    ],
)
async def test_part_of_a_blob_is_read(registry: Registry, wanted: str, status: int, body: bytes) -> None:
    digest = await registry.push_blob(DATA)
    for _ in range(2):  # the second is answered from memory
        reply = await registry.below("GET", f"blobs/{digest}", Range=wanted)
        assert (reply.status, reply.body) == (status, body)
        assert reply.headers["docker-distribution-api-version"] == "registry/2.0"
        if status == 416:
            assert reply.headers["content-range"] == f"bytes */{len(DATA)}"


async def test_a_current_copy_is_not_sent_again(registry: Registry) -> None:
    digest = await registry.push_blob(DATA)
    for _ in range(2):  # the second is answered from memory
        reply = await registry.below("GET", f"blobs/{digest}", If_None_Match=f'"{digest}"')
        assert reply.status == 304
        assert reply.headers["docker-distribution-api-version"] == "registry/2.0"


@pytest.mark.parametrize("called", ["sha256", "sha512"])
async def test_a_deleted_blob_is_gone_under_all_its_digests(registry: Registry, called: str) -> None:
    names = {algorithm: digest_of(DATA, algorithm) for algorithm in ("sha256", "sha512")}
    for digest in names.values():
        started = await registry.start()
        assert (await registry.continue_upload(started, "PUT", DATA, f"?digest={digest}")).status == 201
    for digest in names.values():
        assert (await registry.below("GET", f"blobs/{digest}")).body == DATA
    assert (await registry.below("DELETE", f"blobs/{names[called]}")).status == 202
    for digest in names.values():
        assert (await registry.below("GET", f"blobs/{digest}")).status == 404


async def test_a_digest_gives_no_access_to_a_blob_of_another_image(registry: Registry) -> None:
    digest = await registry.push_blob(DATA)
    await registry.push_blob(b"something", name=OTHER)
    for method in ("GET", "HEAD", "DELETE"):
        assert (await registry.below(method, f"blobs/{digest}", name=OTHER)).status == 404


async def test_a_deleted_blob_is_gone_at_once_from_its_image_alone(registry: Registry) -> None:
    digest = await registry.push_blob(DATA)
    await registry.push_blob(DATA, name=OTHER)
    assert (await registry.below("GET", f"blobs/{digest}")).status == 200
    assert (await registry.below("DELETE", f"blobs/{digest}")).status == 202
    for method in ("GET", "HEAD", "DELETE"):
        assert (await registry.below(method, f"blobs/{digest}")).status == 404
    assert (await registry.below("GET", f"blobs/{digest}", name=OTHER)).status == 200


async def test_a_blob_of_a_manifest_cannot_be_deleted(registry: Registry) -> None:
    image = make_image()
    await registry.push(image, "v1")
    layer = digest_of(image.blobs[1])
    refused = await registry.below("DELETE", f"blobs/{layer}")
    assert (refused.status, code(refused)) == (405, "UNSUPPORTED")
    await registry.below("DELETE", f"manifests/{image.digest}")  # its blobs go to the trash with it
    assert (await registry.below("DELETE", f"blobs/{layer}")).status == 404


@pytest.mark.parametrize("digest", ["sha256:abc123", "nonsense", "md5:0cc175b9c0f1b6a831c399e269772661"])
async def test_a_malformed_digest_is_an_unknown_blob(registry: Registry, digest: str) -> None:
    reply = await registry.below("GET", f"blobs/{digest}")
    assert (reply.status, code(reply)) == (404, "BLOB_UNKNOWN")


async def test_a_large_blob_is_pushed_and_read(registry: Registry) -> None:
    data = DATA * 1000  # two megabytes: beyond what is kept in memory
    digest = await registry.push_blob(data)
    assert (await registry.below("GET", f"blobs/{digest}")).body == data


async def test_errors_have_the_shape_that_clients_read(registry: Registry) -> None:
    reply = await registry.below("GET", f"blobs/{digest_of(DATA)}")
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["docker-distribution-api-version"] == "registry/2.0"
    assert json.loads(reply.body)["errors"][0]["detail"] == {"digest": digest_of(DATA)}
    assert "unknown" in sentence(reply)
