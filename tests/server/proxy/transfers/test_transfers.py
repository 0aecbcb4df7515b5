"""Files of an upstream reach their clients while they are stored: one upstream body, many readers."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from attrs import evolve
from twisted.internet.defer import Deferred, gatherResults

from pkgrepo.errors import StorageFull
from tests.support.caching_proxy import Client, Fetched, fetch, in_thread
from tests.support.certificates import make_certificate
from tests.support.inprocess_server import until
from tests.support.upstreams.faults import HTML, corrupted, failing, gzipped, truncated_by, with_etag, without_ranges
from tests.support.upstreams.messages import Answer, Fault, etag_of

pytestmark = pytest.mark.server

KIB = 1024
MIB = 1024 * KIB
SIZE = 3 * MIB + 17


@cache
def body_of(size: int) -> bytes:
    return os.urandom(size)


def document(size: int = SIZE, **fields: str) -> Answer:
    return Answer(body=body_of(size), fields={"ETag": etag_of(body_of(size)), **fields})


def fetch_all(proxy: Any, path: str, count: int) -> Deferred[list[Fetched]]:
    return gatherResults([fetch(proxy.server.url, path) for _ in range(count)])


async def assert_nothing_kept(proxy: Any) -> None:
    await until(lambda: not len(proxy.transfers))
    assert proxy.row("file") is None
    assert proxy.services.copies() == []


async def assert_stored(proxy: Any, body: bytes, path: str = "file") -> None:
    await until(lambda: proxy.row(path) is not None)
    file = proxy.row(path)
    assert (file.size, file.sha256) == (len(body), hashlib.sha256(body).hexdigest())
    assert await proxy.services.store.open(file.locator).read(0, file.size) == body


async def start_reading(proxy: Any, count: int, path: str = "file") -> Client:
    """A client that has read so many bytes."""

    def run() -> Client:
        client = Client(proxy.server.url)
        client.ask(path)
        client.read_body(count)
        return client

    started: Client = await in_thread(run)
    return started


@pytest.mark.parametrize("secure", [False, True])
@pytest_twisted.ensureDeferred
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
@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
async def test_body_that_is_there_but_not_verified_does_not_look_whole(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", lambda answer: evolve(corrupted(answer), fault=Fault(chunked=True, pause_at=SIZE)))
    proxy.sizes["file"] = SIZE
    proxy.expect("file", body_of(SIZE))
    client = await start_reading(proxy, SIZE - 1)
    origin.release("/file")
    assert len((await in_thread(client.read)).body) == SIZE - 1
    await assert_nothing_kept(proxy)


@pytest_twisted.ensureDeferred
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
@pytest_twisted.ensureDeferred
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


# What goes wrong


@pytest.mark.parametrize(
    ("step", "status"),
    [
        (HTML, 502),
        (failing(403), 502),
        (Answer(404, b"no"), 404),
        (Answer(410, b"no more"), 404),
        (truncated_by(1, announce=False), 502),
        (lambda _: Answer(body=body_of(1000)), 502),
        (Answer(206, b"a part", {"Content-Range": "bytes 0-5/100"}), 502),
    ],
)
@pytest_twisted.ensureDeferred
async def test_answer_that_is_not_the_file_is_refused(proxy: Any, origin: Any, step: Any, status: int) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", step, repeat=True)
    proxy.sizes["file"] = SIZE
    fetched = await fetch_all(proxy, "file", 3)
    assert [each.status for each in fetched] == [status] * 3
    await assert_nothing_kept(proxy)


@pytest_twisted.ensureDeferred
async def test_page_is_a_file_where_a_page_is_wanted(proxy: Any, origin: Any) -> None:
    origin.serve("/index.html", Answer(body=b"<html>", fields={"Content-Type": "text/html"}))
    assert (await fetch(proxy.server.url, "index.html")).body == b"<html>"


@pytest.mark.parametrize("size", [100, SIZE])
@pytest.mark.parametrize("fault", [Fault(), Fault(chunked=True)])
@pytest_twisted.ensureDeferred
async def test_file_of_another_size_than_announced_is_refused(proxy: Any, origin: Any, size: int, fault: Fault) -> None:
    origin.serve("/file", document(size))
    origin.misbehave("/file", fault, repeat=True)
    for announced in (size - 1, size + 1):
        proxy.sizes["file"] = announced
        fetched = await fetch(proxy.server.url, "file")
        assert fetched.status == 502 or not fetched.complete
    await assert_nothing_kept(proxy)


@pytest_twisted.ensureDeferred
async def test_small_file_with_a_wrong_digest_is_an_error_and_no_broken_connection(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document(1000))
    proxy.expect("file", b"another")
    fetched = await fetch(proxy.server.url, "file")
    assert (fetched.status, fetched.complete) == (502, True)
    assert b"sha256 digest" in fetched.body
    await assert_nothing_kept(proxy)


@pytest_twisted.ensureDeferred
async def test_body_that_nothing_confirms_is_not_kept(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document(1000))
    origin.misbehave("/file", Fault(unframed=True), repeat=True)
    assert (await fetch(proxy.server.url, "file")).status == 502
    await assert_nothing_kept(proxy)


@pytest_twisted.ensureDeferred
async def test_full_disk_is_an_error_and_keeps_nothing(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    proxy.services.store._low_water = 1 << 60
    assert (await fetch(proxy.server.url, "file")).status == 507
    await assert_nothing_kept(proxy)


@pytest_twisted.ensureDeferred
async def test_file_that_cannot_be_recorded_still_reaches_its_readers(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    proxy.record_error = StorageFull("main")
    assert (await fetch(proxy.server.url, "file")).body == body_of(SIZE)
    await assert_nothing_kept(proxy)


# Resuming


@pytest.mark.parametrize("reset", [False, True])
@pytest_twisted.ensureDeferred
async def test_broken_connections_are_resumed(proxy: Any, origin: Any, reset: bool) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", *(Fault(cut_at=cut, reset=reset) for cut in (MIB, 10, 600 * KIB)))
    fetched = await fetch_all(proxy, "file", 5)
    assert [each.body == body_of(SIZE) for each in fetched] == [True] * 5
    first, *others = origin.requests()
    assert "range" not in first.fields
    assert len(others) == 3
    for other in others:
        assert other.fields["range"].startswith("bytes=")
        assert other.fields["if-range"] == etag_of(body_of(SIZE))
    await assert_stored(proxy, body_of(SIZE))


@pytest_twisted.ensureDeferred
async def test_connection_that_breaks_again_and_again_aborts_the_clients(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(cut_at=500 * KIB), repeat=True)
    proxy.expect("file", body_of(SIZE))
    fetched = await fetch_all(proxy, "file", 3)
    assert [each.complete for each in fetched] == [False] * 3
    assert origin.count() == 4
    await assert_nothing_kept(proxy)


@pytest.mark.parametrize("announced", [False, True])
@pytest_twisted.ensureDeferred
async def test_upstream_without_ranges_sends_all_again_and_readers_go_on(
    proxy: Any, origin: Any, announced: bool
) -> None:
    origin.serve("/file", Answer(body=body_of(SIZE), ranges=False, fields={} if announced else {"ETag": '"same"'}))
    origin.misbehave("/file", Fault(cut_at=MIB))
    if announced:
        proxy.expect("file", body_of(SIZE))
    assert (await fetch(proxy.server.url, "file")).body == body_of(SIZE)
    assert origin.count() == 2
    await assert_stored(proxy, body_of(SIZE))


@pytest.mark.parametrize("step", [with_etag('"other"'), without_ranges, gzipped])
@pytest_twisted.ensureDeferred
async def test_file_that_changed_is_not_continued(proxy: Any, origin: Any, step: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=MIB, cut_at=MIB), step)
    client = await start_reading(proxy, MIB)
    origin.release("/file")
    assert not (await in_thread(client.read)).complete
    await assert_nothing_kept(proxy)


@pytest_twisted.ensureDeferred
async def test_range_of_another_file_is_refused(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    wrong = Answer(206, b"x" * (SIZE - MIB), {"Content-Range": f"bytes {MIB}-{SIZE - 1}/{SIZE}", "ETag": '"other"'})
    origin.misbehave("/file", Fault(pause_at=MIB, cut_at=MIB), wrong)
    client = await start_reading(proxy, MIB)
    origin.release("/file")
    assert not (await in_thread(client.read)).complete
    await assert_nothing_kept(proxy)


@pytest_twisted.ensureDeferred
async def test_file_that_nobody_has_read_of_is_fetched_again(proxy: Any, origin: Any) -> None:
    # Without a length nobody gets bytes before the end, and there is nothing to resume by.
    origin.serve("/file", Answer(body=body_of(SIZE), ranges=False))
    origin.misbehave("/file", Fault(chunked=True, cut_at=MIB), Fault(chunked=True))
    assert (await fetch(proxy.server.url, "file")).body == body_of(SIZE)
    assert ["range" in each.fields for each in origin.requests()] == [False, False]
    await assert_stored(proxy, body_of(SIZE))


@pytest_twisted.ensureDeferred
async def test_stalled_upstream_is_given_up_and_resumed(make_proxy: Any, origin: Any) -> None:
    proxy = make_proxy(client={"idle_timeout_s": 0.2})
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=MIB))
    assert (await fetch(proxy.server.url, "file")).body == body_of(SIZE)
    assert [each.fields.get("range") for each in origin.requests()] == [None, f"bytes={MIB}-"]


# Readers that leave


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
async def test_transfer_goes_on_for_the_others(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=MIB))
    leaving = await start_reading(proxy, 1000)
    staying = await start_reading(proxy, 1000)
    leaving.socket.close()
    origin.release("/file")
    assert (await in_thread(staying.read)).body == body_of(SIZE)
    assert origin.count() == 1


@pytest_twisted.ensureDeferred
async def test_transfer_that_is_mostly_there_is_finished_for_nobody(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=2 * MIB))
    client = await start_reading(proxy, 2 * MIB)
    client.socket.close()
    await until(lambda: not proxy.server.site.channels)
    origin.release("/file")
    await assert_stored(proxy, body_of(SIZE))
    assert origin.count() == 1


@pytest_twisted.ensureDeferred
async def test_head_request_leaves_no_reader_behind(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=MIB))
    head = await fetch(proxy.server.url, "file", "HEAD")
    assert head.fields["content-length"] == str(SIZE)
    await in_thread(origin.wait_for, lambda: origin.exchanges[0].ended == "left")
    await assert_nothing_kept(proxy)


# The process


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
async def test_stop_aborts_the_readers_and_leaves_nothing(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=MIB))
    client = await start_reading(proxy, 1000)
    await proxy.transfers.stop()
    assert len(proxy.transfers) == 0
    assert not (await in_thread(client.read)).complete
    await assert_nothing_kept(proxy)
