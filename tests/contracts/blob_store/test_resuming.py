"""Blob stores: uploads that are suspended, resumed and swept."""

import hashlib
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import ensureDeferred

from pkgrepo.errors import BlobMissing, TooLarge
from tests.support.blob_store_cases import CASES, FUTURE, KIB, body_of, content, installed_cases, nothing_is_left
from tests.support.blob_stores import open_descriptors
from tests.support.inprocess_server import until


@pytest.mark.parametrize("moved", [False, True], ids=["same-worker", "other-worker"])
@pytest.mark.parametrize("sizes", [(0, 10, 0), (10, 0), (300 * KIB, 0), (300 * KIB, 10, 700 * KIB), (5_000_000, 1)])
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


async def test_leaving_a_resumed_upload_removes_it(store):
    upload = store.begin()
    upload.write(b"x" * 300 * KIB)
    state = await upload.suspend()
    async with await store.resume(upload.id, state) as resumed:
        resumed.write(b"y")
    with pytest.raises(BlobMissing):
        await store.resume(upload.id, state)
    assert await nothing_is_left(store)


@pytest.mark.parametrize("abandoned", [False, True])
@pytest.mark.parametrize("end", ["commit", "abort"])
async def test_a_kept_state_can_be_resumed_until_it_is_forgotten(case, store, end, abandoned):
    first, more = body_of(300 * KIB), b" and more"
    upload = store.begin()
    upload.write(first)
    state = await upload.suspend()
    infos = []
    for text in (b"lost", b"lost again", more):
        resumed = await (await case.another()).resume(upload.id, state, abandoned=abandoned)
        resumed.keep_state()
        assert resumed.offset == len(first)
        resumed.write(text)
        if end == "commit" or text is more:
            infos.append((await resumed.commit(), first + text))
        else:
            await resumed.abort()
    await resumed.forget()
    for info, body in infos:
        assert await content(store, info.locator) == body
        await store.delete(info.locator)
    with pytest.raises(BlobMissing):
        await store.resume(upload.id, state)
    assert await nothing_is_left(store)


async def test_an_aborted_upload_whose_state_was_kept_leaves_nothing_when_it_is_forgotten(store):
    upload = store.begin()
    upload.write(b"x" * 300 * KIB)
    state = await upload.suspend()
    resumed = await store.resume(upload.id, state)
    resumed.keep_state()
    await resumed.abort()
    await resumed.forget()
    with pytest.raises(BlobMissing):
        await store.resume(upload.id, state)
    assert await nothing_is_left(store)


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
async def test_resuming_an_invalid_upload_id_is_refused(store, upload_id):
    upload = store.begin()
    upload.write(b"x")
    state = await upload.suspend()
    with pytest.raises(BlobMissing):
        await store.resume(upload_id, state)


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
    await until(lambda: not open_descriptors())  # a thread closes that of the cancelled one


@pytest.mark.parametrize("state", [b"", b"{}", b"[]", b"\xff", b'{"version":1,"offset":-1,"limit":null,"digests":{}}'])
async def test_a_state_of_another_program_is_refused(store, state):
    upload = store.begin()
    upload.write(b"x")
    await upload.suspend()
    with pytest.raises(BlobMissing):
        await store.resume(upload.id, state)


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


chunkings = st.lists(st.integers(0, 400 * KIB), max_size=12)


@given(
    kind=st.sampled_from(installed_cases()),
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
