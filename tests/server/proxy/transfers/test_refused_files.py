"""Files of an upstream that are not what they should be, or cannot be kept."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.errors import StorageFull
from tests.support.caching_proxy import fetch
from tests.support.transfers import SIZE, assert_nothing_kept, body_of, document, fetch_all
from tests.support.upstreams.faults import HTML, failing, truncated_by
from tests.support.upstreams.messages import Answer, Fault

pytestmark = pytest.mark.server


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
async def test_answer_that_is_not_the_file_is_refused(proxy: Any, origin: Any, step: Any, status: int) -> None:
    origin.serve("/file", document())
    origin.misbehave("/file", step, repeat=True)
    proxy.sizes["file"] = SIZE
    fetched = await fetch_all(proxy, "file", 3)
    assert [each.status for each in fetched] == [status] * 3
    await assert_nothing_kept(proxy)


async def test_page_is_a_file_where_a_page_is_wanted(proxy: Any, origin: Any) -> None:
    origin.serve("/index.html", Answer(body=b"<html>", fields={"Content-Type": "text/html"}))
    assert (await fetch(proxy.server.url, "index.html")).body == b"<html>"


@pytest.mark.parametrize("size", [100, SIZE])
@pytest.mark.parametrize("fault", [Fault(), Fault(chunked=True)])
async def test_file_of_another_size_than_announced_is_refused(proxy: Any, origin: Any, size: int, fault: Fault) -> None:
    origin.serve("/file", document(size))
    origin.misbehave("/file", fault, repeat=True)
    for announced in (size - 1, size + 1):
        proxy.sizes["file"] = announced
        fetched = await fetch(proxy.server.url, "file")
        assert fetched.status == 502 or not fetched.complete
    await assert_nothing_kept(proxy)


async def test_small_file_with_a_wrong_digest_is_an_error_and_no_broken_connection(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document(1000))
    proxy.expect("file", b"another")
    fetched = await fetch(proxy.server.url, "file")
    assert (fetched.status, fetched.complete) == (502, True)
    assert b"sha256 digest" in fetched.body
    await assert_nothing_kept(proxy)


async def test_body_that_nothing_confirms_is_not_kept(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document(1000))
    origin.misbehave("/file", Fault(unframed=True), repeat=True)
    assert (await fetch(proxy.server.url, "file")).status == 502
    await assert_nothing_kept(proxy)


async def test_full_disk_is_an_error_and_keeps_nothing(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    proxy.services.store._low_water = 1 << 60
    assert (await fetch(proxy.server.url, "file")).status == 507
    await assert_nothing_kept(proxy)


async def test_file_that_cannot_be_recorded_still_reaches_its_readers(proxy: Any, origin: Any) -> None:
    origin.serve("/file", document())
    proxy.record_error = StorageFull("main")
    assert (await fetch(proxy.server.url, "file")).body == body_of(SIZE)
    await assert_nothing_kept(proxy)
