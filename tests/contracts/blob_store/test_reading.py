"""Blob stores: reading, listing and deleting blobs, and reading uploads that are received."""

import hashlib
import os
from datetime import UTC, datetime, timedelta

import pytest
from twisted.internet.defer import Deferred, ensureDeferred
from twisted.internet.interfaces import IConsumer
from zope.interface import implementer

from pkgrepo.errors import BlobMissing
from tests.support.blob_store_cases import KIB, SIZES, body_of, content, nothing_is_left, put, read_through


@implementer(IConsumer)
class Collector:
    """A consumer that collects the delivered bytes; with ``gentle`` it pauses the producer after every write."""

    def __init__(self, gentle: bool = False) -> None:
        self.body = b""
        self.producer = None
        self.gentle = gentle
        self.paused = False
        self.written = Deferred()

    def registerProducer(self, producer, streaming) -> None:
        assert streaming
        self.producer = producer

    def unregisterProducer(self) -> None:
        self.producer = None

    def write(self, data) -> None:
        assert not self.paused, "written to while paused"
        self.body += data
        if self.gentle:
            self.paused = True
            self.producer.pauseProducing()
        written, self.written = self.written, Deferred()
        written.callback(None)

    def go_on(self) -> None:
        self.paused = False
        self.producer.resumeProducing()


async def test_a_deleted_copy_is_absent_and_deleting_again_is_fine(store):
    info = await put(store, b"hello")
    await store.delete(info.locator)
    await store.delete(info.locator)
    assert await store.stat(info.locator) is None
    with pytest.raises(BlobMissing):
        await store.open(info.locator).read(0, 1)
    with pytest.raises(BlobMissing):
        await store.open(info.locator).deliver(Collector(), 0, 1)
    with pytest.raises(BlobMissing):
        await store.open(info.locator).as_file()
    assert list(await store.scan()) == []


async def test_the_storage_is_there_also_for_a_copy_that_is_not(store):
    info = await put(store, b"hello")
    await store.check(info.locator)
    await store.delete(info.locator)
    await store.check(info.locator)
    await store.check("no locator")


async def test_an_open_reader_finishes_after_the_copy_was_deleted(store):
    body = body_of(1024 * KIB)
    info = await put(store, body)
    blob = store.open(info.locator)
    collector = Collector(gentle=True)
    delivery = ensureDeferred(blob.deliver(collector, 0, len(body)))
    while len(collector.body) < KIB:
        await collector.written
    await store.delete(info.locator)
    while len(collector.body) < len(body):
        written = collector.written
        collector.go_on()
        await written
    await delivery
    assert collector.body == body


async def test_stat_returns_size_and_time_of_commit(store):
    before = datetime.now(UTC) - timedelta(seconds=2)
    info = await put(store, b"hello")
    size, at = await store.stat(info.locator)
    assert size == 5
    assert before <= at <= datetime.now(UTC) + timedelta(seconds=2)


HOSTILE = [
    "",
    "/etc/passwd",
    "../format",
    "ab/../../format",
    "ab/" + "cd" * 32 + "." + "0" * 16,
    "cd/" + "CD" * 32 + "." + "0" * 16,
    "cd/" + "cd" * 32 + "." + "0" * 16 + "\n",
    "cd/" + "cd" * 32,
    "cd/" + "cd" * 32 + ".\x00",
]


@pytest.mark.parametrize("locator", HOSTILE)
async def test_an_invalid_locator_is_missing(store, locator):
    with pytest.raises(BlobMissing):
        store.open(locator)
    assert await store.stat(locator) is None
    await store.delete(locator)


async def test_scan_pages_in_order_and_bounded(store):
    locators = sorted([(await put(store, b"%d" % (n % 3))).locator for n in range(40)])
    seen, after = [], ""
    while page := await store.scan(after, 7):
        assert len(page) <= 7
        seen += [locator for locator, _, _ in page]
        after = page[-1][0]
    assert seen == locators
    assert len({locator[:2] for locator in locators}) < len(locators) / 2, "no folder had a page's border inside"
    assert list(await store.scan(locators[-1])) == []
    assert list(await store.scan(limit=0)) == []


async def test_capacity_is_free_and_total_bytes(store):
    capacity = store.capacity()
    assert (capacity is not None) == store.has_files
    if capacity is not None:
        free, total = capacity
        assert 0 < free <= total


