"""Files that are sent while their bytes still arrive: over plain TCP and TLS, whole and in ranges."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred

from pkgrepo.http.limits import HttpLimits
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Content, Response
from tests.support.certificates import make_certificate
from tests.support.memory_connection import parse_answers
from tests.support.socket_server import Server, blocking, connect, descriptors_of, reactor, read_to_end, turn

pytestmark = pytest.mark.server

SIZE = 3_000_001
CLOSE = b"Connection: close\r\n"


class GrowingFile:
    """A file that the test appends to; one sender at a time waits for it."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.file = path.open("wb", buffering=0)
        self.arrived = 0
        self.closed = 0
        self.waits = 0
        self.waiting: Deferred[None] | None = None
        self.asked: Deferred[None] = Deferred()  # fires when the sender waits for bytes

    def available(self, end: int) -> int:
        return min(self.arrived, end)

    def open(self) -> int:
        return os.open(self.path, os.O_RDONLY)

    def wait(self) -> Deferred[None]:
        self.waits += 1
        waiting = self.waiting = Deferred()
        asked, self.asked = self.asked, Deferred()
        reactor.callLater(0, asked.callback, None)  # not within this call of the sender
        return waiting

    def close(self) -> None:
        self.closed += 1

    def append(self, data: bytes) -> None:
        self.file.write(data)
        self.arrived += len(data)
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            waiting.callback(None)

    def fail(self) -> None:
        assert self.waiting is not None
        self.waiting.errback(ConnectionError("the source is gone"))


class Handler:
    """Answers every request with the growing file, and ``/end`` with an empty body."""

    def __init__(self, growing: GrowingFile) -> None:
        self.growing = growing
        self.gone: Deferred[None] = Deferred()

    async def __call__(self, request: Request) -> Response:
        if request.path == b"/end":
            return Response()
        request.notifyFinish().addErrback(lambda _: self.gone.callback(None))
        return Response(body=Content(SIZE, self.growing.open, growing=self.growing), ranges=True, etag=b'"f"')


@pytest.fixture(scope="module")
def data() -> bytes:
    return os.urandom(SIZE)


@pytest.fixture
def growing(tmp_path: Path) -> GrowingFile:
    return GrowingFile(tmp_path / "growing")


@pytest.fixture
def handler(growing: GrowingFile) -> Handler:
    return Handler(growing)


