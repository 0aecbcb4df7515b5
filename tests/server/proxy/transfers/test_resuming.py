"""Transfers whose connection to the upstream breaks or stalls."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.caching_proxy import fetch, in_thread
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
from tests.support.upstreams.faults import gzipped, with_etag, without_ranges
from tests.support.upstreams.messages import Answer, Fault, etag_of

pytestmark = pytest.mark.server


@pytest.mark.parametrize("reset", [False, True])
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


async def test_connection_that_breaks_again_and_again_aborts_the_clients(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(cut_at=500 * KIB), repeat=True)
    proxy.expect("file", body_of(SIZE))
    fetched = await fetch_all(proxy, "file", 3)
    assert [each.complete for each in fetched] == [False] * 3
    assert origin.count() == 4
    await assert_nothing_kept(proxy)


@pytest.mark.parametrize("announced", [False, True])
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
async def test_file_that_changed_is_not_continued(proxy: Any, origin: Any, step: Any) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=MIB, cut_at=MIB), step)
    client = await start_reading(proxy, MIB)
    origin.release("/file")
    assert not (await in_thread(client.read)).complete
    await assert_nothing_kept(proxy)


async def test_range_of_another_file_is_refused(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    wrong = Answer(206, b"x" * (SIZE - MIB), {"Content-Range": f"bytes {MIB}-{SIZE - 1}/{SIZE}", "ETag": '"other"'})
    origin.misbehave("/file", Fault(pause_at=MIB, cut_at=MIB), wrong)
    client = await start_reading(proxy, MIB)
    origin.release("/file")
    assert not (await in_thread(client.read)).complete
    await assert_nothing_kept(proxy)


async def test_file_that_nobody_has_read_of_is_fetched_again(proxy: Any, origin: Any) -> None:
    # Without a length nobody gets bytes before the end, and there is nothing to resume by.
    origin.serve("/file", Answer(body=body_of(SIZE), ranges=False))
    origin.misbehave("/file", Fault(chunked=True, cut_at=MIB), Fault(chunked=True))
    assert (await fetch(proxy.server.url, "file")).body == body_of(SIZE)
    assert ["range" in each.fields for each in origin.requests()] == [False, False]
    await assert_stored(proxy, body_of(SIZE))


async def test_stalled_upstream_is_given_up_and_resumed(make_proxy: Any, origin: Any) -> None:
    proxy = make_proxy(client={"idle_timeout_s": 2})  # no pause of a slow machine
    origin.serve("/file", document())
    origin.misbehave("/file", Fault(pause_at=MIB))
    assert (await fetch(proxy.server.url, "file")).body == body_of(SIZE)
    assert [each.fields.get("range") for each in origin.requests()] == [None, f"bytes={MIB}-"]
