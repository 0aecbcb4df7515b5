"""HTTPS: TLS versions, and reloading of certificates."""

from __future__ import annotations

import os
import socket
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from twisted.internet.task import Clock

from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response, text_response
from pkgrepo.http.tls import BadCertificate, ServerCertificate
from tests.support.certificates import make_certificate, write_certificate
from tests.support.memory_connection import parse_answers
from tests.support.socket_server import Server, blocking, read_to_end
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

CLOSING = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


async def where(request: Request) -> Response:
    return text_response(f"{request.base_url} {(await request.body.read_all(10_000_000)).count(b'x')}")


def connect(server: Server, alpn: tuple[str, ...] = ("h2", "http/1.1"), **versions: ssl.TLSVersion) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(alpn)
    for name, version in versions.items():
        setattr(context, name, version)
    return context.wrap_socket(socket.create_connection(server.address, timeout=TIMEOUT_S))


def name_of(server: Server) -> str:
    with connect(server) as client:
        der = client.getpeercert(binary_form=True)
    assert der is not None
    return str(x509.load_der_x509_certificate(der).subject.rfc4514_string())


async def test_requests_and_uploads_work_over_tls(tmp_path: Path) -> None:
    server = Server(where, make_certificate(tmp_path))

    def exchange() -> tuple[bytes, str | None]:
        with connect(server) as client:
            client.sendall(
                b"PUT / HTTP/1.1\r\nHost: a:1\r\nContent-Length: 3000000\r\n\r\n" + b"x" * 3_000_000 + CLOSING
            )
            return read_to_end(client), client.version()

    received, version = await blocking(exchange)
    assert [answer.body for answer in parse_answers(received)] == [b"https://a:1 3000000", b"https://a 0"]
    assert version == "TLSv1.3"
    await server.stop()


@pytest.mark.parametrize("alpn", [(), ("http/1.0",), ("h2", "acme-tls/1"), ("h2", "http/1.1")])
async def test_clients_are_served_with_http_1_1_whatever_they_offer(tmp_path: Path, alpn: tuple[str, ...]) -> None:
    server = Server(where, make_certificate(tmp_path))

    def exchange() -> tuple[bytes, str | None]:
        with connect(server, alpn) as client:
            client.sendall(CLOSING)
            return read_to_end(client), client.selected_alpn_protocol()

    received, protocol = await blocking(exchange)
    assert [answer.body for answer in parse_answers(received)] == [b"https://a 0"]
    assert protocol is None
    await server.stop()


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1:DeprecationWarning")  # the old versions are meant
async def test_old_versions_of_tls_are_refused(tmp_path: Path) -> None:
    server = Server(where, make_certificate(tmp_path))

    def try_old() -> None:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            connect(server, minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)

    await blocking(try_old)
    await server.stop()


async def test_new_connections_use_a_reloaded_certificate(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    server = Server(where, certificate)
    with await blocking(connect, server) as old:
        write_certificate(tmp_path, "renewed")
        assert await blocking(name_of, server) == "CN=localhost"
        certificate.reload()
        assert await blocking(name_of, server) == "CN=renewed"
        old.sendall(CLOSING)
        assert b"200 OK" in await blocking(read_to_end, old)
    await server.stop()


async def test_changed_files_are_noticed(tmp_path: Path) -> None:
    certificate, clock = make_certificate(tmp_path), Clock()
    server = Server(where, certificate)
    certificate.watch(clock)
    _, key_path = write_certificate(tmp_path, "renewed")
    good_key = key_path.read_bytes()
    key_path.write_text("half written")
    clock.advance(10)
    assert await blocking(name_of, server) == "CN=localhost"
    key_path.write_bytes(good_key)
    os.utime(key_path, (1, 1))
    clock.advance(10)
    assert await blocking(name_of, server) == "CN=renewed"
    certificate.unwatch()
    assert clock.getDelayedCalls() == []
    await server.stop()


def test_unusable_certificate_files_are_named_in_the_error(tmp_path: Path) -> None:
    certificate_path, key_path = (str(path) for path in write_certificate(tmp_path))
    with pytest.raises(BadCertificate, match=r"nowhere\.crt"):
        ServerCertificate(str(tmp_path / "nowhere.crt"), key_path)
    with pytest.raises(BadCertificate, match=r"server\.crt"):
        ServerCertificate(certificate_path, certificate_path)
    other = tmp_path / "other"
    other.mkdir()
    _, other_key = write_certificate(other)
    with pytest.raises(BadCertificate, match="is not the key of"):
        ServerCertificate(certificate_path, str(other_key))
