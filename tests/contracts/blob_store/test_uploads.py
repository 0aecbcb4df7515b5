"""Blob stores: uploads, from the first byte to the commit, and their producers."""

import hashlib

import pytest
from attrs import astuple
from twisted.internet.defer import CancelledError, Deferred, ensureDeferred
from zope.interface.verify import verifyObject

from pkgrepo.errors import DigestMismatch, SizeMismatch, TooLarge
from pkgrepo.interfaces import IBlob, IBlobStore, IBlobUpload
from tests.support.blob_store_cases import KIB, SIZES, body_of, content, nothing_is_left, put, read_through, sealed


async def test_the_objects_provide_their_interfaces(store):
    assert verifyObject(IBlobStore, store)
    upload = store.begin()
    assert verifyObject(IBlobUpload, upload)
    info = await upload.commit()
    assert verifyObject(IBlob, store.open(info.locator))


@pytest.mark.parametrize("size", SIZES)
async def test_the_stored_bytes_are_read_back(store, size):
    body = body_of(size)
    info = await put(store, body, algorithms=("md5", "blake2b_256"), expect_size=size)
    assert info.size == size
    assert info.sha256 == info.digests["sha256"] == hashlib.sha256(body).hexdigest()
    assert info.digests["md5"] == hashlib.md5(body).hexdigest()
    assert info.digests["blake2b_256"] == hashlib.blake2b(body, digest_size=32).hexdigest()
    assert (await store.stat(info.locator))[0] == size
    assert await content(store, info.locator) == body
    assert [row[0] for row in await store.scan()] == [info.locator]


async def test_a_body_smaller_than_announced_is_stored_with_its_real_size(store):
    info = await put(store, body_of(300 * KIB), expect_size=2 * 1024 * KIB)
    assert info.size == 300 * KIB
    assert await content(store, info.locator) == body_of(300 * KIB)


@pytest.mark.parametrize("size", SIZES)
async def test_nothing_is_visible_before_commit(store, size):
    async with store.begin() as upload:
        upload.write(body_of(size))
        await upload.drained()
        assert list(await store.scan()) == []
        info = await upload.commit()
    assert [row[0] for row in await store.scan()] == [info.locator]


@pytest.mark.parametrize("size", SIZES)
async def test_leaving_an_upload_leaves_nothing(store, size):
    async with store.begin() as upload:
        upload.write(body_of(size))
    assert await nothing_is_left(store)


@pytest.mark.parametrize("size", SIZES)
async def test_an_error_in_the_body_of_an_upload_leaves_nothing(store, size):
    async def failing():
        async with store.begin(expect_size=size) as upload:
            upload.write(body_of(size))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing()
    assert await nothing_is_left(store)


@pytest.mark.parametrize("size", SIZES)
async def test_a_wrong_digest_leaves_nothing(store, size):
    upload = store.begin(algorithms=("sha512",))
    upload.write(body_of(size))
    actual = hashlib.sha512(body_of(size)).hexdigest()
    with pytest.raises(DigestMismatch) as caught:
        await upload.commit({"sha256": hashlib.sha256(body_of(size)).hexdigest(), "sha512": "0" * 128})
    assert astuple(caught.value) == ("sha512", "0" * 128, actual)
    assert await nothing_is_left(store)


@pytest.mark.parametrize("size", SIZES)
async def test_a_wrong_size_leaves_nothing(store, size):
    upload = store.begin()
    upload.write(body_of(size))
    with pytest.raises(SizeMismatch) as caught:
        await upload.commit(size=size + 1)
    assert astuple(caught.value) == (size + 1, size)
    assert await nothing_is_left(store)


async def test_right_digests_and_size_are_accepted(store):
    upload = store.begin(algorithms=("sha1",))
    upload.write(b"hello")
    info = await upload.commit({"sha1": hashlib.sha1(b"hello").hexdigest()}, size=5)
    assert await content(store, info.locator) == b"hello"


async def test_expecting_a_digest_that_was_not_computed_is_refused(store):
    upload = store.begin()
    with pytest.raises(ValueError, match="md5"):
        await upload.commit({"md5": "0" * 32})
    assert await nothing_is_left(store)


async def test_an_unknown_algorithm_is_refused_at_the_beginning(store):
    for name in ("md4711", "shake_128"):
        with pytest.raises(ValueError, match=name):
            store.begin(algorithms=(name,))


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
async def test_a_cancelled_commit_leaves_nothing(store, size):
    upload = store.begin()
    upload.write(body_of(size))
    commit = ensureDeferred(upload.commit())
    commit.addErrback(lambda failure: failure.type.__name__)
    commit.cancel()
    assert await commit == "CancelledError"
    assert await nothing_is_left(store)


async def test_an_abort_during_commit_leaves_nothing(store):
    upload = store.begin()
    upload.write(body_of(300 * KIB))
    commit = ensureDeferred(upload.commit())
    commit.addErrback(lambda failure: failure.type.__name__)
    await upload.abort()
    assert await commit == "CancelledError"
    assert await nothing_is_left(store)


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


async def test_an_ended_upload_refuses_more_bytes(store):
    upload = store.begin()
    await upload.commit()
    for action in (upload.commit, upload.suspend):
        with pytest.raises(RuntimeError):
            await action()
    with pytest.raises(RuntimeError):
        upload.write(b"x")


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


@pytest.mark.parametrize("size", SIZES)
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
async def test_a_sealed_upload_that_is_aborted_leaves_nothing(store, size):
    upload, _ = await sealed(store, body_of(size))
    await upload.abort()
    with pytest.raises(RuntimeError):
        await upload.commit()
    assert await nothing_is_left(store)


@pytest.mark.parametrize("size", SIZES)
async def test_a_wrong_digest_fails_the_seal(store, size):
    upload = store.begin()
    upload.write(body_of(size))
    with pytest.raises(DigestMismatch):
        await upload.seal({"sha256": "0" * 64})
    assert await nothing_is_left(store)


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


async def test_an_aborted_commit_of_several_leaves_nothing(store):
    made = [await sealed(store, body_of(size)) for size in SIZES]
    committing = ensureDeferred(store.commit_together([upload for upload, _ in made]))
    await made[2][0].abort()
    with pytest.raises(CancelledError):
        await committing
    assert await nothing_is_left(store)


async def test_only_sealed_uploads_are_committed_together(store):
    upload, _ = await sealed(store, b"x")
    async with store.begin() as other:
        with pytest.raises(RuntimeError):
            await store.commit_together([upload, other])
    await upload.abort()
    assert await nothing_is_left(store)


async def test_interleaved_uploads_do_not_mix(store):
    bodies = [bytes([n]) * (200 * KIB + n * 50_001) for n in range(12)]
    uploads = [store.begin() for _ in bodies]
    for start in range(0, max(map(len, bodies)), 33_000):
        for upload, body in zip(uploads, bodies, strict=True):
            upload.write(body[start : start + 33_000])
            await upload.drained()
    infos = [await upload.commit() for upload in uploads]
    assert [await content(store, info.locator) for info in infos] == bodies


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


async def test_a_pull_producer_is_resumed_until_it_is_done(store):
    body = body_of(8 * 1024 * KIB)
    upload = store.begin()
    producer = PullProducer(upload, body, 100_000)
    upload.registerProducer(producer, False)
    assert upload.offset < len(body), "it was asked for the whole body at once"
    await producer.done
    info = await upload.commit()
    assert info.sha256 == hashlib.sha256(body).hexdigest()


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
