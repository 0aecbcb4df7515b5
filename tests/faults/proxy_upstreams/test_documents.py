"""Documents of upstreams that fail, or say strange things."""

from __future__ import annotations

import pytest

from tests.support.proxy_faults import ANSWERS, DENIED, UNAVAILABLE
from tests.support.upstreams import faults
from tests.support.upstreams.messages import Fault

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("fault", ANSWERS)
def test_a_document_that_does_not_come_is_an_error_of_the_gateway(at_once, kind, fault):
    def case(make, fault):
        proxied = make()
        step, statuses = ANSWERS[fault]
        proxied.upstream.misbehave(proxied.upstream_document, step, repeat=True)
        reply = proxied.get_document()
        assert reply.status in statuses, reply
        assert "127.0.0.1" not in reply.text
        proxied.upstream.behave()
        proxied.await_document()
        assert proxied.is_file(proxied.get_file())

    at_once(case)


@pytest.mark.parametrize("kind", ["npm", "python"])  # for manifests the limit is a minute
def test_a_document_that_comes_too_slowly_is_given_up(make):
    proxied = make()
    proxied.upstream.misbehave(proxied.upstream_document, Fault(rate=40), repeat=True)
    assert proxied.get_document().status == 504
    proxied.upstream.behave()
    proxied.await_document()


@pytest.mark.parametrize("fault", [each for each in ANSWERS if each != "forbidden"])
def test_a_document_in_the_cache_is_served_while_the_upstream_fails(at_once, kind, fault):
    def case(make, fault):
        proxied = make(cache_ttl=0)
        assert proxied.is_document(proxied.get_document())
        proxied.upstream.misbehave(proxied.upstream_document, ANSWERS[fault][0], repeat=True)
        for _ in range(3):
            assert proxied.is_document(proxied.get_document())

    at_once(case)


def test_a_document_in_the_cache_is_not_served_while_the_upstream_forbids_it(make):
    proxied = make(cache_ttl=0)
    assert proxied.is_document(proxied.get_document())
    proxied.upstream.misbehave(proxied.upstream_document, ANSWERS["forbidden"][0], repeat=True)
    for _ in range(3):
        reply = proxied.get_document()
        # What is refused may be one of the packages of a list, so that the others are served.
        assert proxied.is_document(reply) if proxied.of_many else reply.status in DENIED
    proxied.upstream.behave()
    assert proxied.is_document(proxied.get_document())


def test_everything_in_the_cache_is_served_while_the_upstream_is_down(make):
    proxied = make(cache_ttl=0)
    assert proxied.is_document(proxied.get_document())
    assert proxied.is_file(proxied.get_file())
    proxied.upstream.stop()
    for _ in range(3):
        assert proxied.is_document(proxied.get_document(Cache_Control="no-cache"))
        assert proxied.is_file(proxied.get_file(Cache_Control="no-cache"))
    proxied.upstream.start()
    assert proxied.is_document(proxied.get_document())


def test_an_upstream_that_is_down_is_an_error_of_the_gateway(make):
    proxied = make()
    proxied.upstream.stop()
    assert proxied.get_document().status in UNAVAILABLE
    assert proxied.get_file().status in UNAVAILABLE
    proxied.upstream.start()
    proxied.await_document()
    proxied.await_file()


def test_an_unchanged_document_is_confirmed_and_stays_the_same(make):
    proxied = make(cache_ttl=0)
    first = proxied.get_document()
    assert proxied.is_document(first)
    second = proxied.get_document()
    assert (second.body, second.headers["etag"]) == (first.body, first.headers["etag"])
    last = proxied.upstream.exchanges_of(proxied.upstream_document)[-1]
    assert last.status == 304 or last.request.method == "HEAD"
    assert proxied.get_document(If_None_Match=first.headers["etag"]).status == 304


def test_another_etag_of_the_same_document_changes_nothing(make):
    proxied = make(cache_ttl=0)
    first = proxied.get_document()
    proxied.upstream.misbehave(proxied.upstream_document, faults.with_etag('"other"'), faults.without_ranges)
    for _ in range(3):
        reply = proxied.get_document()
        assert (reply.body, reply.headers["etag"]) == (first.body, first.headers["etag"])
