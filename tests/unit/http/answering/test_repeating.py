"""Requests with the bytes of an earlier one: answered alike, as long as nothing has changed."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.interfaces import ISSLTransport
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.logger import capturedLogs
from zope.interface import directlyProvides

from pkgrepo.http import repeats
from pkgrepo.http.access_log import AccessLogWriter
from pkgrepo.http.answering import send
from pkgrepo.http.answering.prepared import PreparedResponse
from pkgrepo.http.channel import REQUESTS_PER_TURN
from pkgrepo.http.repeats import LONGEST_S, Repeatable
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Content, Response, text_response
from tests.support.memory_connection import Connection, Received, parse_answers

MODIFIED = 1_700_000_000
ANSWER = Response(body=b"0123456789", content_type=b"text/x", etag=b'"e"', last_modified=MODIFIED, ranges=True)


def head(fields: str = "", line: str = "GET /a HTTP/1.1", host: str = "Host: a\r\n") -> bytes:
    return f"{line}\r\n{host}{fields}\r\n".encode()


class Peer(StringTransport):
    """The client's end, with an address of its own."""

    def __init__(self, host: str) -> None:
        super().__init__()
        self.host = host

    def getPeer(self) -> Any:
        return self


class Server:
    """A site whose answers from memory may be repeated; ``asked`` are the requests that it was asked for."""

    def __init__(self, answer: Response = ANSWER, **options: Any) -> None:
        self.prepared = PreparedResponse(answer)
        self.asked: list[Request] = []
        self.counted: list[str] = []
        self.seconds = LONGEST_S
        self.generation = 1
        self.first = Connection(self.handle, find_prepared=self.early, **options)
        self.site, self.clock = self.first.site, self.first.clock
        self.site.repeats.generation = lambda: self.generation

    async def handle(self, _request: Request) -> Response:
        return text_response("handled")

    def note(self, address: str) -> None:
        self.counted.append(address)

    def early(self, request: Request) -> PreparedResponse | None:
        self.asked.append(request)
        request.principal, request.repository, request.cache = "jane", "main/py", "hot"
        count = (lambda _: self.counted.append("one"), self.note)
        request.repeatable = lambda: Repeatable(self.seconds, count)
        return self.prepared

    def connect(self, host: str = "10.0.0.1", *, secure: bool = False) -> Connection:
        """A further connection to the same site."""
        other = Connection.__new__(Connection)
        other.clock, other.site, other.transport = self.clock, self.site, Peer(host)
        if secure:
            directlyProvides(other.transport, ISSLTransport)
        other.channel = self.site.buildProtocol(None)
        other.channel.makeConnection(other.transport)
        return other

    def get(self, data: bytes, connection: Connection | None = None) -> Received:
        connection = connection or self.first
        connection.send(data)
        return connection.answers(heads=0 if data.startswith(b"HEAD") else None)[0]

    def repeats(self, data: bytes, connection: Connection | None = None) -> bool:
        """Whether a request is answered without asking."""
        before = len(self.asked)
        self.get(data, connection)
        return len(self.asked) == before


def without_id(answer: Received) -> tuple[int, dict[str, str], bytes]:
    return answer.status, {name: each for name, each in answer.headers.items() if name != "x-request-id"}, answer.body


@pytest.mark.parametrize(
    ("data", "status", "body"),
    [
        (head(), 200, b"0123456789"),
        (head(line="HEAD /a HTTP/1.1"), 200, b""),
        (head('If-None-Match: "e"\r\n'), 304, b""),
        (head('If-None-Match: "f"\r\nRange: bytes=-3\r\n'), 206, b"789"),
        (head("Range: bytes=0-1\r\n"), 206, b"01"),
        (head("Range: bytes=10-\r\n"), 416, b""),
        (head("If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT\r\n"), 304, b""),
        (head('If-Match: "f"\r\n'), 412, b""),
        (head("Authorization: Bearer x\r\n", "GET /a?b=%20 HTTP/1.1"), 200, b"0123456789"),
    ],
)
def test_a_repeated_request_gets_the_same_answer_with_an_id_of_its_own(data: bytes, status: int, body: bytes) -> None:
    server = Server()
    answers = [server.get(data) for _ in range(4)]
    assert len(server.asked) == 2  # most requests come once, so the second one is kept
    assert len({answer.headers["x-request-id"] for answer in answers}) == 4
    assert all(without_id(answer) == without_id(answers[0]) for answer in answers)
    assert (answers[3].status, answers[3].body) == (status, body)
    assert server.site.request_count == 4


