"""Files of upstreams that are wrong, or break off."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.proxy_faults import WRONG_FILES
from tests.support.upstreams import faults
from tests.support.upstreams.messages import Fault

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("fault", WRONG_FILES)
def test_a_wrong_file_is_never_complete_and_not_kept(at_once, kind, fault):
    def case(make, fault):
        proxied = make()
        if fault == "too long" and not proxied.announced:
            return  # readers of zips pass over what is behind their end
        assert proxied.is_document(proxied.get_document())
        proxied.upstream.misbehave(proxied.upstream_file, WRONG_FILES[fault], repeat=True)
        for _ in range(2):
            reply = proxied.get_file()
            assert reply is None or reply.status in (403, 424, 429, 502, 503, 504), reply.status
        proxied.upstream.behave()
        proxied.await_file()
        proxied.upstream.stop()
        assert proxied.is_file(proxied.get_file())

    at_once(case)


def test_a_file_that_breaks_off_once_is_complete(make):
    proxied = make(size=1_000_000)
    half = len(proxied.data) // 2
    proxied.upstream.misbehave(proxied.upstream_file, Fault(cut_at=half))
    assert proxied.is_file(proxied.get_file())
    resumed = proxied.upstream.requests(proxied.upstream_file)[1]
    assert resumed.fields["range"] == f"bytes={half}-"
    assert proxied.upstream.sent(proxied.upstream_file) == len(proxied.data)


def test_a_file_that_breaks_off_again_and_again_is_complete_or_cut(make):
    proxied = make(size=1_000_000)
    proxied.upstream.misbehave(proxied.upstream_file, Fault(cut_at=300_000), repeat=True)
    reply = proxied.get_file()
    assert reply is None or reply.status in (502, 503, 504) or proxied.is_file(reply)
    proxied.upstream.behave()
    proxied.await_file()


@pytest.mark.parametrize("second", [faults.without_ranges, faults.with_etag('"other"'), faults.corrupted])
def test_a_file_that_breaks_off_and_changes_is_never_wrong(make, second):
    proxied = make(size=1_000_000)
    half = Fault(cut_at=len(proxied.data) // 2)
    proxied.upstream.misbehave(proxied.upstream_file, half, second)
    reply = proxied.get_file()
    assert reply is None or reply.status in (502, 503, 504) or proxied.is_file(reply)
    proxied.await_file()


def test_a_file_that_comes_gzipped_unasked_is_right_or_refused(make):
    proxied = make()
    proxied.upstream.misbehave(proxied.upstream_file, faults.gzipped, repeat=True)
    reply = proxied.get_file()
    assert reply is None or reply.status == 502 or proxied.is_file(reply)
    proxied.upstream.behave()
    proxied.await_file()


def test_many_clients_fetch_a_file_once(make):
    proxied = make(size=1_000_000)
    proxied.upstream.misbehave(proxied.upstream_file, Fault(pause_at=1000))
    with ThreadPoolExecutor(30) as pool:
        replies = [pool.submit(proxied.get_file) for _ in range(30)]
        proxied.upstream.wait_paused(proxied.upstream_file)
        proxied.upstream.release(proxied.upstream_file)
        assert all(proxied.is_file(each.result()) for each in replies)
    assert proxied.upstream.count(proxied.upstream_file) == 1


def test_many_clients_of_a_file_that_breaks_off_get_no_wrong_bytes(make):
    proxied = make(size=1_000_000)
    proxied.upstream.misbehave(proxied.upstream_file, WRONG_FILES["reset"], repeat=True)
    with ThreadPoolExecutor(30) as pool:
        for reply in pool.map(lambda _: proxied.get_file(), range(30)):
            assert reply is None or reply.status in (502, 503, 504)
    proxied.upstream.behave()
    proxied.await_file()
