"""Transfers whose readers leave."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.caching_proxy import Client, fetch, in_thread
from tests.support.inprocess_server import until
from tests.support.transfers import MIB, SIZE, assert_nothing_kept, assert_stored, body_of, document, start_reading
from tests.support.upstreams.messages import Fault

pytestmark = pytest.mark.server


async def test_transfer_that_nobody_waits_for_is_given_up(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=MIB))
    clients = [await start_reading(proxy, 1000) for _ in range(3)]
    for client in clients:
        assert len(proxy.transfers) == 1
        client.socket.close()
    await in_thread(origin.wait_for, lambda: origin.exchanges[0].ended == "left")
    await assert_nothing_kept(proxy)
    assert (await fetch(proxy.server.url, "file")).body == body_of(SIZE)


async def test_client_that_leaves_before_the_first_byte_ends_the_transfer(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=-1))

    def ask() -> Client:
        client = Client(proxy.server.url)
        client.ask("file")
        return client

    client = await in_thread(ask)
    await in_thread(origin.wait_paused, "/file")
    client.socket.close()
    await in_thread(origin.wait_for, lambda: origin.exchanges[0].ended == "left")
    await assert_nothing_kept(proxy)


async def test_transfer_goes_on_for_the_others(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=MIB))
    leaving = await start_reading(proxy, 1000)
    staying = await start_reading(proxy, 1000)
    leaving.socket.close()
    origin.release("/file")
    assert (await in_thread(staying.read)).body == body_of(SIZE)
    assert origin.count() == 1


async def test_transfer_that_is_mostly_there_is_finished_for_nobody(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=2 * MIB))
    client = await start_reading(proxy, 2 * MIB)
    client.socket.close()
    await until(lambda: not proxy.server.site.channels)
    origin.release("/file")
    await assert_stored(proxy, body_of(SIZE))
    assert origin.count() == 1


async def test_head_request_leaves_no_reader_behind(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=MIB))
    head = await fetch(proxy.server.url, "file", "HEAD")
    assert head.fields["content-length"] == str(SIZE)
    await in_thread(origin.wait_for, lambda: origin.exchanges[0].ended == "left")
    await assert_nothing_kept(proxy)
