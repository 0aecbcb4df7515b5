"""Whose the prefix of a bucket is, and uploads that are resumed from their parts, with a bucket that the test plays."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet import reactor

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import BlobMissing, Conflict
from pkgrepo.s3.documents import Part
from pkgrepo.s3.places import AccessKey, BucketPlace
from pkgrepo.storage.blobs.paths import new_upload_id
from pkgrepo.storage.blobs.s3 import store as module
from pkgrepo.storage.blobs.s3.spool import Spool
from pkgrepo.storage.blobs.s3.store import BucketBlobStore
from pkgrepo.storage.blobs.s3.upload import SuspendedUpload

PART = 1000  # bytes
SUM = hashlib.sha256().hexdigest()


class FakeBucket:
    """
    The objects and parts that the test put there.

    ``before_put`` is stored by another process before the first put, and ``before_list`` before the first list.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.parts: list[Part] = []
        self.before_put: dict[str, bytes] = {}
        self.before_list: dict[str, bytes] = {}

    async def put(self, key: str, body: Any, *, same: bool = True) -> None:
        self.objects.update(self.before_put)
        self.objects.setdefault(key, body.data)

    async def read(self, key: str) -> AsyncIterator[bytes]:
        if key not in self.objects:
            raise BlobMissing(key)
        yield self.objects[key]

    async def list_page(self, prefix: str, after: str = "", limit: int = 1000) -> Sequence[str]:
        self.objects.update(self.before_list)
        return [key for key in sorted(self.objects) if key.startswith(prefix) and key > after][:limit]

    async def abort_parts(self, _key: str, parts_id: str) -> None:
        assert parts_id == "id"

    async def iterate(self, prefix: str) -> AsyncIterator[str]:
        for key in await self.list_page(prefix):
            yield key

    async def list_parts(self, _key: str, parts_id: str) -> Sequence[Part]:
        assert parts_id == "id"
        return self.parts


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> FakeBucket:
    made = FakeBucket()
    monkeypatch.setattr(module, "Bucket", lambda *_args, **_fields: made)
    return made


@pytest_twisted.async_yield_fixture
async def make_store(tmp_path: Path, bucket: FakeBucket) -> Any:
    pools = Pools(reactor)  # type: ignore[arg-type]
    pools.start()
    place = BucketPlace("http://127.0.0.1:1", "b", "us-east-1", prefix="mine", key=AccessKey("id", "secret"))

    def make(uid: str | None = None) -> BucketBlobStore:
        return BucketBlobStore(place, name="main", pools=pools, spool=Spool(tmp_path, low=0), part_size=PART, uid=uid)

    yield make
    await pools.stop()


async def test_an_empty_prefix_is_taken_and_found_again(make_store: Any, bucket: FakeBucket) -> None:
    first = make_store()
    await first.start()
    assert list(bucket.objects) == [module.FORMAT]
    again = make_store(first.uid)
    await again.start(create=False)
    assert again.uid == first.uid


@pytest.mark.parametrize("key", ["blobs/x", "something-else", "zzz"])
async def test_a_prefix_that_is_not_empty_is_not_taken(make_store: Any, bucket: FakeBucket, key: str) -> None:
    bucket.objects[key] = b"of others"
    with pytest.raises(Conflict, match="holds other things already"):
        await make_store().start()
    assert bucket.objects == {key: b"of others"}


async def test_nothing_is_made_where_a_storage_should_be(make_store: Any, bucket: FakeBucket) -> None:
    with pytest.raises(Conflict, match="nothing is made there"):
        await make_store("uid").start(create=False)
    assert bucket.objects == {}


async def test_a_prefix_of_another_storage_is_refused(make_store: Any, bucket: FakeBucket) -> None:
    await make_store().start()
    with pytest.raises(Conflict, match="belongs to storage"):
        await make_store("another").start()


async def test_of_two_that_start_at_once_the_first_one_has_the_prefix(make_store: Any, bucket: FakeBucket) -> None:
    other = make_store()
    await other.start()
    bucket.before_put, bucket.objects = bucket.objects, {}
    late = make_store()
    await late.start()
    assert late.uid == other.uid


@pytest.mark.parametrize("also", [{}, {"blobs/x": b"of the other one"}])
async def test_the_prefix_that_another_one_takes_meanwhile_is_not_of_others(
    make_store: Any, bucket: FakeBucket, also: dict[str, bytes]
) -> None:
    other = make_store()
    await other.start()
    bucket.before_list, bucket.objects = {**bucket.objects, **also}, {}
    late = make_store(other.uid)
    await late.start()
    assert late.uid == other.uid


def suspended(**fields: Any) -> bytes:
    return SuspendedUpload(limit=None, digests={"sha256": SUM}, parts_id="id", **fields).encode()


async def test_an_upload_is_resumed_after_its_parts(make_store: Any, bucket: FakeBucket) -> None:
    store = make_store()
    await store.start()
    # The third one was sent after the state was saved.
    bucket.parts = [Part(number, "etag", PART) for number in (3, 2, 1)]
    upload = await store.resume(new_upload_id(), suspended(offset=2 * PART, parts=2, in_parts=2 * PART))
    assert upload.offset == 2 * PART
    await upload.abort()


@pytest.mark.parametrize(
    ("sizes", "in_parts"),
    [([PART], 2 * PART), ([PART, PART - 1], 2 * PART), ([PART, PART + 1], 2 * PART), ([], 2 * PART)],
)
async def test_parts_that_are_missing_or_of_another_size_end_an_upload(
    make_store: Any, bucket: FakeBucket, sizes: list[int], in_parts: int
) -> None:
    store = make_store()
    await store.start()
    bucket.parts = [Part(number, "etag", size) for number, size in enumerate(sizes, 1)]
    upload_id = new_upload_id()
    with pytest.raises(BlobMissing):
        await store.resume(upload_id, suspended(offset=in_parts, parts=2, in_parts=in_parts))
    assert store._active == set()
