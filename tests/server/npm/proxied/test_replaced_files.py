"""Tarballs that a registry replaces under their names: what is served fits the packument that clients have."""

from __future__ import annotations

import hashlib

import pytest

from tests.support.proxied import kept

pytestmark = pytest.mark.server


@pytest.mark.parametrize("dist", [{}, {"integrity": None}])
def test_replaced_tarball_is_fetched_again(at, upstream, dist):
    short, name = at("short"), f"replaced-{len(dist)}"
    path = f"/{name}/-/{name}-1.0.0.tgz"
    old = upstream.add(name, dist=dist)
    assert kept(short, path).body == old
    new = upstream.add(name, dist=dist, pad=1000)
    shasum = short.get(f"/{name}").json["versions"]["1.0.0"]["dist"]["shasum"]
    assert kept(short, path).body == new
    assert shasum == hashlib.sha1(new, usedforsecurity=False).hexdigest()
    assert upstream.count(path) == 2


def test_tarball_with_a_digest_that_was_not_computed_is_fetched_once_more(at, upstream):
    """The packument had an old digest first, and has another algorithm now."""
    short = at("short")
    path = "/stronger/-/stronger-1.0.0.tgz"
    data = upstream.add("stronger", dist={"integrity": None})
    kept(short, path)
    upstream.add("stronger", dist={"shasum": None})
    assert short.get("/stronger").status == 200
    for _ in range(2):
        assert kept(short, path).body == data
    assert upstream.count(path) == 2
