"""The contract of blob stores. To test another implementation, add its case to ``CASES``."""

import hashlib
import os
from datetime import UTC, datetime, timedelta

import pytest
import pytest_twisted
from attrs import astuple
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred, ensureDeferred
from twisted.internet.interfaces import IConsumer
from zope.interface import implementer
from zope.interface.verify import verifyObject

from pkgrepo.errors import BlobMissing, DigestMismatch, SizeMismatch, TooLarge
from pkgrepo.interfaces import IBlob, IBlobStore, IBlobUpload
from tests.support.blob_stores import FilesystemCase, open_descriptors

CASES = {
    "filesystem": FilesystemCase,
    "filesystem-named": lambda root: FilesystemCase(root, unnamed=False),
}

KIB = 1024
FUTURE = datetime(2200, 1, 1, tzinfo=UTC)
SIZES = [0, 1, 255 * KIB, 256 * KIB, 256 * KIB + 1, 3 * 1024 * KIB + 17]


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    return CASES[request.param](tmp_path / "store")


@pytest_twisted.async_yield_fixture
async def store(case):
    yield await case.start()
    await case.stop()


def body_of(size: int) -> bytes:
    return (hashlib.sha256(b"%d" % size).digest() * (size // 32 + 1))[:size]


async def put(store, body: bytes, chunk: int = 64 * KIB, **how):
    async with store.begin(**how) as upload:
        for start in range(0, len(body), chunk):
            upload.write(body[start : start + chunk])
            await upload.drained()
        return await upload.commit()


async def content(store, locator: str) -> bytes:
    blob = store.open(locator)
    return await blob.read(0, blob.size)


async def nothing_is_left(store) -> bool:
    """Check that the store has no copy and no unfinished upload, on disk either."""
    return list(await store.scan()) == [] and await store.sweep_uploads(FUTURE, ()) == 0 and not open_descriptors()


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


@pytest_twisted.ensureDeferred
async def test_the_objects_provide_their_interfaces(store):
    assert verifyObject(IBlobStore, store)
    upload = store.begin()
    assert verifyObject(IBlobUpload, upload)
    info = await upload.commit()
    assert verifyObject(IBlob, store.open(info.locator))


@pytest.mark.parametrize("size", SIZES)
@pytest_twisted.ensureDeferred
async def test_the_stored_bytes_are_read_back(store, size):
    body = body_of(size)
    info = await put(store, body, algorithms=("md5", "blake2b_256"), expect_size=size)
    assert info.size == size
    assert info.sha256 == info.digests["sha256"] == hashlib.sha256(body).hexdigest()
    assert info.digests["md5"] == hashlib.md5(body).hexdigest()
    assert info.digests["blake2b_256"] == hashlib.blake2b(body, digest_size=32).hexdigest()
    assert store.open(info.locator).size == size
    assert await content(store, info.locator) == body
    assert [row[0] for row in await store.scan()] == [info.locator]


@pytest_twisted.ensureDeferred
async def test_a_body_smaller_than_announced_is_stored_with_its_real_size(store):
    info = await put(store, body_of(300 * KIB), expect_size=2 * 1024 * KIB)
    assert info.size == 300 * KIB
    assert await content(store, info.locator) == body_of(300 * KIB)


@pytest.mark.parametrize("size", SIZES)
@pytest_twisted.ensureDeferred
async def test_nothing_is_visible_before_commit(store, size):
    async with store.begin() as upload:
        upload.write(body_of(size))
        await upload.drained()
        assert list(await store.scan()) == []
        info = await upload.commit()
    assert [row[0] for row in await store.scan()] == [info.locator]


@pytest.mark.parametrize("size", SIZES)
@pytest_twisted.ensureDeferred
async def test_leaving_an_upload_leaves_nothing(store, size):
    async with store.begin() as upload:
        upload.write(body_of(size))
    assert await nothing_is_left(store)


@pytest.mark.parametrize("size", SIZES)
@pytest_twisted.ensureDeferred
async def test_an_error_in_the_body_of_an_upload_leaves_nothing(store, size):
    async def failing():
        async with store.begin(expect_size=size) as upload:
            upload.write(body_of(size))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing()
    assert await nothing_is_left(store)


@pytest.mark.parametrize("size", SIZES)
@pytest_twisted.ensureDeferred
async def test_a_wrong_digest_leaves_nothing(store, size):
    upload = store.begin(algorithms=("sha512",))
    upload.write(body_of(size))
    actual = hashlib.sha512(body_of(size)).hexdigest()
    with pytest.raises(DigestMismatch) as caught:
        await upload.commit({"sha256": hashlib.sha256(body_of(size)).hexdigest(), "sha512": "0" * 128})
    assert astuple(caught.value) == ("sha512", "0" * 128, actual)
    assert await nothing_is_left(store)


@pytest.mark.parametrize("size", SIZES)
@pytest_twisted.ensureDeferred
async def test_a_wrong_size_leaves_nothing(store, size):
    upload = store.begin()
    upload.write(body_of(size))
    with pytest.raises(SizeMismatch) as caught:
        await upload.commit(size=size + 1)
    assert astuple(caught.value) == (size + 1, size)
    assert await nothing_is_left(store)


@pytest_twisted.ensureDeferred
async def test_right_digests_and_size_are_accepted(store):
    upload = store.begin(algorithms=("sha1",))
    upload.write(b"hello")
    info = await upload.commit({"sha1": hashlib.sha1(b"hello").hexdigest()}, size=5)
    assert await content(store, info.locator) == b"hello"


@pytest_twisted.ensureDeferred
async def test_expecting_a_digest_that_was_not_computed_is_refused(store):
    upload = store.begin()
    with pytest.raises(ValueError, match="md5"):
        await upload.commit({"md5": "0" * 32})
    assert await nothing_is_left(store)


@pytest_twisted.ensureDeferred
async def test_an_unknown_algorithm_is_refused_at_the_beginning(store):
    for name in ("md4711", "shake_128"):
        with pytest.raises(ValueError, match=name):
            store.begin(algorithms=(name,))


@pytest_twisted.ensureDeferred
async def test_more_than_the_limit_is_refused_at_the_write(store):
    async with store.begin(limit=10) as upload:
        upload.write(b"12345")
        with pytest.raises(TooLarge):
            upload.write(b"678901")
        assert upload.offset == 5
    with pytest.raises(TooLarge):
        store.begin(limit=10, expect_size=11)
    assert await nothing_is_left(store)


@pytest.mark.parametrize("size", SIZES)
@pytest_twisted.ensureDeferred
async def test_a_cancelled_commit_leaves_nothing(store, size):
    upload = store.begin()
    upload.write(body_of(size))
    commit = ensureDeferred(upload.commit())
    commit.addErrback(lambda failure: failure.type.__name__)
    commit.cancel()
    assert await commit == "CancelledError"
    assert await nothing_is_left(store)


@pytest_twisted.ensureDeferred
async def test_an_abort_during_commit_leaves_nothing(store):
    upload = store.begin()
    upload.write(body_of(300 * KIB))
    commit = ensureDeferred(upload.commit())
    commit.addErrback(lambda failure: failure.type.__name__)
    await upload.abort()
    assert await commit == "CancelledError"
    assert await nothing_is_left(store)


@pytest_twisted.ensureDeferred
async def test_abort_is_idempotent_and_does_nothing_after_a_commit(store):
    upload = store.begin()
    upload.write(b"x" * 300 * KIB)
    await upload.abort()
    await upload.abort()
    upload.write(b"late bytes of a producer")
    assert await nothing_is_left(store)
    upload = store.begin()
    info = await upload.commit()
    await upload.abort()
    assert await content(store, info.locator) == b""


@pytest_twisted.ensureDeferred
async def test_an_ended_upload_refuses_more_bytes(store):
    upload = store.begin()
    await upload.commit()
    for action in (upload.commit, upload.suspend):
        with pytest.raises(RuntimeError):
            await action()
    with pytest.raises(RuntimeError):
        upload.write(b"x")


@pytest_twisted.ensureDeferred
async def test_two_puts_of_one_content_are_two_copies(store):
    uploads = [store.begin() for _ in range(20)]
    for upload in uploads:
        upload.write(b"same")
    commits = [ensureDeferred(upload.commit()) for upload in uploads]
    infos = [await commit for commit in commits]
    locators = {info.locator for info in infos}
    assert len(locators) == 20
    assert len({info.sha256 for info in infos}) == 1
    for locator in sorted(locators)[1:]:
        await store.delete(locator)
    assert await content(store, min(locators)) == b"same"


async def sealed(store, body: bytes, **how):
    upload = store.begin(**how)
    upload.write(body)
    await upload.drained()
    return upload, await upload.seal()


def read_through(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return file.read()


@pytest.mark.parametrize("size", SIZES)
@pytest_twisted.ensureDeferred
async def test_a_sealed_upload_can_be_read_and_is_not_visible(store, size):
    body = body_of(size)
    upload, info = await sealed(store, body)
    assert (info.sha256, info.size) == (hashlib.sha256(body).hexdigest(), size)
    assert read_through(upload.descriptor()) == body
    assert upload.data in (None, body)
    assert list(await store.scan()) == []
    with pytest.raises(RuntimeError):
        upload.write(b"more")
    with pytest.raises(RuntimeError):
        await upload.suspend()
    assert await upload.commit() == info
    assert await content(store, info.locator) == body


@pytest.mark.parametrize("size", SIZES)
@pytest_twisted.ensureDeferred
async def test_a_sealed_upload_that_is_aborted_leaves_nothing(store, size):
    upload, _ = await sealed(store, body_of(size))
    await upload.abort()
    with pytest.raises(RuntimeError):
        await upload.commit()
    assert await nothing_is_left(store)


@pytest.mark.parametrize("size", SIZES)
@pytest_twisted.ensureDeferred
async def test_a_wrong_digest_fails_the_seal(store, size):
    upload = store.begin()
    upload.write(body_of(size))
    with pytest.raises(DigestMismatch):
        await upload.seal({"sha256": "0" * 64})
    assert await nothing_is_left(store)


@pytest_twisted.ensureDeferred
async def test_several_are_committed_together(store):
    bodies = [body_of(size) for size in SIZES]
    made = [await sealed(store, body) for body in bodies]
    await store.commit_together([upload for upload, _ in made])
    assert [await content(store, info.locator) for _, info in made] == bodies
    assert len(await store.scan()) == len(bodies)
    for upload, _ in made:
        await upload.abort()
    assert len(await store.scan()) == len(bodies)
    await store.commit_together([])


@pytest_twisted.ensureDeferred
async def test_an_aborted_commit_of_several_leaves_nothing(store):
    made = [await sealed(store, body_of(size)) for size in SIZES]
    committing = ensureDeferred(store.commit_together([upload for upload, _ in made]))
    await made[2][0].abort()
    with pytest.raises(CancelledError):
        await committing
    assert await nothing_is_left(store)


@pytest_twisted.ensureDeferred
async def test_only_sealed_uploads_are_committed_together(store):
    upload, _ = await sealed(store, b"x")
    async with store.begin() as other:
        with pytest.raises(RuntimeError):
            await store.commit_together([upload, other])
    await upload.abort()
    assert await nothing_is_left(store)


@pytest_twisted.ensureDeferred
async def test_interleaved_uploads_do_not_mix(store):
    bodies = [bytes([n]) * (200 * KIB + n * 50_001) for n in range(12)]
    uploads = [store.begin() for _ in bodies]
    for start in range(0, max(map(len, bodies)), 33_000):
        for upload, body in zip(uploads, bodies, strict=True):
            upload.write(body[start : start + 33_000])
            await upload.drained()
    infos = [await upload.commit() for upload in uploads]
    assert [await content(store, info.locator) for info in infos] == bodies


@pytest_twisted.ensureDeferred
async def test_a_deleted_copy_is_absent_and_deleting_again_is_fine(store):
    info = await put(store, b"hello")
    await store.delete(info.locator)
    await store.delete(info.locator)
    assert await store.stat(info.locator) is None
    with pytest.raises(BlobMissing):
        store.open(info.locator)
    assert list(await store.scan()) == []


@pytest_twisted.ensureDeferred
async def test_an_open_reader_finishes_after_the_copy_was_deleted(store):
    body = body_of(1024 * KIB)
    info = await put(store, body)
    blob = store.open(info.locator)
    collector = Collector(gentle=True)
    delivery = ensureDeferred(blob.deliver(collector, 0, blob.size))
    while len(collector.body) < KIB:
        await collector.written
    await store.delete(info.locator)
    while len(collector.body) < len(body):
        written = collector.written
        collector.go_on()
        await written
    await delivery
    assert collector.body == body


@pytest_twisted.ensureDeferred
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
@pytest_twisted.ensureDeferred
async def test_an_invalid_locator_is_missing(store, locator):
    with pytest.raises(BlobMissing):
        store.open(locator)
    assert await store.stat(locator) is None
    await store.delete(locator)


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
async def test_capacity_is_free_and_total_bytes(store):
    free, total = store.capacity()
    assert 0 < free <= total


@pytest.mark.parametrize("gentle", [False, True])
@pytest.mark.parametrize(("start", "end"), [(0, 0), (0, 1), (5, 300_000), (0, 2_000_000), (1_999_999, 2_000_000)])
@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
async def test_a_range_outside_the_blob_is_refused(store):
    blob = store.open((await put(store, b"hello")).locator)
    for start, end in ((-1, 2), (3, 2), (0, 6)):
        with pytest.raises(ValueError, match="bytes"):
            await blob.deliver(Collector(), start, end)


@pytest_twisted.ensureDeferred
async def test_a_consumer_that_stops_ends_the_delivery(store):
    body = body_of(2_000_000)
    blob = store.open((await put(store, body)).locator)
    collector = Collector(gentle=True)
    delivery = ensureDeferred(blob.deliver(collector, 0, blob.size))
    delivery.addErrback(lambda failure: failure.type.__name__)
    if not collector.body:
        await collector.written
    collector.producer.stopProducing()
    assert await delivery == "CancelledError"
    assert len(collector.body) < len(body)


@pytest_twisted.ensureDeferred
async def test_read_is_short_only_at_the_end(store):
    body = body_of(600 * KIB)
    blob = store.open((await put(store, body)).locator)
    assert await blob.read(0, 5) == body[:5]
    assert await blob.read(1, 10 * len(body)) == body[1:]
    assert await blob.read(len(body), 5) == b""
    assert await blob.read(len(body) + 9, 5) == b""


@pytest.mark.parametrize("moved", [False, True], ids=["same-worker", "other-worker"])
@pytest.mark.parametrize("sizes", [(0, 10, 0), (10, 0), (300 * KIB, 0), (300 * KIB, 10, 700 * KIB), (5_000_000, 1)])
@pytest_twisted.ensureDeferred
async def test_a_suspended_upload_resumes_at_its_offset(case, store, sizes, moved):
    body = b""
    upload = store.begin(algorithms=("sha512",))
    for size in sizes:
        piece = body_of(size)
        assert upload.offset == len(body)
        upload.write(piece)
        body += piece
        state = await upload.suspend()
        assert len(state) <= 4096
        assert list(await store.scan()) == []
        worker = await case.another() if moved else store
        upload = await worker.resume(upload.id, state)
    info = await upload.commit({"sha512": hashlib.sha512(body).hexdigest()}, size=len(body))
    assert info.sha256 == hashlib.sha256(body).hexdigest()
    assert await content(store, info.locator) == body
    assert await store.sweep_uploads(FUTURE, ()) == 0


@pytest_twisted.ensureDeferred
async def test_writing_after_a_move_counts_every_byte_in_the_digest(case, store):
    upload = store.begin(limit=10_000_000)
    upload.write(body_of(5_000_000))
    state = await upload.suspend()
    resumed = await (await case.another()).resume(upload.id, state)
    resumed.write(b"tail")
    with pytest.raises(TooLarge):
        resumed.write(bytes(6_000_000))
    info = await resumed.commit()
    assert info.sha256 == hashlib.sha256(body_of(5_000_000) + b"tail").hexdigest()


@pytest_twisted.ensureDeferred
async def test_bytes_after_the_last_acknowledged_offset_are_dropped_at_resume(case, store):
    upload = store.begin()
    upload.write(b"acknowledged")
    first = await upload.suspend()
    other = await case.another()
    again = await other.resume(upload.id, first)
    again.write(b" and never acknowledged")
    await again.suspend()
    for worker in (other, store):
        retried = await worker.resume(upload.id, first)
        retried.write(b", retried")
        state = await retried.suspend()
    final = await store.resume(upload.id, state)
    info = await final.commit()
    assert await content(store, info.locator) == b"acknowledged, retried"


@pytest_twisted.ensureDeferred
async def test_a_first_piece_that_was_never_acknowledged_is_dropped(case, store):
    upload = store.begin()
    empty = await upload.suspend()
    lost = await store.resume(upload.id, empty)
    lost.write(b"the worker died before it could say so")
    await lost.suspend()
    retried = await (await case.another()).resume(upload.id, empty)
    retried.write(b"retried")
    state = await retried.suspend()
    info = await (await store.resume(upload.id, state)).commit()
    assert await content(store, info.locator) == b"retried"
    assert await store.sweep_uploads(FUTURE, ()) == 0


@pytest_twisted.ensureDeferred
async def test_leaving_a_resumed_upload_removes_it(store):
    upload = store.begin()
    upload.write(b"x" * 300 * KIB)
    state = await upload.suspend()
    async with await store.resume(upload.id, state) as resumed:
        resumed.write(b"y")
    with pytest.raises(BlobMissing):
        await store.resume(upload.id, state)
    assert await nothing_is_left(store)


@pytest_twisted.ensureDeferred
async def test_a_cancelled_suspend_leaves_nothing(store):
    upload = store.begin()
    upload.write(body_of(300 * KIB))
    suspend = ensureDeferred(upload.suspend())
    suspend.addErrback(lambda failure: failure.type.__name__)
    suspend.cancel()
    assert await suspend == "CancelledError"
    assert await nothing_is_left(store)


@pytest.mark.parametrize(
    "upload_id", ["", "..", "../blobs", "f" * 31, "F" * 32, "f" * 32, "f" * 32 + "\n", "\x00" * 32]
)
@pytest_twisted.ensureDeferred
async def test_resuming_an_invalid_upload_id_is_refused(store, upload_id):
    upload = store.begin()
    upload.write(b"x")
    state = await upload.suspend()
    with pytest.raises(BlobMissing):
        await store.resume(upload_id, state)


@pytest_twisted.ensureDeferred
async def test_a_cancelled_resume_leaves_the_upload_as_it_was(store):
    upload = store.begin()
    upload.write(b"x" * 300 * KIB)
    state = await upload.suspend()
    resume = ensureDeferred(store.resume(upload.id, state))
    resume.addErrback(lambda failure: failure.type.__name__)
    resume.cancel()
    assert await resume == "CancelledError"
    info = await (await store.resume(upload.id, state)).commit()
    assert info.size == 300 * KIB
    assert not open_descriptors()


@pytest.mark.parametrize("state", [b"", b"{}", b"[]", b"\xff", b'{"version":1,"offset":-1,"limit":null,"digests":{}}'])
@pytest_twisted.ensureDeferred
async def test_a_state_of_another_program_is_refused(store, state):
    upload = store.begin()
    upload.write(b"x")
    await upload.suspend()
    with pytest.raises(BlobMissing):
        await store.resume(upload.id, state)


@pytest_twisted.ensureDeferred
async def test_sweep_removes_only_old_uploads_that_are_not_kept(store):
    async def suspended():
        upload = store.begin()
        upload.write(b"x")
        return upload.id, await upload.suspend()

    kept, kept_state = await suspended()
    gone, gone_state = await suspended()
    used, used_state = await suspended()
    in_use = await store.resume(used, used_state)
    assert await store.sweep_uploads(datetime(2000, 1, 1, tzinfo=UTC), ()) == 0
    assert await store.sweep_uploads(FUTURE, {kept}) == 1
    with pytest.raises(BlobMissing):
        await store.resume(gone, gone_state)
    await (await store.resume(kept, kept_state)).commit()
    await in_use.commit()


class PushProducer:
    """Writes one piece per reactor iteration while it is not paused."""

    def __init__(self, upload, body: bytes, piece: int) -> None:
        self.upload, self.body, self.piece = upload, body, piece
        self.paused = False
        self.pauses = 0
        self.stopped = False
        self.most = 0
        self.done = Deferred()

    def run(self) -> None:
        while self.body and not self.paused and not self.stopped:
            piece, self.body = self.body[: self.piece], self.body[self.piece :]
            self.upload.write(piece)
        if not self.body and not self.done.called:
            self.upload.unregisterProducer()
            self.done.callback(None)

    def pauseProducing(self) -> None:
        self.paused = True
        self.pauses += 1

    def resumeProducing(self) -> None:
        self.paused = False
        self.run()

    def stopProducing(self) -> None:
        self.stopped = True


class PullProducer(PushProducer):
    """Writes one piece at each ``resumeProducing``."""

    def resumeProducing(self) -> None:
        piece, self.body = self.body[: self.piece], self.body[self.piece :]
        if piece:
            self.upload.write(piece)
        elif not self.done.called:
            self.upload.unregisterProducer()
            self.done.callback(None)


@pytest_twisted.ensureDeferred
async def test_a_push_producer_is_paused_and_resumed(store):
    body = body_of(8 * 1024 * KIB)
    upload = store.begin()
    producer = PushProducer(upload, body, 100_000)
    upload.registerProducer(producer, True)
    producer.run()
    assert producer.pauses == 1, "it was never paused, so the whole body was in memory at once"
    assert upload.offset < len(body)
    await producer.done
    info = await upload.commit()
    assert info.sha256 == hashlib.sha256(body).hexdigest()


@pytest_twisted.ensureDeferred
async def test_a_pull_producer_is_resumed_until_it_is_done(store):
    body = body_of(8 * 1024 * KIB)
    upload = store.begin()
    producer = PullProducer(upload, body, 100_000)
    upload.registerProducer(producer, False)
    assert upload.offset < len(body), "it was asked for the whole body at once"
    await producer.done
    info = await upload.commit()
    assert info.sha256 == hashlib.sha256(body).hexdigest()


@pytest_twisted.ensureDeferred
async def test_abort_stops_the_producer(store):
    upload = store.begin()
    producer = PushProducer(upload, bytes(8 * 1024 * KIB), 100_000)
    upload.registerProducer(producer, True)
    with pytest.raises(RuntimeError):
        upload.registerProducer(producer, True)
    producer.run()
    await upload.abort()
    assert producer.stopped
    assert await nothing_is_left(store)


chunkings = st.lists(st.integers(0, 400 * KIB), max_size=12)


@given(
    kind=st.sampled_from(sorted(CASES)),
    sizes=chunkings,
    suspends=st.sets(st.integers(0, 11), max_size=3),
    data=st.binary(min_size=1, max_size=50),
)
@settings(max_examples=30)
def test_any_chunking_with_any_suspends_gives_the_same_blob(tmp_path_factory, kind, sizes, suspends, data):
    # Without the fixtures' parameters: with them pytest-twisted repeats each example for every earlier parameter.
    async def scenario():
        case = CASES[kind](tmp_path_factory.mktemp("store"))
        store = await case.start()
        upload, body = store.begin(), b""
        for n, size in enumerate(sizes):
            piece = (data * (size // len(data) + 1))[:size]
            upload.write(piece)
            body += piece
            if n in suspends:
                state = await upload.suspend()
                upload = await (await case.another() if n % 2 else store).resume(upload.id, state)
        info = await upload.commit(size=len(body))
        assert info.sha256 == hashlib.sha256(body).hexdigest()
        assert await content(store, info.locator) == body
        await store.delete(info.locator)
        assert await nothing_is_left(store)
        await case.stop()

    return ensureDeferred(scenario())


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
@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
async def test_there_is_no_descriptor_before_the_first_readable_byte(store):
    async with store.begin() as upload:
        with pytest.raises(RuntimeError):
            upload.descriptor()
    assert await nothing_is_left(store)
