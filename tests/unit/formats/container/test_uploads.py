"""Uploads of blobs: in one request or several, and mounted from other images."""

from __future__ import annotations

import pytest

from pkgrepo.storage.catalog.blobs import uploads
from tests.support.images import EMPTY, Registry, code, digest_of

DATA = bytes(range(256)) * 8
OTHER = "main/images/other"


async def test_a_blob_pushed_in_pieces_is_read_back(registry: Registry) -> None:
    started = await registry.start()
    assert started.status == 202
    assert started.headers["range"] == "0-0"
    assert started.headers["docker-upload-uuid"]
    assert started.headers["location"].startswith("/v2/main/images/app/blobs/uploads/")
    first = await registry.continue_upload(started, "PATCH", DATA[:1000], Content_Range="0-999")
    assert (first.status, first.headers["range"]) == (202, "0-999")
    status = await registry.continue_upload(first, "GET")
    assert (status.status, status.headers["range"]) == (204, "0-999")
    second = await registry.continue_upload(first, "PATCH", DATA[1000:2000])
    assert second.headers["range"] == "0-1999"
    digest = digest_of(DATA)
    done = await registry.continue_upload(second, "PUT", DATA[2000:], f"?digest={digest}", Content_Range="2000-2047")
    assert done.status == 201
    assert done.headers["docker-content-digest"] == digest
    assert done.headers["location"] == f"/v2/main/images/app/blobs/{digest}"
    for method in ("GET", "HEAD"):
        reply = await registry.below(method, f"blobs/{digest}")
        assert reply.status == 200
        assert reply.headers["content-length"] == str(len(DATA))
        assert reply.headers["docker-content-digest"] == digest
        assert reply.headers["docker-distribution-api-version"] == "registry/2.0"
        assert reply.headers["etag"] == f'"{digest}"'
        assert reply.body == (DATA if method == "GET" else b"")
    assert (await registry.continue_upload(second, "GET")).status == 404


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
async def test_a_body_of_another_digest_stores_nothing(registry: Registry, algorithm: str) -> None:
    digest = digest_of(b"other", algorithm)
    whole = await registry.start(f"?digest={digest}", raw=DATA)
    assert (whole.status, code(whole)) == (400, "DIGEST_INVALID")
    started = await registry.start()
    done = await registry.continue_upload(started, "PUT", DATA, f"?digest={digest}")
    assert (done.status, code(done)) == (400, "DIGEST_INVALID")
    assert (await registry.continue_upload(started, "GET")).status == 404
    assert (await registry.below("HEAD", f"blobs/{digest}")).status == 404
    assert (await registry.below("HEAD", f"blobs/{digest_of(DATA)}")).status == 404


@pytest.mark.parametrize(
    "query", ["", "?digest=", "?digest=sha256:abc", "?digest=md5:0cc175b9c0f1b6a831c399e269772661"]
)
async def test_an_upload_survives_a_finish_without_digest(registry: Registry, query: str) -> None:
    started = await registry.start()
    patched = await registry.continue_upload(started, "PATCH", DATA)
    done = await registry.continue_upload(patched, "PUT", query=query)
    assert (done.status, code(done)) == (400, "DIGEST_INVALID")
    assert (await registry.continue_upload(patched, "PUT", query=f"?digest={digest_of(DATA)}")).status == 201


async def test_a_chunk_out_of_order_is_refused_and_the_upload_goes_on(registry: Registry) -> None:
    started = await registry.start()
    await registry.continue_upload(started, "PATCH", DATA[:10], Content_Range="0-9")
    for method, query in (("PATCH", ""), ("PUT", f"?digest={digest_of(DATA)}")):
        late = await registry.continue_upload(started, method, DATA[20:30], query, Content_Range="20-29")
        assert (late.status, code(late)) == (416, "RANGE_INVALID")
        assert late.headers["range"] == "0-9"
        assert late.headers["location"] == started.headers["location"]
    done = await registry.continue_upload(started, "PUT", DATA[10:], f"?digest={digest_of(DATA)}")
    assert done.status == 201


async def test_a_range_of_another_length_than_its_chunk_is_refused_and_rolled_back(registry: Registry) -> None:
    started = await registry.start()
    await registry.continue_upload(started, "PATCH", DATA[:10])
    wrong = await registry.continue_upload(started, "PATCH", DATA[10:20], Content_Range="10-14")
    assert (wrong.status, code(wrong)) == (400, "SIZE_INVALID")
    malformed = await registry.continue_upload(started, "PATCH", DATA[10:20], Content_Range="ten")
    assert malformed.status == 400
    assert (await registry.continue_upload(started, "GET")).headers["range"] == "0-9"
    done = await registry.continue_upload(started, "PUT", DATA[10:], f"?digest={digest_of(DATA)}")
    assert done.status == 201


