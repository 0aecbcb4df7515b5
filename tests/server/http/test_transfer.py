"""Files sent through real sockets: complete, ranges, to slow readers, and interrupted."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer

from pkgrepo.http.answering import file_transfer
from pkgrepo.http.answering.prepared import PreparedResponse
from pkgrepo.http.limits import HttpLimits
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Content, Response, text_response
from pkgrepo.storage.blobs.reading import PausableProducer
from tests.support.certificates import make_certificate
from tests.support.memory_connection import parse_answers
from tests.support.socket_server import Server, blocking, connect, descriptors_of, read_to_end, talk, turn
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server

SIZE = 5_000_001
CLOSE = b"Connection: close\r\n"


def get(path: bytes = b"/file", fields: bytes = b"", method: bytes = b"GET") -> bytes:
    return b"%s %s HTTP/1.1\r\nHost: a\r\n%s\r\n" % (method, path, fields)


@pytest.fixture(scope="module")
def data() -> bytes:
    return os.urandom(SIZE)


@pytest.fixture
def file(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "file"
    path.write_bytes(data)
    return str(path)


class Files:
    """``/file`` is a file; ``/claims/<n>`` is the same file with a Content-Length of n."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.gone: Deferred[None] = Deferred()

    def open(self) -> int:
        return os.open(self.path, os.O_RDONLY)

    async def __call__(self, request: Request) -> Response:
        request.notifyFinish().addErrback(lambda _: self.gone.callback(None))
        claimed = request.path.removeprefix(b"/claims/")
        size = int(claimed) if claimed.isdigit() else SIZE
        if request.path == b"/":
            return text_response("end")
        return Response(body=Content(size, self.open), ranges=True, etag=b'"f"')


@pytest.fixture(params=["sendfile", "tls", "cold sendfile", "cold tls"])
def road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    if name.startswith("cold"):
        # A test cannot control the page cache, but it can replace the function that checks it.
        probes: Iterator[bool] = iter([False, True] * 1000)
        monkeypatch.setattr(file_transfer, "_is_cached", lambda *_: next(probes))
        monkeypatch.setattr(file_transfer, "read_cached", lambda *_: None)
    return name.removeprefix("cold ")


@pytest_twisted.async_yield_fixture
async def server(road: str, file: str, tmp_path: Path) -> AsyncIterator[Server]:
    certificate = make_certificate(tmp_path) if road == "tls" else None
    files = Files(file)
    server = Server(files, certificate)
    server.files = files  # type: ignore[attr-defined]
    yield server
    await server.stop()


def exchange(server: Server, data: bytes) -> bytes:
    with connect(server) as client:
        client.sendall(data)
        return read_to_end(client)


async def test_a_file_arrives_complete_twice_on_one_connection(server: Server, data: bytes, file: str) -> None:
    received = await blocking(exchange, server, get() + get() + get(b"/", CLOSE))
    answers = parse_answers(received)
    assert [answer.body == data for answer in answers[:2]] == [True, True]
    assert answers[2].body == b"end"
    assert descriptors_of(file) == 0


async def test_a_range_of_a_file_arrives(server: Server, data: bytes, file: str) -> None:
    fields = [
        b"Range: bytes=0-0\r\n",
        b"Range: bytes=1000000-4000000\r\n",
        b"Range: bytes=-1\r\n",
        b"Range: bytes=9999999-\r\n",
    ]
    received = await blocking(exchange, server, b"".join(get(fields=field) for field in fields) + get(b"/", CLOSE))
    first, middle, last, none, _ = parse_answers(received)
    assert (first.body, last.body) == (data[:1], data[-1:])
    assert middle.body == data[1_000_000:4_000_001]
    assert none.status == 416
    assert descriptors_of(file) == 0


async def test_responses_without_a_body_leave_no_descriptor_open(server: Server, file: str) -> None:
    received = await blocking(
        exchange, server, get(fields=b'If-None-Match: "f"\r\n') + get(fields=CLOSE, method=b"HEAD")
    )
    current, head = parse_answers(received, heads=1)
    assert (current.status, head.status, head.headers["content-length"]) == (304, 200, str(SIZE))
    assert descriptors_of(file) == 0


