"""Sending of answers: heads, bodies from memory, and early answers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from klein import Klein
from twisted.internet.defer import CancelledError, Deferred, fail, succeed
from twisted.internet.interfaces import IConsumer

from pkgrepo.http.answering.dispatch import answering, refuse_unrouted
from pkgrepo.http.answering.errors import ErrorTable
from pkgrepo.http.answering.prepared import PreparedAnswer
from pkgrepo.http.answering.send import send
from pkgrepo.http.answers import Answer, Content, Refusal, json_answer, text_answer
from pkgrepo.http.request import Request
from pkgrepo.http.response_cache import ResponseCache
from pkgrepo.http.site import make_site
from tests.support.memory_connection import ERRORS, Connection, render_text

BODY = b"0123456789"


def answering_with(answer: Answer) -> Callable[[Request], Any]:
    async def handler(_request: Request) -> Answer:
        return answer

    return handler


def get(fields: str = "", method: str = "GET", path: str = "/") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n".encode()


def both_roads(answer: Answer) -> list[Connection]:
    """The same answer by a handler, and prepared."""
    return [
        Connection(answering_with(answer)),
        Connection(answering_with(Answer(status=500)), early=lambda _: PreparedAnswer(answer)),
    ]


FULL = Answer(
    body=BODY,
    content_type=b"text/x",
    etag=b'"e"',
    last_modified=1_700_000_000,
    ranges=True,
    headers=((b"Cache-Control", b"no-cache"), (b"Content-Disposition", b"inline")),
)


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
    connection = Connection(answering_with(text_answer("no", 403, reason=reason)))
    connection.send(get())
    assert connection.answer().reason == sent


@pytest.mark.parametrize(
    "headers", [((b"Location", b"/a\r\nSet-Cookie: x"),), ((b"X\n", b"y"),), ((b"X", b"y\0"),), ((b"X", b"y\r"),)]
)
def test_field_with_a_line_end_is_never_sent(headers: tuple[tuple[bytes, bytes], ...]) -> None:
    connection = Connection(answering_with(Answer(headers=headers)))
    connection.send(get())
    assert connection.answer().status == 500


def test_answer_without_content_has_no_length() -> None:
    connection = Connection(answering_with(Answer(status=204)))
    connection.send(get() + get())
    for answer in connection.answers():
        assert answer.status == 204
        assert "content-length" not in answer.headers


def test_large_body_in_memory_is_sent_whole() -> None:
    connection = Connection(answering_with(Answer(body=b"x" * 1_000_000)))
    connection.send(get())
    assert connection.answer().body == b"x" * 1_000_000


def test_json_and_text_answers_say_what_they_are() -> None:
    assert json_answer({"a": [1]}, 201, etag=b'"x"') == Answer(201, b'{"a":[1]}', b"application/json", etag=b'"x"')
    assert text_answer("ä").body == "ä".encode()
    assert json_answer({}, content_type=b"application/problem+json").content_type == b"application/problem+json"


# Bodies that deliver themselves


def delivering(write: Callable[[IConsumer, int, int], Awaitable[None]]) -> Answer:
    return Answer(body=Content(10, deliver=write), ranges=True)


def test_body_that_delivers_itself_is_asked_for_the_range() -> None:
    def deliver(consumer: IConsumer, start: int, end: int) -> Deferred[None]:
        consumer.write(BODY[start:end])
        return succeed(None)

    connection = Connection(answering_with(delivering(deliver)))
    connection.send(get() + get("Range: bytes=2-4\r\n") + get(method="HEAD"))
    assert [answer.body for answer in connection.answers(heads=2)] == [BODY, b"234", b""]


@pytest.mark.parametrize(
    "deliver",
    [
        lambda consumer, _start, _end: succeed(consumer.write(b"012")),
        lambda _consumer, _start, _end: succeed(None),
        lambda _consumer, _start, _end: fail(OSError("the upstream broke")),
        lambda _consumer, _start, _end: 1 / 0,
    ],
)
def test_body_that_ends_early_cuts_the_connection(deliver: Any) -> None:
    connection = Connection(answering_with(delivering(deliver)))
    connection.send(get() + get())
    assert connection.aborted
    assert connection.take().count(b"HTTP/1.1") == 1


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


# Errors


class Teapot(Exception):
    pass


class ShortTeapot(Teapot):
    pass


def test_most_specific_type_of_error_decides() -> None:
    table = ErrorTable({Exception: (500, "E"), Teapot: (418, "T")}, render_text)
    request: Any = None
    assert table.answer(request, ShortTeapot("short and stout")).status == 418
    assert table.answer(request, ShortTeapot("short and stout")).body == b"short and stout"
    assert table.answer(request, ValueError("x")).status == 500
    assert table.answer(request, Refusal(409, "no")).status == 409


def failing(error: Exception) -> Callable[[Request], Any]:
    async def handler(_request: Request) -> Answer:
        raise error

    return handler


def test_unknown_error_leaks_nothing_but_the_request_id() -> None:
    connection = Connection(failing(ValueError("the password is swordfish")))
    connection.send(get() + get())
    for answer in connection.answers():
        assert answer.status == 500
        assert answer.body.decode() == f"internal error, request id {answer.headers['x-request-id']}"


def test_error_on_the_early_road_is_answered() -> None:
    def early(_request: Request) -> None:
        raise ValueError("the password is swordfish")

    connection = Connection(answering_with(FULL), early=early)
    connection.send(get())
    answer = connection.answer()
    assert (answer.status, b"swordfish" in answer.body) == (500, False)


def test_content_that_cannot_be_opened_is_an_error_of_its_own() -> None:
    def vanished() -> int:
        raise FileNotFoundError

    connection = Connection(answering_with(Answer(body=Content(10, vanished))))
    connection.send(get() + get())
    assert [answer.status for answer in connection.answers()] == [500, 500]


def test_error_after_the_head_cuts_the_connection() -> None:
    async def handler(request: Request) -> Answer:
        request.write(b"some")
        raise ValueError("and no more")

    connection = Connection(handler)
    connection.send(get())
    assert connection.aborted


def test_error_after_the_answer_leaves_the_connection_alone() -> None:
    async def handler(request: Request) -> Answer:
        await send(request, FULL)
        raise ValueError("too late to matter")

    connection = Connection(handler)
    connection.send(get() + get())
    assert [answer.body for answer in connection.answers()] == [BODY, BODY]
    assert not connection.aborted


def test_error_while_wording_an_error_is_answered_all_the_same() -> None:
    def broken(_request: Request, _refusal: Refusal) -> Answer:
        raise ValueError("cannot even say it")

    connection = Connection(failing(Refusal(409, "no")))
    connection.site.resource.errors = ErrorTable({}, broken)
    connection.send(get() + get())
    assert [answer.status for answer in connection.answers()] == [500, 500]


def test_handler_that_is_cancelled_while_its_client_waits_is_answered() -> None:
    async def handler(_request: Request) -> Answer:
        raise CancelledError

    connection = Connection(handler)
    connection.send(get() + get())
    assert [answer.status for answer in connection.answers()] == [500, 500]


def test_second_answer_to_a_request_is_an_error() -> None:
    seen: list[str] = []

    async def handler(request: Request) -> Answer:
        await send(request, FULL)
        try:
            await send(request, FULL)
        except RuntimeError as error:
            seen.append(str(error))
        return FULL

    connection = Connection(handler)
    connection.send(get())
    assert connection.answer().status == 200
    assert seen == ["this request has been answered already"]


# What requests tell


def test_request_tells_its_cookies_and_its_host() -> None:
    async def handler(request: Request) -> Answer:
        cookie, host = request.getCookie(b"a"), request.getRequestHostname()
        return json_answer([cookie.decode(), host.decode(), request.getHeader("x-many"), request.isSecure()])

    connection = Connection(handler)
    connection.send(b"GET / HTTP/1.1\r\nHost: name:80\r\nCookie: a=b; c=d\r\nX-Many: 1\r\nX-Many: 2\r\n\r\n")
    assert connection.answer().body == b'["b","name","2",false]'


def test_question_to_the_server_itself_is_answered() -> None:
    connection = Connection(answering_with(Answer(status=500)))
    connection.send(b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
    assert connection.answer().status == 200


def test_answer_may_close_the_connection_the_old_way() -> None:
    async def handler(request: Request) -> Answer:
        request.setHeader(b"Connection", b"close")
        request.setHeader(b"Content-Length", b"2")
        request.write(b"ok")
        request.finish()
        return Answer()

    connection = Connection(handler)
    connection.send(get())
    assert connection.answer().headers["connection"] == "close"
    assert connection.closed


# Early answers


def test_early_answers_are_only_asked_for_reads_without_a_body() -> None:
    seen: list[bytes] = []

    def early(request: Request) -> None:
        seen.append(request.method + b" " + request.raw_path + b" " + request.raw_query)

    connection = Connection(answering_with(FULL), early=early)
    for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        connection.send(get(method=method, path="/a%2Fb?c"))
    connection.send(get("Content-Length: 1\r\n") + b"x")
    assert seen == [b"GET /a%2Fb c", b"HEAD /a%2Fb c"]


def test_each_request_is_processed_in_a_moment_until_its_handler_waits() -> None:
    seen: list[str] = []
    waiting: Deferred[None] = Deferred()

    @contextmanager
    def moment() -> Iterator[None]:
        seen.append("begin")
        yield
        seen.append("end")

    async def handler(_request: Request) -> Answer:
        seen.append("handler")
        await waiting
        seen.append("waited")
        return FULL

    connection = Connection(handler, early=lambda _: seen.append("early"), moment=moment)
    connection.send(get())
    assert seen == ["begin", "early", "handler", "end"]
    waiting.callback(None)
    assert seen[4:] == ["waited"]
    assert connection.answer().status == 200


def test_an_error_before_any_processing_is_answered() -> None:
    def moment() -> AbstractContextManager[None]:
        raise RuntimeError("the catalog does not run")

    connection = Connection(answering_with(FULL), moment=moment)
    connection.send(get() + get(method="DELETE"))
    assert [answer.status for answer in connection.answers()] == [500, 500]


def test_prepared_content_is_opened_for_each_request() -> None:
    opened: list[int] = []

    def deliver(consumer: IConsumer, start: int, end: int) -> Deferred[None]:
        opened.append(start)
        consumer.write(BODY[start:end])
        return succeed(None)

    connection = Connection(answering_with(FULL), early=lambda _: PreparedAnswer(delivering(deliver)))
    connection.send(get() + get() + get("Range: bytes=5-\r\n"))
    assert [answer.body for answer in connection.answers()] == [BODY, BODY, b"56789"]
    assert opened == [0, 0, 5]


def test_prepared_refusal_is_sent_with_its_status() -> None:
    connection = Connection(answering_with(FULL), early=lambda _: PreparedAnswer(text_answer("gone", 404)))
    connection.send(get('If-None-Match: "e"\r\n'))
    assert (answer := connection.answer()).status == 404
    assert answer.body == b"gone"


def test_cache_keeps_what_was_used_last_within_its_bytes() -> None:
    cache: ResponseCache[str] = ResponseCache(limit=10_000)
    for key in range(3):
        cache.put(key, "entry", 1200)
    assert cache.get(0) == "entry"
    for key in range(3, 9):
        cache.put(key, "entry", 1200)
    assert cache.get(0) == "entry"
    assert cache.get(1) is None
    assert cache.size == 8 * 1200
    assert (cache.hits, cache.misses) == (2, 1)


def test_cache_replaces_and_forgets_without_losing_count() -> None:
    cache: ResponseCache[str] = ResponseCache(limit=10_000)
    cache.put("big", "x", 5000)
    assert cache.get("big") is None
    cache.put("a", "old", 100)
    cache.put("a", "new", 200)
    assert (cache.get("a"), cache.size) == ("new", 200)
    cache.drop("a")
    cache.drop("a")
    cache.put("b", "x", 100)
    cache.clear()
    assert (len(cache), cache.size) == (0, 0)


# Klein


def klein_connection() -> Connection:
    app = Klein()
    refuse_unrouted(app, ERRORS)

    @app.route("/text")
    def text(_request: Request) -> bytes:
        return b"plain"

    @app.route("/put/<name>", methods=["PUT"])
    @answering(ERRORS)
    async def put(request: Request, name: str) -> Answer:
        return text_answer(f"{name} {(await request.body.read_all(100)).decode()} {request.args!r}")

    @app.route("/folder/")
    def folder(_request: Request) -> bytes:
        return b"folder"

    @app.route("/wait")
    @answering(ERRORS)
    async def wait(_request: Request) -> Answer:
        await Deferred()
        return Answer()

    connection = Connection(answering_with(FULL))
    connection.lose()
    connection.site = make_site(app.resource(), reactor=connection.clock)
    connection.channel = connection.site.buildProtocol(None)
    connection.transport.unregisterProducer()
    connection.channel.makeConnection(connection.transport)
    return connection


def test_klein_route_reads_the_body() -> None:
    connection = klein_connection()
    connection.send(get("Content-Length: 5\r\n", "PUT", "/put/x%20y?q=1&q=2") + b"hello")
    assert connection.answer().body == b"x y hello {b'q': [b'1', b'2']}"


def test_what_klein_refuses_itself_is_worded_like_everything_else() -> None:
    connection = klein_connection()
    connection.send(get(path="/nowhere") + get(path="/put/x", method="DELETE"))
    missing, wrong = connection.answers()
    assert (missing.status, missing.body) == (404, b"there is nothing at this address")
    assert (wrong.status, wrong.headers["allow"]) == (405, "PUT")


def test_redirects_of_klein_are_kept() -> None:
    connection = klein_connection()
    connection.send(get(path="/folder?x=y"))
    answer = connection.answer()
    assert (answer.status, answer.headers["location"]) == (308, "http://a/folder/?x=y")


def test_address_that_is_not_utf8_never_reaches_klein() -> None:
    connection = klein_connection()
    connection.send(get(path="/put/%ff") + get(path="/put/%c3%a4", method="PUT"))
    bad, good = connection.answers()
    assert (bad.status, good.status) == (400, 200)


def test_klein_route_that_returns_bytes_still_works() -> None:
    connection = klein_connection()
    connection.send(get(path="/text"))
    data = connection.take()
    assert b"5\r\nplain\r\n0\r\n\r\n" in data
    assert b"X-Content-Type-Options: nosniff\r\n" in data
    connection.send(b"GET /text HTTP/1.0\r\n\r\n")
    assert connection.take().endswith(b"\r\n\r\nplain")
    assert connection.closed


def test_klein_route_is_cancelled_when_the_client_leaves() -> None:
    connection = klein_connection()
    connection.send(get(path="/wait"))
    connection.lose()
    assert connection.take() == b""
