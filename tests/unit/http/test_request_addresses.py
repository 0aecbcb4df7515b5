"""The addresses of requests on one connection, which are computed once for the same header fields."""

from __future__ import annotations

from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response, text_response
from tests.support.memory_connection import Connection


async def address(request: Request) -> Response:
    return text_response(f"{request.client_address} {request.base_url}")


def get(target: str, *fields: str) -> bytes:
    return "\r\n".join((f"GET {target} HTTP/1.1", *fields, "", "")).encode()


def test_each_request_has_the_addresses_of_its_own_head() -> None:
    connection = Connection(address, trusted_proxies=["192.168.0.0/16"])
    one, two = "X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 192.0.2.2"
    heads = [
        (get("/", "Host: a", one), "192.0.2.1 http://a"),
        (get("/b", "Host: a", one), "192.0.2.1 http://a"),
        (get("http://c/", "Host: a", one), "192.0.2.1 http://c"),
        (get("/", "Host: a", one), "192.0.2.1 http://a"),
        (get("/", "Host: a", two), "192.0.2.2 http://a"),
        (get("http://c/", "Host: a", two), "192.0.2.2 http://c"),
        (get("/", "Host: d", two), "192.0.2.2 http://d"),
        (get("/", "Host: d"), "192.168.1.1 http://d"),
    ]
    connection.send(b"".join(head for head, _ in heads))
    assert [answer.body.decode() for answer in connection.answers()] == [expected for _, expected in heads]