def test_a_small_file_is_opened_for_the_first_two_requests_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[int] = []

    def read(fd: int, offset: int, count: int) -> bytes:  # not all file systems know what of a file is in memory
        opened.append(fd)
        return os.pread(fd, count, offset)

    monkeypatch.setattr(send, "read_cached", read)
    (tmp_path / "file").write_bytes(b"0123456789")
    server = Server(Response(body=Content(10, open_file(tmp_path / "file")), ranges=True))
    answers = [server.get(head()) for _ in range(4)]
    assert [answer.body for answer in answers] == [b"0123456789"] * 4
    assert (len(opened), len(server.asked)) == (2, 2)
    assert [server.get(head("Range: bytes=2-3\r\n")).body for _ in range(3)] == [b"23"] * 3
    assert server.counted.count("one") == 3  # of each that was repeated


def test_a_large_file_is_never_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the system may say of any file that it is not in memory
    monkeypatch.setattr(send, "read_cached", lambda fd, start, length: os.pread(fd, length, start))
    (tmp_path / "file").write_bytes(bytes(send.SMALL + 1))
    server = Server(Response(body=Content(send.SMALL + 1, open_file(tmp_path / "file")), ranges=True))
    assert not any(server.repeats(head("Range: bytes=1-\r\n"), server.connect()) for _ in range(2))
    assert not any(server.repeats(head(line="HEAD /a HTTP/1.1")) for _ in range(2))
    assert server.repeats(head(line="HEAD /a HTTP/1.1"))


def open_file(path: Path) -> Callable[[], int]:
    return lambda: os.open(path, os.O_RDONLY)


def test_a_refusal_is_repeated_too() -> None:
    server = Server(text_response("who are you?", 401, headers=((b"WWW-Authenticate", b"Basic"),)))
    answers = [server.get(head()) for _ in range(3)]
    assert len(server.asked) == 2
    assert without_id(answers[0]) == without_id(answers[2])


@pytest.mark.parametrize(
    "other",
    [
        head(line="GET /b HTTP/1.1"),
        head(line="HEAD /a HTTP/1.1"),
        head("Accept: x\r\n"),
        head("accept: x\r\n").replace(b"accept", b"Accept").replace(b": x", b":  x"),
        head(host="host: a\r\n"),
        head("Range: bytes=0-1\r\n"),
        b"\r\n" + head(),
        head(line="GET http://a/a HTTP/1.1"),
    ],
)
def test_other_bytes_are_another_request(other: bytes) -> None:
    server = Server()
    for _ in range(3):
        server.get(head())
    assert server.repeats(head())
    assert not server.repeats(other)
    assert server.repeats(head())


@pytest.mark.parametrize(
    "data",
    [
        head("Connection: close\r\n"),
        head(line="GET /a HTTP/1.0"),
        head("X-Request-Id: 12345678\r\n"),
        head("Content-Length: 3\r\n") + b"abc",
        head("Transfer-Encoding: chunked\r\n") + b"0\r\n\r\n",
        head(line="POST /a HTTP/1.1"),
        head(line="GET http://a/a HTTP/1.1"),
    ],
)
def test_what_is_not_plain_is_never_repeated(data: bytes) -> None:
    server = Server()
    answers = [server.get(data, server.connect()) for _ in range(4)]
    assert not [kind for kind in server.site.repeats._kinds.values() if any(kind.repeats.values())]
    assert len({without_id(answer)[0] for answer in answers}) == 1


