"""One line for each request."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.http.access_log import FLUSH_BYTES, LONGEST_PATH, AccessLogWriter
from pkgrepo.http.answering.prepared import PreparedResponse
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from tests.support.memory_connection import Connection

GET = b"GET /a%20b?token=secret HTTP/1.1\r\nHost: a\r\nX-Request-Id: request-1\r\n\r\n"


async def handle(request: Request) -> Response:
    request.principal = "Jane Doe\n"
    request.repository = "main/py"
    request.cache = "hit"
    return Response(body=b"12345")


def lines_of(data: bytes, style: str = "text", **options: Any) -> list[str]:
    file, clock = io.BytesIO(), Clock()
    chosen = {name: options.pop(name) for name in ("redact", "agents") if name in options}
    log = AccessLogWriter(file, reactor=clock, style=style, **chosen)  # type: ignore[arg-type]
    connection = Connection(handle, access_log=log, **options)
    connection.send(data)
    connection.lose()
    clock.advance(1)
    return file.getvalue().decode().splitlines()


def test_text_line_holds_the_fields_in_order() -> None:
    (line,) = lines_of(GET)
    time, *rest = line.split(" ")
    assert time.endswith("Z")
    assert rest == [
        "request-1",
        "192.168.1.1",
        "Jane\\x20Doe\\n",
        "GET",
        "/a%20b",
        "200",
        "5",
        "0.0",
        "main/py",
        "hit",
    ]


@pytest.mark.parametrize(
    ("agent", "word"),
    [
        (b"npm/11.0.0", "npm/11.0.0"),
        (b"npm/11 node\xff", "npm/11\\x20node\\xff"),
        (b"", "-"),
        (b"a" * 5000, "a" * LONGEST_PATH + "..."),
    ],
)
def test_the_client_s_program_is_told_where_that_is_wanted(agent: bytes, word: str) -> None:
    data = GET.replace(b"Host: a\r\n", b"Host: a\r\nUser-Agent: %b\r\n" % agent)
    assert lines_of(data)[0].split(" ")[-1] == "hit"
    assert lines_of(data, agents=True)[0].split(" ")[-1] == word
    assert "agent" not in json.loads(lines_of(data, "json")[0])
    assert json.loads(lines_of(data, "json", agents=True)[0])["agent"][:10] == agent[:10].decode("latin-1")


def test_json_line_holds_the_same() -> None:
    (line,) = lines_of(GET, "json")
    event = json.loads(line)
    event.pop("time")
    assert event == {
        "id": "request-1",
        "client": "192.168.1.1",
        "principal": "Jane Doe\n",
        "method": "GET",
        "path": "/a%20b",
        "status": 200,
        "bytes": 5,
        "ms": 0.0,
        "repository": "main/py",
        "cache": "hit",
    }


@pytest.mark.parametrize("style", ["text", "json"])
def test_query_is_never_written(style: str) -> None:
    assert "secret" not in "".join(lines_of(GET, style))


def test_path_is_redactbed() -> None:
    (line,) = lines_of(GET, redact=lambda path: path.replace("b", "*"))
    assert " /a%20* " in line


def test_answer_of_the_early_road_has_its_line() -> None:
    (line,) = lines_of(GET, find_prepared=lambda _: PreparedResponse(Response(body=b"1234567")))
    assert " 200 7 " in line


def test_head_that_makes_no_request_has_its_line_without_its_bytes() -> None:
    (line,) = lines_of(b"GET /secret HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
    assert " 192.168.1.1 - - - 400 " in line
    assert "secret" not in line


def test_refused_head_in_json_style_is_json() -> None:
    (line,) = lines_of(b"GET /secret HTTP/1.1\r\n\r\n", "json")
    assert json.loads(line)["status"] == 400


def test_client_that_left_has_its_line() -> None:
    async def forever(_request: Request) -> Response:
        await Deferred()
        return Response()

    file, clock = io.BytesIO(), Clock()
    connection = Connection(forever, access_log=AccessLogWriter(file, reactor=clock))
    connection.send(GET)
    connection.lose()
    clock.advance(1)
    assert b" /a%20b 499 0 " in file.getvalue()


def test_lines_are_written_together_and_soon() -> None:
    file, clock = io.BytesIO(), Clock()
    connection = Connection(handle, access_log=AccessLogWriter(file, reactor=clock))
    connection.send(GET)
    assert file.getvalue() == b""
    clock.advance(1)
    assert file.getvalue().count(b"\n") == 1
    for _ in range(FLUSH_BYTES // 60):
        connection.send(GET)
    assert file.getvalue().count(b"\n") > FLUSH_BYTES // 150


def test_log_goes_on_in_another_file() -> None:
    old, new, clock = io.BytesIO(), io.BytesIO(), Clock()
    log = AccessLogWriter(old, reactor=clock)
    connection = Connection(handle, access_log=log)
    connection.send(GET)
    kept: list[bytes] = []
    old.close = lambda: kept.append(old.getvalue())  # type: ignore[method-assign]
    log.reopen(new)
    connection.send(GET)
    log.flush()
    assert kept[0].count(b"\n") == new.getvalue().count(b"\n") == 1
    assert clock.getDelayedCalls() == []


def test_log_that_cannot_be_written_fails_no_request() -> None:
    class Full(io.BytesIO):
        def write(self, _data: Any) -> int:
            raise OSError("disk full")

    log = AccessLogWriter(Full(), reactor=Clock())
    connection = Connection(handle, access_log=log)
    connection.send(GET)
    log.flush()
    connection.send(GET)
    assert len(connection.answers()) == 2


@pytest.mark.parametrize("style", ["text", "json"])
def test_what_a_client_makes_long_is_cut(style: str) -> None:
    (line,) = lines_of(b"GET /" + b"x" * 30_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", style)
    assert len(line) < LONGEST_PATH + 300
    assert "xxx..." in line
