"""Blob stores: bodies that a bucket takes in several parts."""

import hashlib

import pytest
from twisted.internet.defer import ensureDeferred

from pkgrepo.errors import BlobMissing, DigestMismatch
from tests.support.blob_store_cases import FUTURE, KIB, content, nothing_is_left, put, read_through

MIB = 1024 * KIB
BODY = b"".join(hashlib.sha256(b"%d" % n).digest() * 1024 for n in range(12 * MIB // (32 * KIB))) + b"end"


async def test_large_bodies_are_read_back(store):
    info = await put(store, BODY, algorithms=("sha1",), expect_size=len(BODY))
    assert info.digests["sha1"] == hashlib.sha1(BODY).hexdigest()
    assert (await store.stat(info.locator))[0] == info.size == len(BODY)
    assert await content(store, info.locator) == BODY
    assert await store.open(info.locator).read(5 * MIB - 2, 4) == BODY[5 * MIB - 2 : 5 * MIB + 2]
    assert read_through(await store.open(info.locator).as_file()) == BODY
    assert await store.sweep_uploads(FUTURE, ()) == 0


async def test_a_large_body_written_at_once_is_stored(store):
    async with store.begin() as upload:
        upload.write(BODY)
        info = await upload.commit(size=len(BODY))
    assert await content(store, info.locator) == BODY


@pytest.mark.parametrize("moved", [False, True], ids=["same-worker", "other-worker"])
@pytest.mark.parametrize("cuts", [(12 * MIB + 3,), (6 * MIB,), (5 * MIB, 10 * MIB), (1, 11 * MIB)])
async def test_a_large_upload_resumes_at_its_offset(case, store, cuts, moved):
    upload = store.begin(algorithms=("sha512",))
    start = 0
    for end in (*cuts, len(BODY)):
        for piece in range(start, end, MIB):
            upload.write(BODY[piece : min(piece + MIB, end)])
            await upload.drained()
        start = end
        state = await upload.suspend()
        assert len(state) <= 4096
        assert list(await store.scan()) == []
        upload = await (await case.another() if moved else store).resume(upload.id, state)
        assert upload.offset == end
    info = await upload.commit({"sha512": hashlib.sha512(BODY).hexdigest()}, size=len(BODY))
    assert await content(store, info.locator) == BODY
    assert [row[0] for row in await store.scan()] == [info.locator]
    assert await store.sweep_uploads(FUTURE, ()) == 0


@pytest.mark.parametrize("moved", [False, True], ids=["same-worker", "other-worker"])
async def test_a_wrong_digest_of_a_resumed_large_upload_leaves_nothing(case, store, moved):
    upload = store.begin()
    upload.write(BODY)
    state = await upload.suspend()
    resumed = await (await case.another() if moved else store).resume(upload.id, state)
    resumed.write(b"more")
    with pytest.raises(DigestMismatch):
        await resumed.commit({"sha256": hashlib.sha256(BODY).hexdigest()})
    with pytest.raises(BlobMissing):
        await store.resume(upload.id, state)
    assert await nothing_is_left(store)


@pytest.mark.parametrize("when", ["receiving", "sealed", "committing", "suspended"])
async def test_an_aborted_large_upload_leaves_nothing(store, when):
    upload = store.begin()
    for start in range(0, len(BODY), MIB):
        upload.write(BODY[start : start + MIB])
        await upload.drained()
    if when == "suspended":
        upload = await store.resume(upload.id, await upload.suspend())
    elif when != "receiving":
        await upload.seal()
    if when == "committing":
        commit = ensureDeferred(upload.commit())
        commit.addErrback(lambda failure: failure.type.__name__)
        await upload.abort()
        assert await commit == "CancelledError"
    else:
        await upload.abort()
    assert await nothing_is_left(store)


async def test_a_sweep_removes_a_large_upload_that_nobody_continues(case, store):
    upload = store.begin()
    upload.write(BODY)
    state = await upload.suspend()
    other = await case.another()
    assert await other.sweep_uploads(FUTURE, {upload.id}) == 0
    assert await other.sweep_uploads(FUTURE, ()) == 1
    with pytest.raises(BlobMissing):
        await other.resume(upload.id, state)
    assert await nothing_is_left(other)
