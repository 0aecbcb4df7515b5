"""TLS to upstreams, and proxies between us and them."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.logger import LogLevel, globalLogPublisher

from pkgrepo.errors import Invalid, UpstreamFailed, UpstreamForbiddenAddress, UpstreamTimeout
from tests.support.certificates import write_certificate
from tests.support.inprocess_server import reactor, until
from tests.support.upstreams.messages import Answer

pytestmark = pytest.mark.server

HOST = "mirror.example"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


async def fetch(upstream: Any, url: str = "x") -> bytes:
    async with upstream.open("GET", url) as response:
        body: bytes = await response.read()
        return body


@pytest.fixture
def certificate(tmp_path: Any) -> Any:
    return write_certificate(tmp_path, HOST)


async def test_certificate_of_a_private_authority(scene: Any, certificate: Any) -> None:
    server = scene.serve({"/x": b"x"}, certificate=certificate)
    assert await fetch(scene.upstream(server.url, ca_file=certificate[0])) == b"x"
    assert await fetch(scene.upstream(server.url, route={"ca_file": certificate[0]})) == b"x"
    scene.names(**{HOST: "127.0.0.1"})
    named = scene.upstream(f"https://{HOST}:{server.port}", ca_file=certificate[0])
    for _ in range(2):
        assert await fetch(named) == b"x"
    assert server.connections == 3


async def test_idle_connection_that_the_upstream_has_ended_is_forgotten(scene: Any, certificate: Any) -> None:
    server = scene.serve({"/x": b"x"}, certificate=certificate)
    upstream = scene.upstream(server.url, ca_file=certificate[0])
    before = {*reactor.getReaders()}
    await fetch(upstream)
    server.drop_idle()
    await until(lambda: {*reactor.getReaders()} <= before)
    assert not [call for call in reactor.getDelayedCalls() if "_expire" in repr(call.func)]
    assert await fetch(upstream) == b"x"


async def test_connection_that_is_idle_for_long_is_closed(scene: Any) -> None:
    server = scene.serve({"/x": b"x"})
    upstream = scene.upstream(server.url)
    before = {*reactor.getReaders()}
    await fetch(upstream)
    (expiry,) = [call for call in reactor.getDelayedCalls() if "_expire" in repr(call.func)]
    upstream._client._connections._idle[("http", "127.0.0.1", server.port)][0].idle_since -= 3600
    expiry.reset(0)
    await until(lambda: not expiry.active() and {*reactor.getReaders()} <= before)
    assert await fetch(upstream) == b"x"
    assert server.connections == 2


async def test_certificate_that_nobody_vouches_for(scene: Any, certificate: Any) -> None:
    server = scene.serve({"/x": b"x"}, certificate=certificate)
    with pytest.raises(UpstreamFailed, match=r"not trusted; proxy\.ca_file"):
        await fetch(scene.upstream(server.url))
    assert server.requests() == []


async def test_certificate_of_another_host(scene: Any, certificate: Any) -> None:
    server = scene.serve({"/x": b"x"}, certificate=certificate)
    scene.names(**{"other.example": "127.0.0.1"})
    events: list[Any] = []
    globalLogPublisher.addObserver(events.append)
    try:
        with pytest.raises(UpstreamFailed, match="its certificate is for another host"):
            await fetch(scene.upstream(f"https://other.example:{server.port}", ca_file=certificate[0]))
    finally:
        globalLogPublisher.removeObserver(events.append)
    assert [each["log_level"] for each in events] == [LogLevel.warn], "no traceback of Twisted beside it"
    assert server.requests() == []


@pytest.mark.parametrize("host", [HOST, "127.0.0.1"])
async def test_certificate_without_alternative_names(scene: Any, tmp_path: Any, host: str) -> None:
    certificate = write_certificate(tmp_path, HOST, common_name_only=True)
    server = scene.serve({"/x": b"x"}, certificate=certificate)
    scene.names(**{HOST: "127.0.0.1"})
    with pytest.raises(UpstreamFailed, match="its certificate is for another host"):
        await fetch(scene.upstream(f"https://{host}:{server.port}", ca_file=certificate[0]))
    assert server.requests() == []


async def test_upstream_that_does_not_speak_tls(scene: Any) -> None:
    server = scene.serve_raw(lambda connection, _head: None)
    upstream = scene.upstream(server.url.replace("http:", "https:"), idle_timeout_s=0.05, connect_timeout_s=0.05)
    with pytest.raises(UpstreamTimeout):
        await fetch(upstream)


async def test_file_without_certificates_is_refused(scene: Any, tmp_path: Any) -> None:
    (tmp_path / "key.pem").write_text("-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n")
    for path in (tmp_path / "absent", tmp_path / "key.pem"):
        with pytest.raises(UpstreamFailed, match="certificates"):
            scene.upstream("https://127.0.0.1", route={"ca_file": path})
        with pytest.raises(Invalid, match="certificates"):
            scene.upstreams(ca_file=path).check_settings()


async def test_http_through_a_proxy(scene: Any) -> None:
    proxy = scene.serve({"/x": b"from the proxy"})
    proxies = {"http": proxy.url.replace("//", "//me:p%40ss@")}
    upstream = scene.upstream(f"http://{HOST}/", proxies=proxies, route={"authorization": "Bearer secret"})
    for _ in range(2):
        assert await fetch(upstream) == b"from the proxy"
    assert proxy.connections == 1
    (request, _) = proxy.requests()
    assert request.target == f"http://{HOST}/x"
    assert request.fields["host"] == HOST
    assert request.fields["proxy-authorization"] == "Basic bWU6cEBzcw=="
    assert request.fields["authorization"] == "Bearer secret"


async def test_https_through_a_tunnel(scene: Any, certificate: Any) -> None:
    server = scene.serve({"/x": b"x" * 100_000}, certificate=certificate)
    proxy = scene.serve_raw(lambda connection, _head: connection.relay(server.port, ESTABLISHED))
    proxies = {"https": proxy.url.replace("//", "//me:p%40ss@")}
    upstream = scene.upstream(f"https://{HOST}:4443", proxies=proxies, ca_file=certificate[0])
    for _ in range(2):
        assert await fetch(upstream) == b"x" * 100_000
    assert server.connections == 1
    assert proxy.heads == [
        f"CONNECT {HOST}:4443 HTTP/1.1\r\nHost: {HOST}:4443\r\nProxy-Authorization: Basic bWU6cEBzcw=="
    ]
    assert [request.target for request in server.requests()] == ["/x", "/x"]
    assert "proxy-authorization" not in server.requests()[0].fields


async def test_tunnel_leads_to_the_host_of_the_certificate(scene: Any, certificate: Any) -> None:
    server = scene.serve({"/x": b"x"}, certificate=certificate)
    proxy = scene.serve_raw(lambda connection, _head: connection.relay(server.port, ESTABLISHED))
    upstream = scene.upstream("https://other.example", proxies={"https": proxy.url}, ca_file=certificate[0])
    with pytest.raises(UpstreamFailed, match="its certificate is for another host"):
        await fetch(upstream)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic\r\n\r\n", "the proxy answers 407 to CONNECT"),
        (b"HTTP/1.0 403 No\r\n\r\nand a body", "the proxy answers 403 to CONNECT"),
        (b"SSH-2.0\r\n\r\n", "the proxy does not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 10_000, "the proxy does not answer in HTTP"),
    ],
)
async def test_proxy_that_makes_no_tunnel(scene: Any, answer: bytes, sentence: str) -> None:
    proxy = scene.serve_raw(lambda connection, _head: connection.write(answer))
    with pytest.raises(UpstreamFailed, match=sentence):
        await fetch(scene.upstream(f"https://{HOST}", proxies={"https": proxy.url}))
    await until(lambda: not proxy.open)


async def test_proxy_that_does_not_answer(scene: Any) -> None:
    proxy = scene.serve_raw(lambda connection, _head: None)
    upstream = scene.upstream(f"https://{HOST}", proxies={"https": proxy.url}, connect_timeout_s=0.05)
    with pytest.raises(UpstreamTimeout, match=r"proxy\.connect_timeout"):
        await fetch(upstream)
    await until(lambda: not proxy.open)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", ["10.0.0.1", "0x0a000001", "[::ffff:10.0.0.1]", "169.254.169.254", "a.localhost"])
async def test_proxy_is_not_asked_for_private_addresses(scene: Any, scheme: str, host: str) -> None:
    proxy = scene.serve({"/x": b"x"})
    with pytest.raises(UpstreamForbiddenAddress):
        await fetch(scene.upstream(f"{scheme}://{host}", proxies={scheme: proxy.url}, allow_private=()))
    assert proxy.connections == 0


async def test_hosts_that_are_reached_without_the_proxy(scene: Any) -> None:
    proxy, server = scene.serve(), scene.serve({"/x": Answer(body=b"direct")})
    scene.names(**{HOST: "127.0.0.1"})
    proxies = {"http": proxy.url, "no": "other.example, .example"}
    for host in ("127.0.0.1", HOST):
        assert await fetch(scene.upstream(f"http://{host}:{server.port}", proxies=proxies)) == b"direct"
    assert proxy.connections == 0
