"""Sending of answers: heads, bodies from memory, and bodies that deliver themselves."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IConsumer

from pkgrepo.http.answering.send import render_head, status_line
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Content, Response, json_response, text_response
from tests.support.http_answering import BODY, FULL, answering_with, both_roads, get
from tests.support.memory_connection import Connection


@pytest.mark.parametrize(
    ("status", "reason"), [(200, "OK"), (404, "Not Found"), (429, "Too Many Requests"), (299, "Unknown")]
)
def test_a_status_has_its_phrase(status: int, reason: str) -> None:
    assert status_line(status) == f"HTTP/1.1 {status} {reason}\r\n".encode()


def test_a_handlers_own_416_keeps_its_length_and_fields() -> None:
    answer = Response(416, b"why", headers=((b"Location", b"/here"),))
    head = render_head(answer, 416, 0, 3)
    assert b"Content-Length: 3\r\n" in head
    assert b"Location: /here\r\n" in head
    assert b"Content-Range" not in head


@pytest.mark.parametrize("status", [200, 206, 304, 416])
def test_some_fields_are_said_with_every_status(status: int) -> None:
    answer = Response(200, b"body", headers=((b"X-Some", b"1"),), always=((b"X-Every", b"2"),), ranges=True)
    head = render_head(answer, status, 1, 2)
    assert b"X-Every: 2\r\n" in head
    assert (b"X-Some" in head) == (status in (200, 206))


@pytest.mark.parametrize("road", [0, 1])
def test_every_answer_carries_the_common_fields(road: int) -> None:
    connection = both_roads(FULL)[road]
    connection.send(get())
    answer = connection.answer()
    assert (answer.status, answer.reason, answer.body) == (200, "OK", BODY)
    assert answer.headers["server"] == "pkgrepo"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", answer.headers["date"])
    assert answer.headers["content-length"] == "10"
    assert answer.headers["content-type"] == "text/x"
    assert answer.headers["etag"] == '"e"'
    assert answer.headers["last-modified"] == "Tue, 14 Nov 2023 22:13:20 GMT"
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("road", [0, 1])
def test_head_gets_the_fields_of_get_and_no_body(road: int) -> None:
    connection = both_roads(FULL)[road]
    connection.send(get())
    wanted = connection.answer().headers
    connection.send(get(method="HEAD"))
    (answer,) = connection.answers(heads=0)
    assert answer.body == b""
    ignored = ("x-request-id", "date")
    assert [item for item in answer.headers.items() if item[0] not in ignored] == [
        item for item in wanted.items() if item[0] not in ignored
    ]


@pytest.mark.parametrize("road", [0, 1])
@pytest.mark.parametrize(
    "fields",
    ['If-None-Match: "e"\r\n', 'If-None-Match: W/"e"\r\n', "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT\r\n"],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_client_with_a_current_copy_gets_304(road: int, fields: str, method: str) -> None:
    connection = both_roads(FULL)[road]
    connection.send(get(fields, method))
    answer = connection.answer()
    assert (answer.status, answer.headers["etag"], answer.headers["cache-control"]) == (304, '"e"', "no-cache")
    assert not {"content-length", "content-type", "content-disposition"} & answer.headers.keys()


@pytest.mark.parametrize("road", [0, 1])
def test_range_of_bytes_in_memory(road: int) -> None:
    connection = both_roads(FULL)[road]
    connection.send(get("Range: bytes=2-4\r\n") + get("Range: bytes=10-\r\n"))
    part, none = connection.answers()
    assert (part.status, part.body, part.headers["content-range"]) == (206, b"234", "bytes 2-4/10")
    assert (none.status, none.body, none.headers["content-range"]) == (416, b"", "bytes */10")


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abcDEF12._-", True), ("short", False), ("x" * 65, False), ("evil evil evil", False), ("<script>", False)],
)
def test_request_id_of_the_client_is_kept_when_it_is_harmless(given: str, kept: bool) -> None:
    connection = Connection(answering_with(FULL))
    connection.send(get(f"X-Request-Id: {given}\r\n"))
    assert (connection.answer().headers["x-request-id"] == given) is kept


def test_requests_without_an_id_get_different_ones() -> None:
    connection = Connection(answering_with(FULL))
    connection.send(get() * 3)
    ids = {answer.headers["x-request-id"] for answer in connection.answers()}
    assert len(ids) == 3
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{8,64}", request_id) for request_id in ids)


@pytest.mark.parametrize(
    ("reason", "sent"),
    [
        ("name the rule", "name the rule"),
        ("two\r\nSet-Cookie: x", "two Set-Cookie: x"),
        ("nul\0 bell\a tab\t", "nul bell tab"),
        ("schön – wirklich", "schön ? wirklich"),
        ("x" * 500, "x" * 200),
        ("", ""),
    ],
)
def test_reason_is_one_harmless_line(reason: str, sent: str) -> None:
    connection = Connection(answering_with(text_response("no", 403, reason=reason)))
    connection.send(get())
    assert connection.answer().reason == sent


@pytest.mark.parametrize(
    "headers", [((b"Location", b"/a\r\nSet-Cookie: x"),), ((b"X\n", b"y"),), ((b"X", b"y\0"),), ((b"X", b"y\r"),)]
)
def test_field_with_a_line_end_is_never_sent(headers: tuple[tuple[bytes, bytes], ...]) -> None:
    connection = Connection(answering_with(Response(headers=headers)))
    connection.send(get())
    assert connection.answer().status == 500


def test_answer_without_content_has_no_length() -> None:
    connection = Connection(answering_with(Response(status=204)))
    connection.send(get() + get())
    for answer in connection.answers():
        assert answer.status == 204
        assert "content-length" not in answer.headers


def test_large_body_in_memory_is_sent_whole() -> None:
    connection = Connection(answering_with(Response(body=b"x" * 1_000_000)))
    connection.send(get())
    assert connection.answer().body == b"x" * 1_000_000


def test_json_and_text_answers_say_what_they_are() -> None:
    assert json_response({"a": [1]}, 201, etag=b'"x"') == Response(201, b'{"a":[1]}', b"application/json", etag=b'"x"')
    assert text_response("ä").body == "ä".encode()
    assert json_response({}, content_type=b"application/problem+json").content_type == b"application/problem+json"


def delivering(write: Callable[[IConsumer, int, int], Awaitable[None]]) -> Response:
    return Response(body=Content(10, deliver=write), ranges=True)


def test_body_that_delivers_itself_is_asked_for_the_range() -> None:
    def deliver(consumer: IConsumer, start: int, end: int) -> Deferred[None]:
        consumer.write(BODY[start:end])
        return succeed(None)

    connection = Connection(answering_with(delivering(deliver)))
    connection.send(get() + get("Range: bytes=2-4\r\n") + get(method="HEAD"))
    assert [answer.body for answer in connection.answers(heads=2)] == [BODY, b"234", b""]


def _written(consumer: IConsumer, error: Exception | None) -> Deferred[None]:
    consumer.write(b"012")
    return succeed(None) if error is None else fail(error)


@pytest.mark.parametrize(
    ("deliver", "heads"),
    [
        (lambda consumer, _start, _end: _written(consumer, None), 1),
        (lambda consumer, _start, _end: _written(consumer, OSError("the upstream broke")), 1),
        (lambda _consumer, _start, _end: succeed(None), 0),
    ],
)
def test_body_that_ends_early_cuts_the_connection(deliver: Any, heads: int) -> None:
    connection = Connection(answering_with(delivering(deliver)))
    connection.send(get() + get())
    assert connection.aborted
    assert connection.take().count(b"HTTP/1.1") == heads


@pytest.mark.parametrize(
    "deliver",
    [lambda _consumer, _start, _end: fail(OSError("the upstream broke")), lambda _consumer, _start, _end: 1 / 0],
)
def test_body_that_fails_before_its_first_byte_is_answered_with_an_error(deliver: Any) -> None:
    connection = Connection(answering_with(delivering(deliver)))
    connection.send(get() + get())
    assert [answer.status for answer in connection.answers()] == [500, 500]


def test_body_may_deliver_itself_by_a_coroutine() -> None:
    async def deliver(consumer: IConsumer, start: int, end: int) -> None:
        consumer.write(BODY[start:end])

    connection = Connection(answering_with(delivering(deliver)))
    connection.send(get())
    assert connection.answer().body == BODY


def test_body_that_is_too_long_is_cut_at_its_length() -> None:
    connection = Connection(answering_with(delivering(lambda consumer, *_: succeed(consumer.write(b"x" * 99)))))
    connection.send(get())
    assert connection.answer().body == b"x" * 10


def test_delivery_is_cancelled_when_the_client_leaves() -> None:
    cancelled: list[object] = []
    connection = Connection(answering_with(delivering(lambda *_: Deferred(cancelled.append))))
    connection.send(get())
    connection.lose()
    assert len(cancelled) == 1


def test_request_tells_its_cookies_and_its_host() -> None:
    async def handler(request: Request) -> Response:
        cookie, host = request.getCookie(b"a"), request.getRequestHostname()
        return json_response([cookie.decode(), host.decode(), request.getHeader("x-many"), request.isSecure()])

    connection = Connection(handler)
    connection.send(b"GET / HTTP/1.1\r\nHost: name:80\r\nCookie: a=b; c=d\r\nX-Many: 1\r\nX-Many: 2\r\n\r\n")
    assert connection.answer().body == b'["b","name","2",false]'


def test_question_to_the_server_itself_is_answered() -> None:
    connection = Connection(answering_with(Response(status=500)))
    connection.send(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
    assert connection.answer().status == 200


def test_answer_may_close_the_connection_the_old_way() -> None:
    async def handler(request: Request) -> Response:
        request.setHeader(b"Connection", b"close")
        request.setHeader(b"Content-Length", b"2")
        request.write(b"ok")
        request.finish()
        return Response()

    connection = Connection(handler)
    connection.send(get())
    assert connection.answer().headers["connection"] == "close"
    assert connection.closed
