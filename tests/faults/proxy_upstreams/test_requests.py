"""Many requests at once, unusual answers, and what is sent to upstreams."""

from __future__ import annotations

from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.proxied import KINDS
from tests.support.proxy_faults import CUT_PAGE, NUMBERS
from tests.support.upstreams import faults
from tests.support.upstreams.messages import Fault
from tests.support.upstreams.server import ANY, ScriptedUpstream

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("step", [faults.UNFRAMED, Fault(chunked=True), faults.DROPPED])
def test_unusual_answers_are_understood(make, step):
    proxied = make(cache_ttl=0)
    proxied.upstream.misbehave(ANY, step, repeat=True)
    for _ in range(2):
        assert proxied.is_document(proxied.get_document())
    if step is faults.UNFRAMED and not proxied.announced:  # whose end nothing tells
        assert proxied.get_file().status == 502
        proxied.upstream.behave()
    assert proxied.is_file(proxied.get_file())


@pytest.mark.parametrize("step", [faults.NO_ANSWER, CUT_PAGE, faults.failing(500), faults.STALL_BEFORE_HEAD])
def test_300_failures_at_once_leave_room_for_good_requests(make, step):
    proxied = make()
    proxied.upstream.misbehave(ANY, step, repeat=True)
    paths = [proxied.document.replace("demo", f"demo-{number}") for number in range(300)]
    with ThreadPoolExecutor(100) as pool:
        replies = pool.map(lambda path: proxied.client.get(path, Accept=proxied.accept).status, paths)
        assert {*replies} <= {502, 503, 504}
    proxied.upstream.behave()
    proxied.await_document()
    proxied.await_file()


def test_a_broken_upstream_delays_no_other_one(make):
    broken, good = make(), make()
    broken.upstream.misbehave(ANY, faults.STALL_BEFORE_HEAD, repeat=True)
    with ThreadPoolExecutor(60) as pool:
        paths = [broken.document.replace("demo", f"demo-{number}") for number in range(60)]
        waiting = [pool.submit(broken.client.get, path) for path in paths]
        broken.upstream.wait_paused()
        assert good.is_document(good.get_document())
        assert good.is_file(good.get_file())
        broken.upstream.stop()
        assert all(each.result().status in (502, 503, 504) for each in waiting)


def test_packages_that_the_upstream_does_not_have_are_not_found(make):
    proxied = make()
    for _ in range(2):
        assert proxied.client.get(proxied.missing, Accept=proxied.accept).status == 404
    assert proxied.upstream.count(proxied.upstream_document.replace("demo", "missing")) <= 1


def test_credentials_go_to_no_other_host(server, kind):
    upstream_class, proxied_class = KINDS[kind]
    secret = "Basic " + b64encode(b"reader:an-upstream-secret").decode()
    with ScriptedUpstream() as elsewhere, ScriptedUpstream() as tokens:
        if kind == "container":
            options = {"blobs": elsewhere, "tokens": tokens, "challenge": "bearer", "credentials": secret}
        else:
            options = {"files": elsewhere, "authorization": secret}
        with upstream_class(**options) as upstream:
            auth = {"username": "reader", "password": "an-upstream-secret"}
            proxied = proxied_class(upstream, server.url, f"{kind}-{next(NUMBERS)}", auth=auth)
            assert proxied.is_document(proxied.get_document())
            assert proxied.is_file(proxied.get_file())
        asked = tokens if kind == "container" else upstream
        assert {each.fields["authorization"] for each in asked.requests()} == {secret}
        assert elsewhere.count() > 0
        assert {"authorization", "cookie"}.isdisjoint(*(each.fields for each in elsewhere.requests()))
