"""Files of an upstream reach their clients while they are stored: one upstream body, many readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from twisted.internet.defer import gatherResults

from tests.support.caching_proxy import Client, fetch, in_thread
from tests.support.certificates import make_certificate
from tests.support.inprocess_server import until
from tests.support.transfers import (
    KIB,
    MIB,
    SIZE,
    assert_nothing_kept,
    assert_stored,
    body_of,
    document,
    fetch_all,
    start_reading,
)
from tests.support.upstreams.faults import corrupted
from tests.support.upstreams.messages import Fault

pytestmark = pytest.mark.server


@pytest.mark.parametrize("secure", [False, True])
async def test_many_clients_of_a_cold_file_cost_one_upstream_request(
    make_proxy: Any, origin: Any, tmp_path: Path, secure: bool
) -> None:
    proxy = make_proxy(certificate=make_certificate(tmp_path) if secure else None)
    size, clients = (4 * MIB, 10) if secure else (20 * MIB, 50)
    body = body_of(size)
    origin.serve("/file", document(size))
    proxy.expect("file", body, "sha256", "sha512")
    fetched = await fetch_all(proxy, "file", clients)
    assert [(each.status, each.body == body) for each in fetched] == [(200, True)] * clients
    assert (origin.count(), origin.sent()) == (1, size)
    await assert_stored(proxy, body)
    assert (await fetch(proxy.server.url, "file")).body == body
    assert origin.count() == 1


@pytest.mark.parametrize("size", [0, 1, 1000, 40 * KIB, 64 * KIB, 64 * KIB + 1, 256 * KIB, SIZE])
@pytest.mark.parametrize("fault", [Fault(), Fault(chunked=True), Fault(unframed=True)])
async def test_files_of_all_sizes_arrive_with_and_without_a_length(
    proxy: Any, origin: Any, size: int, fault: Fault
) -> None:
    origin.serve("/file", document(size, Content_Type="text/x"))
    origin.misbehave("/file", fault, repeat=True)
    proxy.expect("file", body_of(size))
    fetched = await fetch_all(proxy, "file", 3)
    assert [(each.status, each.body == body_of(size)) for each in fetched] == [(200, True)] * 3
    assert origin.count() == 1
    await assert_stored(proxy, body_of(size))


async def test_clients_have_the_beginning_while_the_upstream_still_sends(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=MIB))
    first = await start_reading(proxy, MIB)
    second = await start_reading(proxy, MIB)
    assert proxy.row("file") is None
    origin.release("/file")
    for client in (first, second):
        assert (await in_thread(client.read)).body == body_of(SIZE)
    assert origin.count() == 1


async def test_last_byte_waits_for_the_digest(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", corrupted)
    proxy.expect("file", body_of(SIZE))
    fetched = await fetch_all(proxy, "file", 4)
    assert [each.complete for each in fetched] == [False] * 4
    assert all(each.status in (0, 200, 502) for each in fetched)
    await assert_nothing_kept(proxy)
    # The error is not remembered.
    assert (await fetch(proxy.server.url, "file")).body == body_of(SIZE)
    await assert_stored(proxy, body_of(SIZE))


async def test_body_that_is_there_but_not_verified_does_not_look_whole(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", lambda answer: evolve(corrupted(answer), fault=Fault(chunked=True, pause_at=SIZE)))
    proxy.sizes["file"] = SIZE
    proxy.expect("file", body_of(SIZE))
    client = await start_reading(proxy, SIZE - 1)
    origin.release("/file")
    assert len((await in_thread(client.read)).body) == SIZE - 1
    await assert_nothing_kept(proxy)


async def test_slow_client_delays_nobody(proxy: Any, origin: Any) -> None:
    size = 20 * MIB  # more than the kernel's socket buffers hold
    origin.serve("/file", document(size))

    def ask() -> Client:
        client = Client(proxy.server.url, receive_buffer=4096)
        client.ask("file")
        client.read_body(1)
        return client

    slow = await in_thread(ask)
    fetched = await fetch_all(proxy, "file", 3)
    assert [each.body == body_of(size) for each in fetched] == [True] * 3
    await assert_stored(proxy, body_of(size))
    assert (await in_thread(slow.read)).body == body_of(size)
    assert origin.count() == 1


@pytest.mark.parametrize(
    ("first", "last"), [(0, 0), (100, 2 * MIB), (SIZE - 1, SIZE - 1), (2 * MIB, SIZE - 1), (MIB - 1, MIB)]
)
async def test_ranges_are_served_during_a_transfer(proxy: Any, origin: Any, first: int, last: int) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=MIB))
    whole = await start_reading(proxy, 1)
    ranged = fetch(proxy.server.url, "file", Range=f"bytes={first}-{last}")
    head = await fetch(proxy.server.url, "file", "HEAD")
    assert (head.status, head.fields["content-length"]) == (200, str(SIZE))
    origin.release("/file")
    found = await ranged
    assert (found.status, found.fields["content-range"]) == (206, f"bytes {first}-{last}/{SIZE}")
    assert found.body == body_of(SIZE)[first : last + 1]
    assert (await in_thread(whole.read)).body == body_of(SIZE)
    assert origin.count() == 1


async def test_transfers_beyond_the_permits_wait(make_proxy: Any, origin: Any) -> None:
    proxy = make_proxy(most=1)
    origin.serve("/file", document())
    origin.serve("/other", document(100))
    origin.misbehave("/file", Fault(pause_at=MIB))
    first = await start_reading(proxy, 1000)
    other = fetch(proxy.server.url, "other")
    await until(lambda: len(proxy.transfers) == 2)
    assert origin.count("/other") == 0
    origin.release("/file")
    assert (await in_thread(first.read)).body == body_of(SIZE)
    assert (await other).body == body_of(100)


async def test_slow_transfers_of_one_repository_leave_room_for_others(make_proxy: Any, origin: Any) -> None:
    proxy = make_proxy(most=4)
    for number in range(5):
        origin.serve(f"/slow{number}", document())
        origin.misbehave(f"/slow{number}", Fault(pause_at=MIB))
    origin.serve("/other", document(100))
    slow = gatherResults([fetch(proxy.server.url, f"slow{number}") for number in range(5)])
    await until(lambda: sum(exchange.paused for exchange in origin.exchanges) == 3)
    other = proxy.transfers.get(0, "other", lambda: proxy.download("other"))
    await other.finish()
    assert origin.count() == 4
    origin.behave()
    assert all(each.body == body_of(SIZE) for each in await slow)


async def test_stop_aborts_the_readers_and_leaves_nothing(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=MIB))
    client = await start_reading(proxy, 1000)
    await proxy.transfers.stop()
    assert len(proxy.transfers) == 0
    assert not (await in_thread(client.read)).complete
    await assert_nothing_kept(proxy)