async def test_a_cancelled_upload_is_gone(registry: Registry) -> None:
    started = await registry.start()
    await registry.continue_upload(started, "PATCH", DATA)
    assert (await registry.continue_upload(started, "DELETE")).status == 204
    for method in ("GET", "PATCH", "DELETE", "PUT"):
        reply = await registry.continue_upload(
            started, method, query=f"?digest={digest_of(DATA)}" if method == "PUT" else ""
        )
        assert (reply.status, code(reply)) == (404, "BLOB_UPLOAD_UNKNOWN")


async def test_an_upload_belongs_to_one_image_and_one_user(registry: Registry) -> None:
    started = await registry.start()
    uid = started.headers["docker-upload-uuid"]
    await registry.stack.add_user("bob")
    await registry.stack.grant("bob", "main/images", "read", "write")
    assert (await registry.below("GET", f"blobs/uploads/{uid}", name=OTHER)).status == 404
    assert (await registry.below("GET", f"blobs/uploads/{uid}", who="bob")).status == 404
    assert (await registry.below("GET", f"blobs/uploads/{uid}")).status == 204
    assert (await registry.below("GET", "blobs/uploads/nonsense")).status == 404


@pytest.mark.parametrize("source", ["&from=main/images/app", "&from=main%2Fimages%2Fapp&origin=x", ""])
async def test_a_blob_is_mounted_from_an_image_that_may_be_read(registry: Registry, source: str) -> None:
    digest = await registry.push_blob(DATA)
    mounted = await registry.start(f"?mount={digest}{source}", name=OTHER)
    assert mounted.status == 201
    assert mounted.headers["docker-content-digest"] == digest
    assert mounted.headers["location"] == f"/v2/{OTHER}/blobs/{digest}"
    assert (await registry.below("GET", f"blobs/{digest}", name=OTHER)).body == DATA


async def test_a_failed_mount_starts_an_upload_and_reveals_nothing(registry: Registry) -> None:
    await registry.stack.add_repository("secret", format="docker", visibility="private")
    await registry.stack.add_user("bob")
    await registry.stack.grant("bob", "main/images", "read", "write")
    digest = await registry.push_blob(DATA, name="main/secret/app")
    for query in (
        f"?mount={digest}&from=main/secret/app",
        f"?mount={digest}",
        f"?mount={digest}&from=main/images/none",
        f"?mount={digest}&from=NO",
        f"?mount={digest_of(b'nobody has this')}&from=main/images/app",
    ):
        reply = await registry.start(query, who="bob")
        assert (reply.status, reply.headers["range"]) == (202, "0-0")
    assert (await registry.start(f"?mount={digest}&from=main/secret/app")).status == 201


async def test_too_many_bytes_are_refused_and_the_upload_is_over(make_registry) -> None:
    registry = await make_registry(server__max_upload=1000)
    whole = await registry.start(f"?digest={digest_of(DATA)}", raw=DATA)
    assert (whole.status, code(whole)) == (413, "SIZE_INVALID")
    started = await registry.start()
    assert (await registry.continue_upload(started, "PATCH", DATA)).status == 413
    assert (await registry.continue_upload(started, "PATCH", DATA[:900])).status == 202
    assert (await registry.continue_upload(started, "PATCH", DATA[:900])).status == 413
    assert (await registry.continue_upload(started, "GET")).status == 404


async def test_uploads_and_blobs_survive_a_restart(make_registry) -> None:
    before = await make_registry()
    started = await before.start()
    await before.continue_upload(started, "PATCH", DATA[:1500])
    empty = await before.push_blob(EMPTY)
    await before.stack.stop()
    after = await make_registry()
    assert (await after.continue_upload(started, "GET")).headers["range"] == "0-1499"
    done = await after.continue_upload(started, "PUT", DATA[1500:], f"?digest={digest_of(DATA)}")
    assert done.status == 201
    assert (await after.below("GET", f"blobs/{digest_of(DATA)}")).body == DATA
    assert (await after.below("GET", f"blobs/{empty}")).body == EMPTY


async def test_the_lease_of_a_killed_process_expires(registry: Registry) -> None:
    started = await registry.start()
    core = registry.stack.assembly.core
    now_ms = core.clock.now_ms()
    uid = started.headers["docker-upload-uuid"]
    assert await core.catalog.write(uploads.lease_upload, uid, "somebody gone", now_ms + 300, now_ms)
    assert (await registry.continue_upload(started, "PUT", DATA, f"?digest={digest_of(DATA)}")).status == 201


async def test_the_unfinished_uploads_of_a_user_are_bounded(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MOST_OPEN", 2)
    started = [await registry.start() for _ in range(2)]
    refused = await registry.start()
    assert (refused.status, code(refused)) == (403, "DENIED")
    assert "2 unfinished uploads" in refused.body.decode()
    assert (await registry.start(f"?digest={digest_of(DATA)}", raw=DATA)).status == 201
    assert (await registry.continue_upload(started[0], "DELETE")).status == 204
    assert (await registry.start()).status == 202
