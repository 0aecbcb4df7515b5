"""Uploads into a bucket that takes its parts slowly."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import StorageFailed
from pkgrepo.s3.documents import Part
from pkgrepo.s3.parts import PARALLEL, part_size
from pkgrepo.s3.places import AccessKey, BucketPlace
from pkgrepo.storage.blobs.paths import new_upload_id
from pkgrepo.storage.blobs.s3 import names
from pkgrepo.storage.blobs.s3.spool import Spool
from pkgrepo.storage.blobs.s3.store import BucketBlobStore
from pkgrepo.storage.blobs.s3.upload import SuspendedUpload, decode_state
from tests.support.inprocess_server import until

MIB = 1024 * 1024
PIECES = [bytes([n]) * MIB for n in range(40)]


class SlowBucket:
    """Takes no part before ``open`` was called, or fails."""

    def __init__(self) -> None:
        self.parts: dict[int, bytes] = {}
        self.waiting: list[Deferred[None]] = []
        self.is_open = False
        self.fails = False

    def open(self) -> None:
        self.is_open = True
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each.callback(None)

    async def begin_parts(self, *_args: Any) -> str:
        return "id"

    async def put_part(self, key: str, parts_id: str, number: int, body: Any) -> Part:
        if not self.is_open:
            waiting: Deferred[None] = Deferred()
            self.waiting.append(waiting)
            await waiting
        if self.fails:
            raise StorageFailed("main")
        self.parts[number] = body.data
        return Part(number, "etag", len(body.data))

    async def complete_parts(self, *args: Any) -> None: ...

    async def abort_parts(self, *args: Any) -> None: ...

    async def delete(self, key: str) -> None: ...

    async def iterate(self, prefix: str) -> Any:
        for nothing in ():
            yield nothing


@pytest_twisted.async_yield_fixture
async def store(tmp_path: Path) -> Any:
    pools = Pools(reactor)
    pools.start()
    place = BucketPlace("http://127.0.0.1:1", "b", "us-east-1")
    store = BucketBlobStore(place, name="main", pools=pools, spool=Spool(tmp_path, low=0), part_size=MIB)
    store._bucket = SlowBucket()  # type: ignore[assignment]
    yield store
    await pools.stop()


async def resumed(store: BucketBlobStore) -> Any:
    state = SuspendedUpload(offset=0, limit=None, digests={"sha256": hashlib.sha256().hexdigest()})
    return await store.resume(new_upload_id(), state.encode())


async def write_all(upload: Any) -> None:
    for piece in PIECES:
        upload.write(piece)
        await upload.drained()


def is_stuck(bucket: Any, upload: Any) -> bool:
    return len(bucket.waiting) == PARALLEL and upload._is_held


async def test_a_producer_that_is_faster_than_the_store_waits_and_what_is_sent_is_freed(store: Any) -> None:
    bucket, upload = store._bucket, await resumed(store)
    writing = Deferred.fromCoroutine(write_all(upload))
    await until(lambda: is_stuck(bucket, upload))
    assert upload.offset <= 12 * MIB
    assert not writing.called
    bucket.open()
    await writing
    # The commit sends the last ones.
    await until(lambda: upload._parts.taken >= (len(PIECES) - 2) * MIB and not upload._parts._flying)
    with pytest.raises(StorageFailed):
        upload.descriptor()
    info = await upload.seal()
    assert (info.size, info.sha256) == (len(PIECES) * MIB, hashlib.sha256(b"".join(PIECES)).hexdigest())
    descriptor = upload._file.duplicate()
    try:
        assert os.fstat(descriptor).st_blocks * 512 <= 3 * MIB
    finally:
        os.close(descriptor)
    await upload.commit()
    assert [bucket.parts[number] for number in sorted(bucket.parts)] == PIECES


async def test_the_bytes_of_an_upload_that_was_not_resumed_can_be_read(store: Any) -> None:
    store._bucket.open()
    async with store.begin() as upload:
        await write_all(upload)
        await upload.seal()
        with os.fdopen(upload.descriptor(), "rb") as file:
            assert file.read() == b"".join(PIECES)


async def test_a_producer_does_not_wait_for_a_store_that_has_failed(store: Any) -> None:
    bucket, upload = store._bucket, await resumed(store)
    writing = Deferred.fromCoroutine(write_all(upload))
    await until(lambda: is_stuck(bucket, upload))
    bucket.fails = True
    bucket.open()
    await writing
    with pytest.raises(StorageFailed):
        await upload.commit()


async def test_an_upload_is_aborted_while_its_producer_waits(store: Any) -> None:
    bucket, upload = store._bucket, await resumed(store)
    writing = Deferred.fromCoroutine(write_all(upload))
    writing.addErrback(lambda failure: None)
    await until(lambda: is_stuck(bucket, upload))
    aborting = Deferred.fromCoroutine(upload.abort())
    bucket.open()
    await aborting
    await writing


STATE = SuspendedUpload(
    offset=30, limit=None, digests={"sha256": "ab"}, parts_id="p", parts=2, in_parts=20, rest="r", rest_size=10
)
ID = "0123456789abcdef" * 2


def test_a_state_is_read_back():
    assert decode_state(STATE.encode()) == STATE
    assert STATE.is_known
    assert not SuspendedUpload(offset=0, limit=None, digests={"sha256": ""}).is_known


@pytest.mark.parametrize(
    "change",
    [
        (b'"offset":30', b'"offset":31'),
        (b'"parts":2', b'"parts":0'),
        (b'"rest":"r"', b'"rest":null'),
        (b'"sha256"', b'"sha1"'),
        (b'"version":1', b'"version":2'),
        (b'"store":"s3"', b'"store":"disk"'),
        (b"{", b""),
    ],
)
def test_another_state_is_refused(change):
    data = STATE.encode().replace(*change)
    assert data != STATE.encode()
    with pytest.raises(ValueError, match=r"."):
        decode_state(data)


def test_keys_tell_their_upload():
    assert names.is_locator(names.parts_locator(ID))
    assert names.upload_of_parts(names.BLOBS + names.parts_locator(ID)) == ID
    assert names.upload_of_rest(names.new_rest_key(ID)) == ID
    assert names.new_rest_key(ID) != names.new_rest_key(ID)


@pytest.mark.parametrize("key", ["", "format", "blobs/", f"blobs/ff/{ID}", f"blobs/01/{ID}/x", f"other/01/{ID}"])
def test_other_keys_tell_none(key):
    assert names.upload_of_parts(key) is None
    assert names.upload_of_rest(key) is None


def test_ten_thousand_parts_hold_any_blob():
    assert part_size(1) == part_size(1000) == 8 * 1024**2
    assert part_size(1001) == 16 * 1024**2
    assert sum(part_size(number) for number in range(1, 10_001)) > 5 * 1024**4
    assert part_size(10_000) <= 5 * 1024**3


def test_the_bucket_is_in_the_path_or_in_the_host_name():
    place = BucketPlace(endpoint="https://s3.example.com", bucket="b", region="r")
    assert place.base_url == "https://s3.example.com/b"
    place = BucketPlace(endpoint="https://s3.example.com:9000", bucket="b", region="r", path_style=False)
    assert place.base_url == "https://b.s3.example.com:9000"


def test_a_secret_is_not_shown():
    assert "hidden" not in repr(BucketPlace(endpoint="e", bucket="b", region="r", key=AccessKey("id", "hidden")))
