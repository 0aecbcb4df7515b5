"""Redirects of upstreams, and the addresses to which the client does not connect."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.errors import UpstreamFailed, UpstreamForbiddenAddress
from pkgrepo.model import UpstreamState
from tests.support.certificates import write_certificate
from tests.support.upstreams.faults import redirect

pytestmark = pytest.mark.server


async def fetch(upstream: Any, url: str = "x") -> bytes:
    async with upstream.open("GET", url) as response:
        body: bytes = await response.read()
        return body


async def test_redirect_that_leads_back_has_no_credentials(scene: Any) -> None:
    home, away = scene.serve({"/end": b"end"}), scene.serve()
    home.serve("/x", redirect(f"{away.url}/", 307))
    away.serve("/", redirect(f"{home.url}/end"))
    upstream = scene.upstream(home.url, route={"authorization": "Bearer secret"})
    assert await fetch(upstream) == b"end"
    assert ["authorization" in request.fields for request in home.requests()] == [True, False]


@pytest.mark.parametrize(
    ("location", "sentence"),
    [
        ("/x", "redirects more than 5 times"),
        ("ftp://127.0.0.1/", "does not begin with http"),
        ("file:///etc/passwd", "does not begin with http"),
        ("http://me:secret@127.0.0.1/", "has a user name"),
        ("http://127.0.0.1\\@10.0.0.1/", "has a user name"),
        ("//[fe80::1%25eth0]/", "no valid host"),
    ],
)
async def test_redirect_that_is_not_followed(scene: Any, location: str, sentence: str) -> None:
    server = scene.serve({"/x": redirect(location)})
    with pytest.raises(UpstreamFailed, match=sentence) as caught:
        await fetch(scene.upstream(server.url))
    assert "secret" not in str(caught.value)
    assert server.count() == (6 if location == "/x" else 1)


async def test_redirect_from_https_to_http_is_not_followed(scene: Any, tmp_path: Any) -> None:
    plain = scene.serve({"/": b"x"})
    certificate = write_certificate(tmp_path)
    server = scene.serve({"/x": redirect(f"{plain.url}/")}, certificate=certificate)
    with pytest.raises(UpstreamFailed, match="from https to http"):
        await fetch(scene.upstream(server.url, ca_file=certificate[0]))
    assert plain.connections == 0


@pytest.mark.parametrize(
    "location",
    [
        "http://10.0.0.1/",
        "http://0177.0.0.1:{port}/",
        "http://2130706433:{port}/",
        "http://127.1:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://[::1]:{port}/",
        "http://localhost:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "//0.0.0.0:{port}/",
    ],
)
async def test_redirect_to_a_private_address_is_refused(scene: Any, location: str) -> None:
    target, server = scene.serve(), scene.serve()
    server.serve("/x", redirect(location.format(port=target.port)))
    # The server is excepted by its name alone, so that the same address under other names is not.
    scene.names(**{"mirror.example": "127.0.0.1"})
    upstream = scene.upstream(f"http://mirror.example:{server.port}", allow_private=("mirror.example",))
    with pytest.raises(UpstreamForbiddenAddress, match="allow_private") as caught:
        await fetch(upstream)
    assert "127.0.0.1" not in str(caught.value)
    assert (server.count(), target.connections) == (1, 0)
    assert upstream.health().state is UpstreamState.CLOSED


async def test_name_that_resolves_differently_the_second_time_is_refused(scene: Any) -> None:
    server = scene.serve({"/x": b"one"})
    names = scene.names(**{"mirror.example": "127.0.0.1"})
    route = scene.route(f"http://mirror.example:{server.port}")
    upstreams = scene.upstreams(allow_private=("127.0.0.1",))
    assert await fetch(upstreams.of(1, route)) == b"one"
    names["mirror.example"] = "127.0.0.2"  # leads to this machine as well, but is not excepted
    assert await fetch(upstreams.of(1, route)) == b"one", "the connection to the checked address is still there"
    with pytest.raises(UpstreamForbiddenAddress):
        await fetch(upstreams.of(2, route))
    assert server.connections == 1


async def test_upstream_in_the_own_network_needs_an_exception(scene: Any) -> None:
    server = scene.serve({"/x": b"x"})
    with pytest.raises(UpstreamForbiddenAddress):
        await fetch(scene.upstream(server.url, allow_private=()))
    assert await fetch(scene.upstream(server.url, allow_private=("127.0.0.0/8",))) == b"x"
    assert server.connections == 1