@pytest.mark.parametrize(
    "bad", ["Content-Length: 1\r\nContent-Length: 2\r\n", "A : b\r\n", "Host: b\r\n", " folded\r\n"]
)
def test_malformed_fields_are_refused_however_often_they_come(bad: str) -> None:
    server = Server()
    for _ in range(3):
        server.get(head())
    assert [server.get(head(bad), server.connect()).status for _ in range(3)] == [400] * 3


def test_a_head_in_pieces_is_repeated_when_it_is_whole() -> None:
    server = Server()
    for _ in range(2):
        server.get(head())
    for byte in head():
        server.first.send(bytes([byte]))
    assert server.first.answer().body == ANSWER.body
    assert len(server.asked) == 2


def test_pipelined_repetitions_are_answered_in_order_and_in_portions() -> None:
    server = Server()
    for _ in range(2):
        server.get(head())
    count = REQUESTS_PER_TURN + 5
    server.first.send(head() * count + head(line="GET /b HTTP/1.1"))
    assert len(server.first.answers()) == REQUESTS_PER_TURN
    server.clock.advance(0)
    assert len(server.first.answers()) == 6
    assert [request.raw_path for request in server.asked] == [b"/a", b"/a", b"/b"]


def test_nothing_is_repeated_after_a_commit() -> None:
    server = Server()
    assert [server.repeats(head()) for _ in range(4)] == [False, False, True, True]
    server.generation += 1
    assert [server.repeats(head()) for _ in range(4)] == [False, True, True, True]  # it is known to come often


def test_what_is_kept_again_after_commits_takes_no_more_room() -> None:
    server = Server()
    for _ in range(2):
        server.get(head())
    size = server.site.repeats.size
    for _ in range(5):
        server.generation += 1
        server.get(head())
    assert server.site.repeats.size == size
    server.site.repeats.clear()
    assert (server.site.repeats.size, len(server.site.repeats)) == (0, 0)


def test_an_answer_that_was_found_before_a_commit_is_not_kept_for_the_time_after_it() -> None:
    server = Server()
    early = server.site.find_prepared
    assert early is not None

    def committing(request: Request) -> PreparedResponse | None:
        found = early(request)
        server.generation += 1  # another process, after this one has looked
        return found

    server.site.find_prepared = committing
    assert not any(server.repeats(head()) for _ in range(5))


def test_nothing_is_repeated_when_the_owner_has_another_answer() -> None:
    server = Server()
    for _ in range(3):
        server.get(head())
    server.site.repeats.clear()
    assert not server.repeats(head())


def test_an_answer_is_repeated_for_as_long_as_it_may_be() -> None:
    server = Server()
    server.seconds = 2.0
    for _ in range(2):
        server.get(head())
    server.clock.advance(1.9)
    assert server.repeats(head())
    server.clock.advance(0.1)
    assert not server.repeats(head())
    assert server.repeats(head())


def test_nothing_is_repeated_while_the_generation_is_unknown() -> None:
    server = Server()
    for _ in range(3):
        server.get(head())

    def fail() -> int:
        raise OSError

    tells, server.site.repeats.generation = server.site.repeats.generation, fail
    assert not any(server.repeats(head()) for _ in range(3))
    server.site.repeats.generation = tells
    server.generation += 1
    assert not server.repeats(head())


def test_clients_of_one_kind_share_answers_and_others_have_their_own() -> None:
    server = Server()
    for _ in range(2):
        server.get(head("Authorization: a\r\n"))
    assert server.repeats(head("Authorization: a\r\n"), server.connect())
    assert not server.repeats(head("Authorization: b\r\n"), server.connect())


def test_connections_with_tls_neither_get_nor_give_answers() -> None:
    server = Server()
    secure = server.connect(secure=True)
    assert not any(server.repeats(head(), secure) for _ in range(3))
    assert [server.repeats(head()) for _ in range(3)] == [False, False, True]
    assert not server.repeats(head(), secure)


