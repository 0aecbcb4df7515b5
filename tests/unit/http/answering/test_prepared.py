"""Early answers, and the cache that they come from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IConsumer

from pkgrepo.concurrency.lru import SizedCache
from pkgrepo.http.answering.prepared import PreparedResponse
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Content, Response, text_response
from tests.support.http_answering import BODY, FULL, answering_with, get
from tests.support.memory_connection import Connection


def delivering(write: Callable[[IConsumer, int, int], Awaitable[None]]) -> Response:
    return Response(body=Content(10, deliver=write), ranges=True)


def test_early_answers_are_only_asked_for_reads_without_a_body() -> None:
    seen: list[bytes] = []

    def early(request: Request) -> None:
        seen.append(request.method + b" " + request.raw_path + b" " + request.raw_query)

    connection = Connection(answering_with(FULL), find_prepared=early)
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

    async def handler(_request: Request) -> Response:
        seen.append("handler")
        await waiting
        seen.append("waited")
        return FULL

    connection = Connection(handler, find_prepared=lambda _: seen.append("early"), request_context=moment)
    connection.send(get())
    assert seen == ["begin", "early", "handler", "end"]
    waiting.callback(None)
    assert seen[4:] == ["waited"]
    assert connection.answer().status == 200


def test_an_error_before_any_processing_is_answered() -> None:
    def moment() -> AbstractContextManager[None]:
        raise RuntimeError("the catalog does not run")

    connection = Connection(answering_with(FULL), request_context=moment)
    connection.send(get() + get(method="DELETE"))
    assert [answer.status for answer in connection.answers()] == [500, 500]


def test_prepared_content_is_opened_for_each_request() -> None:
    opened: list[int] = []

    def deliver(consumer: IConsumer, start: int, end: int) -> Deferred[None]:
        opened.append(start)
        consumer.write(BODY[start:end])
        return succeed(None)

    connection = Connection(answering_with(FULL), find_prepared=lambda _: PreparedResponse(delivering(deliver)))
    connection.send(get() + get() + get("Range: bytes=5-\r\n"))
    assert [answer.body for answer in connection.answers()] == [BODY, BODY, b"56789"]
    assert opened == [0, 0, 5]


def test_prepared_content_that_is_not_there_is_answered_by_the_handler() -> None:
    def missing(_consumer: IConsumer, _start: int, _end: int) -> Deferred[None]:
        return fail(OSError("the network is down"))

    connection = Connection(
        answering_with(text_response("it is gone", 404)), find_prepared=lambda _: PreparedResponse(delivering(missing))
    )
    connection.send(get() + get("Range: bytes=5-\r\n"))
    assert [(answer.status, answer.body) for answer in connection.answers()] == [(404, b"it is gone")] * 2


def test_prepared_refusal_is_sent_with_its_status() -> None:
    connection = Connection(answering_with(FULL), find_prepared=lambda _: PreparedResponse(text_response("gone", 404)))
    connection.send(get('If-None-Match: "e"\r\n'))
    assert (answer := connection.answer()).status == 404
    assert answer.body == b"gone"


def test_cache_keeps_what_was_used_last_within_its_bytes() -> None:
    cache: SizedCache[str] = SizedCache(limit=10_000)
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
    cache: SizedCache[str] = SizedCache(limit=10_000)
    cache.put("big", "x", 5000)
    assert cache.get("big") is None
    cache.put("a", "old", 100)
    cache.put("a", "new", 200)
    assert (cache.get("a"), cache.size) == ("new", 200)
    cache.pop("a")
    cache.pop("a")
    cache.put("b", "x", 100)
    cache.clear()
    assert (len(cache), cache.size) == (0, 0)
