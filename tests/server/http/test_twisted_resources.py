"""twisted.web's own resources and endpoints work with this channel and site."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from twisted.web.static import File

from pkgrepo.http.request import Request
from pkgrepo.http.responses import Content, Response, text_response
from pkgrepo.http.site import make_site
from tests.support.memory_connection import HandlerResource, parse_answers
from tests.support.socket_server import Server, blocking, reactor, read_to_end, talk, turn
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server


def get(path: str, fields: str = "Connection: close\r\n") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode()


async def anything(request: Request) -> Response:
    return text_response(request.path.decode())


async def test_folder_of_static_files_is_served(tmp_path: Path) -> None:
    data = os.urandom(1_000_000)
    (tmp_path / "data.bin").write_bytes(data)
    server = Server(anything)
    server.site.resource = File(str(tmp_path))
    received = await blocking(
        talk, server.address, get("/data.bin", "") + get("/data.bin", "Range: bytes=5-9\r\n") + get("/x")
    )
    whole, part, _missing = parse_answers(received)
    assert whole.body == data
    assert (part.status, part.body) == (206, data[5:10])
    await server.stop()


async def test_site_listens_on_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1_000_000)

    async def handler(request: Request) -> Response:
        if request.path == b"/file":
            return Response(body=Content(1_000_000, lambda: os.open(path, os.O_RDONLY)))
        return text_response(f"{request.client_address} {request.base_url}")

    site = make_site(HandlerResource(handler), reactor=reactor, trusted_proxies=["unix"])
    port = reactor.listenUNIX(str(tmp_path / "socket"), site)

    def exchange() -> bytes:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(TIMEOUT_S)
            client.connect(str(tmp_path / "socket"))
            client.sendall(get("/file", "") + get("/", "X-Forwarded-For: 1.2.3.4\r\nConnection: close\r\n"))
            return read_to_end(client)

    file, text = parse_answers(await blocking(exchange))
    assert file.body == b"x" * 1_000_000
    assert text.body == b"1.2.3.4 http://a"
    await port.stopListening()
    await turn()