@pytest_twisted.async_yield_fixture(params=["sendfile", "tls"])
async def server(request: pytest.FixtureRequest, handler: Handler, tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(handler, make_certificate(tmp_path) if request.param == "tls" else None)
    yield server
    await server.stop()


def request(path: bytes = b"/file", fields: bytes = b"", method: bytes = b"GET") -> bytes:
    return b"%s %s HTTP/1.1\r\nHost: a\r\n%s\r\n" % (method, path, fields)


def start_exchange(server: Server, data: bytes) -> Deferred[bytes]:
    """Send ``data`` in a thread; the result is everything up to the end of the connection, however that comes."""

    def exchange() -> bytes:
        pieces: list[bytes] = []
        with connect(server) as client:
            client.sendall(data)
            try:
                while piece := client.recv(65536):
                    pieces.append(piece)
            except (ConnectionError, ssl.SSLError):
                pass
        return b"".join(pieces)

    return Deferred.fromCoroutine(blocking(exchange))


async def deliver(growing: GrowingFile, data: bytes, pieces: int) -> None:
    """Append ``data`` in pieces, each after the sender has sent all that there was."""
    step = -(-len(data) // pieces)
    for start in range(0, len(data), step):
        while growing.waiting is None:
            await growing.asked
        growing.append(data[start : start + step])


async def seconds_of_checks(server: Server, count: int) -> None:
    """Have the server check the timeouts of its connections as if ``count`` seconds had passed."""
    now = server.site.seconds()
    for second in range(count):
        await turn()
        for channel in list(server.site.channels):
            channel.check_timeouts(now + second, 1)


@pytest.mark.parametrize("pieces", [1, 7, 300])
async def test_body_arrives_whole_and_the_connection_is_kept(
    server: Server, growing: GrowingFile, data: bytes, pieces: int
) -> None:
    received = start_exchange(server, request() + request(b"/end", CLOSE))
    await deliver(growing, data, pieces)
    first, end = parse_answers(await received)
    assert first.body == data
    assert first.headers["content-length"] == str(SIZE)
    assert end.status == 200
    assert (growing.closed, descriptors_of(growing.path)) == (1, 1)


async def test_bytes_that_are_there_are_sent_before_the_others(
    server: Server, growing: GrowingFile, data: bytes
) -> None:
    growing.append(data[:1000])

    def read_first() -> tuple[socket.socket, bytes]:
        client = connect(server)
        client.sendall(request(fields=CLOSE))
        first = b""
        while len(first.partition(b"\r\n\r\n")[2]) < 1000:
            first += client.recv(65536)
        return client, first

    client, first = await blocking(read_first)
    with client:
        rest: Deferred[bytes] = Deferred.fromCoroutine(blocking(read_to_end, client))
        await deliver(growing, data[1000:], 3)
        (answer,) = parse_answers(first + await rest)
    assert answer.body == data


async def test_waiting_sender_is_asked_nothing_until_there_is_more(
    server: Server, growing: GrowingFile, data: bytes
) -> None:
    received = start_exchange(server, request(fields=CLOSE))
    await growing.asked
    for _ in range(20):
        await turn()
    assert growing.waits == 1
    (channel,) = server.site.channels
    assert channel.socket not in reactor.getWriters()
    await deliver(growing, data, 1)
    assert parse_answers(await received)[0].body == data


async def test_client_that_waits_for_a_slow_source_is_not_timed_out(
    server: Server, growing: GrowingFile, data: bytes
) -> None:
    growing.append(data[:5000])
    received = start_exchange(server, request(fields=CLOSE))
    await growing.asked
    await seconds_of_checks(server, 200)  # longer than each of the time limits
    await deliver(growing, data[5000:], 1)
    assert parse_answers(await received)[0].body == data


async def test_client_that_does_not_read_is_timed_out_while_the_body_grows(tmp_path: Path, data: bytes) -> None:
    growing = GrowingFile(tmp_path / "growing")
    handler = Handler(growing)
    server = Server(handler, limits=HttpLimits(write_stall_s=1))
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(server.address)
        client.sendall(request())
        await growing.asked
        os.ftruncate(growing.file.fileno(), SIZE)
        growing.arrived = SIZE - 1
        growing.append(b"")
        (channel,) = server.site.channels
        channel.socket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        await handler.gone
    assert (growing.closed, descriptors_of(growing.path)) == (1, 1)
    await server.stop()


@pytest.mark.parametrize(
    ("start", "end"), [(0, 1), (0, 1_000_000), (1_500_000, 2_500_000), (SIZE - 1, SIZE), (2_000_000, SIZE)]
)
async def test_range_is_sent_when_its_bytes_are_there(
    server: Server, growing: GrowingFile, data: bytes, start: int, end: int
) -> None:
    fields = b"Range: bytes=%d-%d\r\n" % (start, end - 1)
    received = start_exchange(server, request(fields=fields) + request(b"/end", CLOSE))
    await growing.asked
    growing.append(data[: start + 1])
    if end > start + 1:
        await deliver(growing, data[start + 1 : end], 2)
    answer, _ = parse_answers(await received)
    assert (answer.status, answer.headers["content-range"]) == (206, f"bytes {start}-{end - 1}/{SIZE}")
    assert answer.body == data[start:end]
    assert growing.closed == 1


async def test_head_and_current_copies_wait_for_no_bytes(server: Server, growing: GrowingFile) -> None:
    wanted = request(fields=b'If-None-Match: "f"\r\n') + request(fields=CLOSE, method=b"HEAD")
    current, head = parse_answers(await start_exchange(server, wanted), heads=1)
    assert (current.status, head.status, head.headers["content-length"]) == (304, 200, str(SIZE))
    assert (growing.waits, descriptors_of(growing.path)) == (0, 1)


@pytest.mark.parametrize("there", [0, 1, 1_000_000, SIZE - 1])
async def test_failed_body_never_looks_complete(server: Server, growing: GrowingFile, data: bytes, there: int) -> None:
    growing.append(data[:there])
    received = start_exchange(server, request())
    await growing.asked
    growing.fail()
    _, _, body = (await received).partition(b"\r\n\r\n")
    assert len(body) <= there
    while descriptors_of(growing.path) > 1:
        await turn()
    assert growing.closed == 1


async def test_client_that_leaves_while_it_waits_is_forgotten(
    server: Server, handler: Handler, growing: GrowingFile
) -> None:
    cancelled: list[object] = []

    def wait() -> Deferred[None]:
        reactor.callLater(0, growing.asked.callback, None)
        return Deferred(cancelled.append)

    growing.wait = wait  # type: ignore[method-assign]

    def ask() -> socket.socket:
        client = connect(server)
        client.sendall(request())
        return client

    client = await blocking(ask)
    await growing.asked
    client.close()
    await handler.gone
    assert (len(cancelled), growing.closed, descriptors_of(growing.path)) == (1, 1, 1)


async def test_body_that_has_grown_whole_is_sent_like_a_file(server: Server, growing: GrowingFile, data: bytes) -> None:
    growing.append(data)
    received = await start_exchange(server, request(fields=CLOSE))
    assert parse_answers(received)[0].body == data
    assert (growing.waits, growing.closed) == (0, 1)
