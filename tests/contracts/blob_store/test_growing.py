"""Blob stores: uploads that other processes read while they grow, and take over."""

import hashlib
import os

import pytest
from twisted.internet import reactor
from twisted.internet.task import deferLater

from pkgrepo.errors import BlobMissing
from tests.support.blob_store_cases import FUTURE, KIB, body_of, content, nothing_is_left

pytestmark = pytest.mark.filterwarnings("error")
MIB = 1024 * KIB


@pytest.fixture
def growing(store):
    if store.growing is None:
        pytest.skip("this store has no files that other processes could read")
    return store


async def begin(store, body, **how):
    """An upload with these bytes, which are written and exposed."""
    upload = store.begin(**how)
    upload.share(lambda: None)
    upload.write(body)
    while upload.readable < len(body):
        await deferLater(reactor, 0.001)
    await store.growing.expose(upload)
    return upload


async def test_another_process_reads_an_exposed_upload_while_it_grows(case, growing):
    first, second = body_of(300 * KIB), body_of(MIB)
    upload = await begin(growing, first)
    descriptor = (await case.another()).growing.open_growing(upload.id)
    try:
        assert os.pread(descriptor, MIB, 0) == first
        upload.write(second)
        info = await upload.commit({"sha256": hashlib.sha256(first + second).hexdigest()})
        assert os.pread(descriptor, 2 * MIB, 0) == first + second
    finally:
        os.close(descriptor)
    assert await content(growing, info.locator) == first + second
    assert await growing.sweep_uploads(FUTURE, ()) == 0


@pytest.mark.parametrize("kept", [1, 100 * KIB, 300 * KIB])
async def test_another_process_goes_on_with_an_upload(case, growing, kept):
    body = body_of(MIB)
    upload = await begin(growing, body[: 300 * KIB], expect_size=len(body))
    other = await case.another()
    descriptor = other.growing.open_growing(upload.id)
    taken = await other.growing.take_over(upload.id, kept, ("sha1",))
    assert (taken.offset, taken.readable) == (kept, kept)
    taken.write(body[kept:])
    info = await taken.commit({"sha1": hashlib.sha1(body, usedforsecurity=False).hexdigest()}, size=len(body))
    assert os.pread(descriptor, 2 * MIB, 0) == body
    os.close(descriptor)
    assert info.sha256 == hashlib.sha256(body).hexdigest()
    assert await content(other, info.locator) == body
    await upload.abort()  # it was that of a process that had ended


async def test_an_exposed_upload_that_is_aborted_leaves_nothing(growing):
    upload = await begin(growing, body_of(MIB))
    await upload.abort()
    with pytest.raises(BlobMissing):
        growing.growing.open_growing(upload.id)
    with pytest.raises(BlobMissing):
        await growing.growing.take_over(upload.id, 1)
    assert await nothing_is_left(growing)


@pytest.mark.parametrize("upload_id", ["", "../../etc", "0" * 31, "g" * 32, "0" * 32])
async def test_ids_of_no_upload_open_nothing(growing, upload_id):
    with pytest.raises(BlobMissing):
        growing.growing.open_growing(upload_id)
    with pytest.raises(BlobMissing):
        await growing.growing.take_over(upload_id, 1)


async def test_what_a_killed_process_has_exposed_is_swept(case, growing):
    upload = await begin(growing, body_of(MIB))
    assert await (await case.another()).sweep_uploads(FUTURE, ()) == 1
    await upload.abort()
    assert await nothing_is_left(growing)
