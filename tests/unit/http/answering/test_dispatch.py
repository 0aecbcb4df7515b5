"""Routes of Klein as handlers."""

from __future__ import annotations

from klein import Klein
from twisted.internet.defer import Deferred

from pkgrepo.http.answering.dispatch import answering, refuse_unrouted
from pkgrepo.http.answers import Answer, text_answer
from pkgrepo.http.request import Request
from pkgrepo.http.site import make_site
from tests.support.http_answering import FULL, answering_with, get
from tests.support.memory_connection import ERRORS, Connection


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
