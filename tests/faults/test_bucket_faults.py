"""Blob stores in buckets: servers that are busy, break connections, lose answers or are killed."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_twisted
from attrs import evolve
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import StorageFailed
from pkgrepo.storage.blobs.s3.spool import Spool
from pkgrepo.storage.blobs.s3.store import BucketBlobStore
from tests.support.blob_store_cases import FUTURE, KIB, body_of, content, put
from tests.support.faulty_relay import faulty_relay
from tests.support.s3_servers import s3_server

pytestmark = pytest.mark.faults

LARGE = body_of(12 * 1024 * KIB)
SMALL = body_of(100 * KIB)


@pytest.fixture(scope="module")
def server() -> Any:
    with s3_server() as server:
        yield server


@pytest.fixture
def relayed(server: Any) -> Any:
    with faulty_relay(server.endpoint) as made:
        yield made


@pytest_twisted.async_yield_fixture
async def store(server: Any, relayed: Any, request: Any, tmp_path: Any) -> Any:
    pools = Pools(reactor)
    pools.start()
    place = evolve(server.place(f"{request.node.name}/".replace("[", "-").replace("]", "").replace(" ", "-")))
    store = BucketBlobStore(
        evolve(place, endpoint=relayed[1]),
        name="main",
        pools=pools,
        spool=Spool(tmp_path, low=0),
        part_size=5 * 1024 * KIB,
    )
    await store.start()
    yield store
    await store.stop()
    await pools.stop()


@pytest.fixture
def relay(relayed: Any) -> Any:
    return relayed[0]


@pytest.mark.parametrize("fault", ["slow down", "drop", "lose"])
@pytest.mark.parametrize(
    ("body", "method", "part"),
    [
        (SMALL, "PUT", "/blobs/"),
        (LARGE, "POST", "uploads="),
        (LARGE, "PUT", "partNumber=2"),
        (LARGE, "POST", "uploadId="),
    ],
    ids=["put", "begin", "part", "complete"],
)
async def test_a_request_that_fails_for_a_moment_is_repeated(
    store: Any, relay: Any, fault: str, body: bytes, method: str, part: str
) -> None:
    relay.spoil(fault, method, part, times=2)
    info = await put(store, body)
    assert not relay.faults, "the fault did not happen"
    assert await content(store, info.locator) == body
    assert [(row[0], row[1]) for row in await store.scan()] == [(info.locator, len(body))]


async def test_an_error_in_a_success_is_an_error(store: Any, relay: Any) -> None:
    relay.spoil("late error", "POST", "uploadId=")
    info = await put(store, LARGE)
    assert not relay.faults
    assert await content(store, info.locator) == LARGE


@pytest.mark.parametrize("fault", ["slow down", "drop", "cut"])
async def test_a_download_goes_on_after_a_fault(store: Any, relay: Any, fault: str) -> None:
    info = await put(store, LARGE)
    relay.spoil(fault, "GET", "/blobs/", times=2)
    assert await content(store, info.locator) == LARGE
    assert not relay.faults


@pytest.mark.parametrize("fault", ["slow down", "drop", "cut"])
async def test_a_server_that_only_fails_is_said_to_fail(store: Any, relay: Any, fault: str) -> None:
    info = await put(store, SMALL)
    relay.spoil(fault, "GET", times=1000)
    with pytest.raises(StorageFailed):
        await content(store, info.locator)
    relay.faults.clear()
    assert await content(store, info.locator) == SMALL


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
async def test_a_commit_that_cannot_be_made_leaves_nothing(store: Any, relay: Any, body: bytes) -> None:
    relay.spoil("slow down", "PUT", times=1000)
    with pytest.raises(StorageFailed):
        await put(store, body)
    relay.faults.clear()
    assert list(await store.scan()) == []
    assert await store.sweep_uploads(FUTURE, ()) == 0
    info = await put(store, body)
    assert await content(store, info.locator) == body


async def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path: Any) -> None:
    pools = Pools(reactor)
    pools.start()
    with s3_server() as server:
        store = BucketBlobStore(
            server.place(), name="main", pools=pools, spool=Spool(tmp_path, low=0), part_size=5 * 1024 * KIB
        )
        await store.start()
        kept = await put(store, LARGE)
        suspended = store.begin()
        suspended.write(LARGE)
        state = await suspended.suspend()
        broken = store.begin()
        broken.write(LARGE)
        await broken.drained()
        server.kill()
        with pytest.raises(StorageFailed):
            await broken.commit()
        server.start()
        assert await content(store, kept.locator) == LARGE
        info = await (await store.resume(suspended.id, state)).commit()
        assert await content(store, info.locator) == LARGE
        assert {row[0] for row in await store.scan()} == {kept.locator, info.locator}
        await store.sweep_uploads(FUTURE, ())
        assert await store.sweep_uploads(FUTURE, ()) == 0
        await store.stop()
    await pools.stop()


async def test_a_server_that_is_away_for_a_moment_is_waited_for(tmp_path: Any) -> None:
    pools = Pools(reactor)
    pools.start()
    with s3_server() as server:
        store = BucketBlobStore(server.place(), name="main", pools=pools, spool=Spool(tmp_path, low=0))
        await store.start()
        server.kill()
        upload = store.begin()
        upload.write(SMALL)
        commit = Deferred.fromCoroutine(upload.commit())
        server.start()
        commit.addErrback(lambda failure: failure.trap(StorageFailed) and None)
        info = await commit
        found = {row[0] for row in await store.scan()}
        assert found == (set() if info is None else {info.locator})
        await store.stop()
    await pools.stop()