def test_behind_a_trusted_proxy_the_peer_counts_and_the_client_is_logged() -> None:
    file, clock = io.BytesIO(), Clock()
    log = AccessLogWriter(file, reactor=clock)
    server = Server(trusted_proxies=["10.0.0.0/8"], access_log=log)
    forwarded = head("X-Forwarded-For: 192.0.2.7\r\n")
    for host, fields in (("10.0.0.1", forwarded), ("10.0.0.2", forwarded), ("172.16.0.1", forwarded)):
        connection = server.connect(host)
        assert [server.repeats(fields, connection) for _ in range(3)] == [False, False, True]
    assert server.repeats(forwarded, server.connect("172.16.0.2"))  # untrusted peers share theirs
    log.flush()
    clients = [line.split()[2] for line in file.getvalue().decode().splitlines()]
    assert clients == ["192.0.2.7"] * 6 + ["172.16.0.1"] * 3 + ["172.16.0.2"]


@pytest.mark.parametrize("style", ["text", "json"])
def test_the_access_log_has_the_same_line_for_a_repetition(style: Any) -> None:
    file, clock = io.BytesIO(), Clock()
    log = AccessLogWriter(file, reactor=clock, style=style, redact=lambda path: path + "!", agents=True)
    server = Server(access_log=log)
    ids = [server.get(head("User-Agent: pip/1\r\n")).headers["x-request-id"] for _ in range(4)]
    log.flush()
    lines = file.getvalue().decode().splitlines()
    assert len(server.asked) == 2
    assert [line for line, each in zip(lines, ids, strict=True) if each in line] == lines
    assert len({line.replace(each, "").split("Z", 1)[1] for line, each in zip(lines, ids, strict=True)}) == 1


def test_everything_is_counted_for_each_repetition() -> None:
    server = Server()
    for _ in range(5):
        server.get(head())
    assert server.counted == ["one", "192.168.1.1"] * 3


def test_a_failing_count_does_not_fail_the_answer() -> None:
    server = Server()
    server.counted = None  # type: ignore[assignment]
    with capturedLogs() as events:
        assert [server.get(head()).status for _ in range(3)] == [200] * 3
    assert [event["log_failure"].type for event in events if "log_failure" in event] == [AttributeError]


def test_a_repetition_ends_the_wait_for_a_request() -> None:
    server = Server()
    for _ in range(2):
        server.get(head())
    server.first.wait(int(server.site.limits.idle_timeout_s) - 1)
    server.seconds = 1000
    for _ in range(3):
        server.get(head())
    server.first.wait(int(server.site.limits.idle_timeout_s) - 1)
    assert not server.first.closed
    server.first.wait(2)
    assert server.first.closed


def test_a_stopping_server_closes_as_usual() -> None:
    server = Server()
    for _ in range(3):
        server.get(head())
    server.site.drain(10)
    assert server.get(head()).headers["connection"] == "close"
    assert server.first.closed


def test_a_client_that_does_not_read_gets_no_further_answers() -> None:
    server = Server()
    for _ in range(2):
        server.get(head())
    server.first.channel.pauseProducing()  # as the transport does when its buffer is full
    server.first.send(head() * 3)
    assert server.first.take() == b""
    assert not server.first.reading
    server.first.channel.resumeProducing()
    assert len(server.first.answers()) == 3


def test_a_connection_that_ends_within_a_write_is_answered_no_further() -> None:
    server = Server()
    for _ in range(2):
        server.get(head())
    written: list[bytes] = []

    def end(data: bytes) -> None:
        written.append(data)
        server.first.lose()

    server.first.transport.write = end  # type: ignore[method-assign]
    server.first.send(head() * 3)
    assert len(parse_answers(b"".join(written))) == 1


def test_kept_answers_are_bounded_in_bytes_and_kinds() -> None:
    server, most = Server(), 10 * repeats.ENTRY_BYTES
    server.site.repeats = repeats.Repeats(server.site.repeats.trusts, most_bytes=most, most_kinds=3)
    server.site.repeats.generation = lambda: 1
    for number in range(50):
        connection = server.connect()
        for _ in range(2):
            server.get(head(f"A: {number % 7}\r\n", f"GET /{number} HTTP/1.1"), connection)
        assert server.site.repeats.size <= most
        assert len(server.site.repeats._kinds) <= 3