async def test_a_reader_with_a_tiny_window_gets_the_whole_file(data: bytes, file: str) -> None:
    server = Server(Files(file))

    def read_slowly() -> bytes:
        with socket.socket() as plain:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            plain.settimeout(TIMEOUT_S)
            plain.connect(server.address)
            plain.sendall(get(fields=CLOSE))
            return read_to_end(plain)

    (answer,) = parse_answers(await blocking(read_slowly))
    assert answer.body == data
    await server.stop()


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_a_body_that_delivers_itself_waits_for_a_slow_reader(data: bytes, tmp_path: Path, tls: bool) -> None:
    size = 8 * SIZE  # more than the buffers of both kernels hold
    producer = PausableProducer()
    paused: Deferred[None] = Deferred()

    async def deliver(consumer: IConsumer, start: int, end: int) -> None:
        consumer.registerProducer(producer, True)
        for _ in range(start, end, SIZE):
            waiting = Deferred.fromCoroutine(producer.wait_while_paused())
            if not (waiting.called or paused.called):
                paused.callback(None)
            await waiting
            for at in range(0, SIZE, 300_000):
                consumer.write(data[at : at + 300_000])
        consumer.unregisterProducer()

    async def answer(_: Request) -> Response:
        return Response(body=Content(size, deliver=deliver))

    server = Server(answer, make_certificate(tmp_path) if tls else None)
    with await blocking(connect, server) as client:
        await blocking(client.sendall, get(fields=CLOSE))
        await paused
        (received,) = parse_answers(await blocking(read_to_end, client))
    assert received.body == data * 8
    await server.stop()


async def test_a_disconnect_closes_the_descriptor(server: Server, file: str) -> None:
    def leave() -> int:
        with connect(server) as client:
            client.sendall(get(b"/claims/5000001"))
            return len(client.recv(1000))

    assert await blocking(leave) > 0
    await server.files.gone  # type: ignore[attr-defined]
    while descriptors_of(file):
        await turn()


async def test_a_truncated_file_is_never_delivered_as_complete(server: Server, file: str) -> None:
    def read() -> int:
        with connect(server) as client:
            client.sendall(get(b"/claims/6000000", CLOSE))
            try:
                return len(read_to_end(client))
            except (ConnectionError, ssl.SSLError):
                return -1

    assert await blocking(read) < 6_000_000
    while descriptors_of(file):
        await turn()


async def test_a_small_file_is_sent_in_one_write_with_its_head(tmp_path: Path) -> None:
    path = tmp_path / "small"
    path.write_bytes(b"small")
    answer = Response(body=Content(5, lambda: os.open(path, os.O_RDONLY)))
    server = Server(Files(str(path)), find_prepared=lambda _: PreparedResponse(answer))
    received = await blocking(talk, server.address, get() + get(fields=CLOSE))
    assert [answer.body for answer in parse_answers(received)] == [b"small"] * 2
    assert descriptors_of(str(path)) == 0
    await server.stop()


async def test_a_read_error_closes_the_connection(tmp_path: Path) -> None:
    answer = Response(
        body=Content(SIZE, lambda: os.open(tmp_path, os.O_RDONLY))
    )  # a directory can be opened, but not read
    server = Server(Files(""), find_prepared=lambda _: PreparedResponse(answer))

    def read() -> bytes:
        try:
            return talk(server.address, get())
        except ConnectionError:
            return b""

    assert len(await blocking(read)) < 1000
    await server.stop()


async def test_client_that_reads_nothing_is_aborted(tmp_path: Path, file: str) -> None:
    files = Files(file)
    with open(file, "ab") as grown:
        grown.truncate(200_000_000)  # larger than the kernel's socket buffers
    server = Server(files, limits=HttpLimits(write_stall_s=1))
    with socket.create_connection(server.address, timeout=TIMEOUT_S) as client:
        client.sendall(get(b"/claims/200000000"))
        await files.gone
    assert descriptors_of(file) == 0
    await server.stop()


async def test_drain_waits_for_a_transfer(file: str, data: bytes) -> None:
    begun: Deferred[None] = Deferred()
    files = Files(file)

    async def handler(request: Request) -> Response:
        begun.callback(None)
        return await files(request)

    server = Server(handler)
    received = blocking(talk, server.address, get())
    reading: Any = Deferred.fromCoroutine(received)
    await begun
    await server.port.stopListening()
    await server.site.drain(60)
    (answer,) = parse_answers(await reading)
    assert answer.body == data
    await turn()
