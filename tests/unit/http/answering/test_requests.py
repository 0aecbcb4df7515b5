"""What requests tell of themselves."""

from __future__ import annotations

from pkgrepo.http.answers import Answer, json_answer
from pkgrepo.http.request import Request
from tests.support.http_answering import answering_with, get
from tests.support.memory_connection import Connection


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
