"""Large response bodies in memory, sent through real sockets."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred

from pkgrepo.http.answering.memory_transfer import BYTES_PER_TURN, PIECE
from pkgrepo.http.answering.prepared import PreparedResponse
from pkgrepo.http.connection import COPIED
from pkgrepo.http.limits import HttpLimits
from pkgrepo.http.repeats import Repeatable
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response, text_response
from tests.support.certificates import make_certificate
from tests.support.memory_connection import parse_answers
from tests.support.socket_server import Server, blocking, connect, read_to_end, turn
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

BODY = os.urandom(1_000_003) * 24  # larger than the kernel's socket buffers
SIZES = [COPIED, COPIED + 1, PIECE, PIECE + 1, 3 * BYTES_PER_TURN + 1]
GET = b"GET / HTTP/1.1\r\nHost: a\r\n%s\r\n"
CLOSE = b"Connection: close\r\n"
HELD = 512 * 1024  # bytes; the most that one connection may buffer


class Pages:
    """Every address is the large body; ``gone`` fires when a client leaves before its end."""

    def __init__(self) -> None:
        self.gone: Deferred[None] = Deferred()
        self.answer = Response(body=BODY, ranges=True)

    async def __call__(self, request: Request) -> Response:
        request.notifyFinish().addErrback(lambda _: self.gone.callback(None))
        return text_response("end") if request.path == b"/end" else self.answer


@pytest_twisted.async_yield_fixture(params=["routed", "early", "tls"])
async def server(request: Any, tmp_path: Path) -> AsyncIterator[Server]:
    pages = Pages()
    prepared = PreparedResponse(pages.answer)
    early = (lambda asked: prepared if asked.path == b"/" else None) if request.param == "early" else None
    running = Server(pages, make_certificate(tmp_path) if request.param == "tls" else None, find_prepared=early)
    yield running
    await running.stop()


async def test_large_bodies_arrive_complete_on_one_connection(server: Server) -> None:
    def exchange() -> bytes:
        with connect(server) as client:
            part = b"Range: bytes=5-20000004\r\n"
            client.sendall(GET % b"" + GET % part + b"GET /end HTTP/1.1\r\nHost: a\r\n" + CLOSE + b"\r\n")
            return read_to_end(client)

    whole, part, end = parse_answers(await blocking(exchange))
    assert whole.body == BODY
    assert part.body == BODY[5:20_000_005]
    assert end.body == b"end"


@pytest.mark.parametrize("repeated", [False, True])
async def test_bodies_of_all_sizes_arrive_in_order(repeated: bool) -> None:
    answers = {b"/%d" % size: PreparedResponse(Response(body=BODY[size : 2 * size])) for size in SIZES}
    asked = []

    def early(request: Request) -> PreparedResponse:
        asked.append(request.path)
        request.repeatable = Repeatable
        return answers[request.path]

    async def refuse(_: Request) -> Response:
        raise AssertionError

    server = Server(refuse, find_prepared=early)
    if repeated:
        server.site.repeats.generation = lambda: 1
    sizes = SIZES * 4
    requests = [b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % size for size in sizes]
    requests[-1] = requests[-1][:-2] + CLOSE + b"\r\n"

    def exchange() -> bytes:
        with connect(server) as client:
            client.sendall(b"".join(requests))
            time.sleep(0.2)  # the kernel's buffers are full before the first byte is read
            return read_to_end(client)

    found = [answer.body for answer in parse_answers(await blocking(exchange))]
    assert [len(body) for body in found] == sizes
    assert found == [BODY[size : 2 * size] for size in sizes]
    assert (len(asked) < len(sizes)) is repeated
    await server.stop()


async def test_a_slow_reader_causes_no_copy_of_the_body(server: Server) -> None:
    client = await blocking(connect, server)
    await blocking(client.sendall, GET % b"")
    while not server.site.channels:
        await turn()
    (channel,) = server.site.channels
    held = []
    while not (channel.blocked or channel.transfer is not None) or len(held) < 100:
        held.append(channel.unsent())
        await turn()
    assert max(held) <= HELD
    assert (max(held) > 0) is not channel.direct
    assert server.site.active == 1
    client.close()
    while server.site.channels:
        await turn()
    assert server.site.active == 0


async def test_a_client_that_reads_nothing_is_disconnected() -> None:
    pages = Pages()
    server = Server(pages, limits=HttpLimits(write_stall_s=1))
    with socket.create_connection(server.address, timeout=TIMEOUT_S) as client:
        client.sendall(GET % b"")
        await pages.gone
        assert not server.site.channels
        received = await blocking(drain, client)
    assert 0 < received < len(BODY)
    await server.stop()


def drain(client: socket.socket) -> int:
    """Read until the connection is closed or reset, and return the number of bytes."""
    count = 0
    with suppress(ConnectionResetError):
        while data := client.recv(1024 * 1024):
            count += len(data)
    return count
