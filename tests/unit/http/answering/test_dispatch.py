"""Routes of Klein as handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from klein import Klein
from twisted.internet.defer import CancelledError, Deferred
from werkzeug.exceptions import MethodNotAllowed

from pkgrepo.http.answering.dispatch import App, ErrorTable, answering, refuse_unrouted
from pkgrepo.http.answering.send import send
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Content, Refusal, Response, text_response
from pkgrepo.http.site import make_site
from tests.support.http_answering import BODY, FULL, answering_with, get
from tests.support.memory_connection import ERRORS, Connection, render_text


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
    async def handler(_request: Request) -> Response:
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

    connection = Connection(answering_with(FULL), find_prepared=early)
    connection.send(get())
    answer = connection.answer()
    assert (answer.status, b"swordfish" in answer.body) == (500, False)


def test_content_that_cannot_be_opened_is_an_error_of_its_own() -> None:
    def vanished() -> int:
        raise FileNotFoundError

    connection = Connection(answering_with(Response(body=Content(10, vanished))))
    connection.send(get() + get())
    assert [answer.status for answer in connection.answers()] == [500, 500]


def test_error_after_the_head_cuts_the_connection() -> None:
    async def handler(request: Request) -> Response:
        request.write(b"some")
        raise ValueError("and no more")

    connection = Connection(handler)
    connection.send(get())
    assert connection.aborted


def test_error_after_the_answer_leaves_the_connection_alone() -> None:
    async def handler(request: Request) -> Response:
        await send(request, FULL)
        raise ValueError("too late to matter")

    connection = Connection(handler)
    connection.send(get() + get())
    assert [answer.body for answer in connection.answers()] == [BODY, BODY]
    assert not connection.aborted


def test_error_while_wording_an_error_is_answered_all_the_same() -> None:
    def broken(_request: Request, _refusal: Refusal) -> Response:
        raise ValueError("cannot even say it")

    connection = Connection(failing(Refusal(409, "no")))
    connection.site.resource.errors = ErrorTable({}, broken)
    connection.send(get() + get())
    assert [answer.status for answer in connection.answers()] == [500, 500]


def test_handler_that_is_cancelled_while_its_client_waits_is_answered() -> None:
    async def handler(_request: Request) -> Response:
        raise CancelledError

    connection = Connection(handler)
    connection.send(get() + get())
    assert [answer.status for answer in connection.answers()] == [500, 500]


def test_second_answer_to_a_request_is_an_error() -> None:
    seen: list[str] = []

    async def handler(request: Request) -> Response:
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


def klein_connection() -> Connection:
    app = Klein()
    refuse_unrouted(app, ERRORS)

    @app.route("/text")
    def text(_request: Request) -> bytes:
        return b"plain"

    @app.route("/put/<name>", methods=["PUT"])
    @answering(ERRORS)
    async def put(request: Request, name: str) -> Response:
        return text_response(f"{name} {(await request.body.read_all(100)).decode()} {request.args!r}")

    @app.route("/folder/")
    def folder(_request: Request) -> bytes:
        return b"folder"

    @app.route("/wait")
    @answering(ERRORS)
    async def wait(_request: Request) -> Response:
        await Deferred()
        return Response()

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


def test_routes_match_by_method_and_converter_and_build_no_addresses() -> None:
    app = App()
    for path, method in [
        ("/a/<name>", "GET"),
        ("/a/<name>", "PUT"),
        ("/a/<int:number>", "GET"),
        ("/<raw:rest>", "GET"),
    ]:
        app.route(path, methods=[method], endpoint=f"{method} {path}")(lambda _request, **_: None)
    adapter = app.url_map.bind("localhost")
    assert adapter.match("/a/x", method="PUT") == ("PUT /a/<name>", {"name": "x"})
    assert adapter.match("/a/17", method="GET") == ("GET /a/<int:number>", {"number": 17})
    assert adapter.match("/b//c/", method="GET") == ("GET /<raw:rest>", {"rest": "b//c/"})
    with pytest.raises(NotImplementedError):
        adapter.build("GET /a/<name>", {"name": "x"})


async def test_applications_of_the_same_routes_share_the_rules_and_not_the_handlers() -> None:
    called: list[tuple[str, str]] = []

    def handlers(owner: str) -> Any:
        async def handle(_request: Any, name: str = "") -> None:
            called.append((owner, name))

        return {("GET", "/a/<name>"): handle, ("POST", "/b"): handle}

    apps = [App(), App(), App()]
    apps[0].serve(handlers("first"))
    apps[1].serve(handlers("second"))
    apps[2].serve({("GET", "/a/<name>"): handlers("third")["POST", "/b"]})
    assert apps[0].url_map is apps[1].url_map is not apps[2].url_map
    for app in apps:
        endpoint, at = app.url_map.bind("localhost").match("/a/x", method="HEAD")
        await app.execute_endpoint(endpoint, object(), **at)  # type: ignore[misc]
    assert called == [("first", "x"), ("second", "x"), ("third", "x")]
    with pytest.raises(MethodNotAllowed):
        apps[1].url_map.bind("localhost").match("/b", method="GET")
    with pytest.raises(AssertionError, match="has routes"):
        apps[0].serve({})