@pytest.mark.parametrize("gentle", [False, True])
@pytest.mark.parametrize(("start", "end"), [(0, 0), (0, 1), (5, 300_000), (0, 2_000_000), (1_999_999, 2_000_000)])
async def test_deliver_gives_exactly_the_range(store, start, end, gentle):
    body = body_of(2_000_000)
    blob = store.open((await put(store, body)).locator)
    collector = Collector(gentle)
    delivery = ensureDeferred(blob.deliver(collector, start, end))
    while len(collector.body) < end - start:
        written = collector.written
        if collector.paused:
            collector.go_on()
        if len(collector.body) < end - start:
            await written
    await delivery
    assert collector.body == body[start:end]
    assert collector.producer is None


async def test_a_range_outside_the_blob_is_refused(store):
    blob = store.open((await put(store, b"hello")).locator)
    for start, end in ((-1, 2), (3, 2), (0, 6)):
        with pytest.raises(ValueError, match="bytes"):
            await blob.deliver(Collector(), start, end)


async def test_a_consumer_that_stops_ends_the_delivery(store):
    body = body_of(2_000_000)
    blob = store.open((await put(store, body)).locator)
    collector = Collector(gentle=True)
    delivery = ensureDeferred(blob.deliver(collector, 0, len(body)))
    delivery.addErrback(lambda failure: failure.type.__name__)
    if not collector.body:
        await collector.written
    collector.producer.stopProducing()
    assert await delivery == "CancelledError"
    assert len(collector.body) < len(body)


@pytest.mark.parametrize("size", SIZES)
async def test_a_copy_can_be_had_as_a_file(store, size):
    info = await put(store, body_of(size))
    blob = store.open(info.locator)
    assert read_through(await blob.as_file()) == body_of(size)
    found = blob.descriptor()
    assert (found is not None) == store.has_files
    if found is not None:
        assert read_through(found) == body_of(size)


async def test_read_is_short_only_at_the_end(store):
    body = body_of(600 * KIB)
    blob = store.open((await put(store, body)).locator)
    assert await blob.read(0, 5) == body[:5]
    assert await blob.read(1, 10 * len(body)) == body[1:]
    assert await blob.read(len(body), 5) == b""
    assert await blob.read(len(body) + 9, 5) == b""


class Progress:
    """What a reader of a shared upload sees each time that there is more."""

    def __init__(self, upload) -> None:
        self.upload = upload
        self.descriptor = -1
        self.seen = [b""]
        self.grown = Deferred()
        upload.share(self.more)

    def more(self) -> None:
        if self.descriptor < 0:
            self.descriptor = self.upload.descriptor()
        assert len(self.seen[-1]) < self.upload.readable
        self.seen.append(os.pread(self.descriptor, 2 * self.upload.readable, 0)[: self.upload.readable])
        grown, self.grown = self.grown, Deferred()
        grown.callback(None)

    async def reach(self, size: int) -> None:
        while len(self.seen[-1]) < size:
            await self.grown


@pytest.mark.parametrize("early", [0, 10, 40 * KIB])
async def test_a_shared_upload_is_read_while_it_is_received(store, early):
    body = body_of(700 * KIB)
    async with store.begin(expect_size=len(body)) as upload:
        assert upload.readable == 0
        upload.write(body[:early])
        progress = Progress(upload)
        await progress.reach(early)
        for end in (50 * KIB, 50 * KIB + 1, 600 * KIB):
            upload.write(body[upload.offset : end])
            await progress.reach(end)
        upload.write(body[600 * KIB :])
        await upload.seal({"sha256": hashlib.sha256(body).hexdigest()})
        assert upload.readable == len(body)
        info = await upload.commit()
    assert all(body.startswith(seen) for seen in progress.seen)
    assert await content(store, info.locator) == body
    assert os.pread(progress.descriptor, len(body), 0) == body
    os.close(progress.descriptor)


async def test_a_reader_keeps_its_bytes_when_the_upload_is_aborted(store):
    upload = store.begin()
    progress = Progress(upload)
    upload.write(b"first")
    await progress.reach(5)
    upload.write(b"second" * 100 * KIB)
    await upload.abort()
    assert progress.seen[-1] == b"first"
    with pytest.raises(RuntimeError):
        upload.descriptor()
    assert os.pread(progress.descriptor, 5, 0) == b"first"
    os.close(progress.descriptor)
    assert await nothing_is_left(store)


async def test_there_is_no_descriptor_before_the_first_readable_byte(store):
    async with store.begin() as upload:
        with pytest.raises(RuntimeError):
            upload.descriptor()
    assert await nothing_is_left(store)
