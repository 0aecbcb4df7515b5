"""The stream of events over real sockets: it waits, goes on after an event, and ends with the server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tests.support.configurations import hosted
from tests.support.http_client import HttpClient, basic
from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_wheel
from tests.support.server_process import WORKERS, ServerProcess, restarts
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder: Path = tmp_path_factory.mktemp("stream")
    with restarts(
        folder, hosted("python", py='config = { type = "Hosted", conda = { from_wheels = false } }')
    ) as start:
        yield start()


@contextmanager
def stream(client: HttpClient, path: str = "/api/events", **fields: str) -> Iterator[BinaryIO]:
    """The body of the stream, whose head has come."""
    with client.connect() as connection:
        connection.settimeout(TIMEOUT_S)
        headers = {"Accept": "text/event-stream", **basic((USER, PASSWORD)), **fields}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n{lines}\r\n".encode())
        with connection.makefile("rb") as reply:
            assert reply.readline() == b"HTTP/1.1 200 OK\r\n"
            head = b"".join(iter(reply.readline, b"\r\n")).lower()
            assert b"content-type: text/event-stream" in head
            assert b"content-length" not in head
            yield reply


def next_event(reply: BinaryIO) -> Any:
    """The next event of a stream, without comments."""
    found: dict[str, str] = {}
    while "data" not in found:
        found = {}
        for line in iter(reply.readline, b"\n"):
            assert line, "the stream has ended"
            name, _, value = line.decode().rstrip("\n").partition(": ")
            found[name] = value
    event = json.loads(found["data"])
    assert (found["id"], f"pkgrepo.{found['event']}.v1") == (str(event["seq"]), event["type"])
    return event


def publish(client: HttpClient, version: str) -> None:
    name, data = make_wheel("demo", version)
    assert client.put(f"/repositories/main/py/demo/{version}/{name}", data).status == 201


def test_a_stream_has_new_events_and_goes_on_after_the_last_one(process: ServerProcess) -> None:
    client = HttpClient(process.url, (USER, PASSWORD))
    with stream(client) as reply:
        reply.readline()  # how long to wait before coming back
        publish(client, "1.0")
        first = next_event(reply)
        publish(client, "1.1")
        second = next_event(reply)
    assert [first["subject"], second["subject"]] == ["main/py/demo@1.0", "main/py/demo@1.1"]
    publish(client, "1.2")
    with stream(client, **{"Last-Event-ID": str(first["seq"])}) as reply:
        assert [next_event(reply)["subject"] for _ in range(2)] == ["main/py/demo@1.1", "main/py/demo@1.2"]
    with stream(client, f"/api/events?after={first['seq']}&type=package.published") as reply:
        assert next_event(reply)["subject"] == "main/py/demo@1.1"


def test_a_caller_has_a_bounded_number_of_streams(process: ServerProcess) -> None:
    client = HttpClient(process.url, (USER, PASSWORD))

    def refused() -> bool:
        with client.connect() as connection:
            connection.settimeout(TIMEOUT_S)
            lines = "".join(f"{name}: {value}\r\n" for name, value in basic((USER, PASSWORD)).items())
            connection.sendall(
                f"GET /api/events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n{lines}\r\n".encode()
            )
            status: bytes = connection.makefile("rb").readline()
            return status == b"HTTP/1.1 429 Too Many Requests\r\n"

    opened: list[Any] = []
    try:
        while not refused():  # each process of the server counts its own
            held = stream(client)
            opened.append(held)
            assert held.__enter__().readline() == b"retry: 2000\n"
        assert 10 <= len(opened) <= 10 * int(WORKERS[0])
    finally:
        for held in opened:
            held.__exit__(None, None, None)
    while refused():  # until the server has noticed that they have left
        pass


def test_streams_end_when_the_server_stops(tmp_path: Path) -> None:
    with restarts(tmp_path, hosted("python", "py")) as start:
        server = start()
        client = HttpClient(server.url, (USER, PASSWORD))
        with stream(client) as reply:
            reply.readline()
            assert server.stop() in (0, -15)
            assert "cutting" not in server.output
            while reply.readline():
                pass
