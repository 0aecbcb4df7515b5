"""Heads that leave no room for a second reading."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkgrepo.http.limits import HttpLimits
from pkgrepo.http.reading.head import BadHead, parse_fields, parse_request_line
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response, text_response
from tests.support.memory_connection import Connection

SMUGGLING = [
    (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "two hosts"),
    (b"GET / HTTP/1.1\r\n\r\n", "no host"),
    (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "a coding in 1.0"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "both"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", "both, turned"),
    (b"GET / HTTP/1.1\r\nHost: a\r\nX-A: b\r\n c\r\n\r\n", "a folded line"),
    (b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", "a folded first line"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", "identity"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "another coding"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "two codings"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0bchunked\r\n\r\n", "a control before the value"),
    (b"GET / HTTP/1.1\nHost: a\n\n", "bare LF"),
    (b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", "one bare LF"),
    (b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", "a bare CR"),
    (b"GET / HTTP/1.1\r\nHost: a\r\nX: b\x00\r\n\r\n", "NUL"),
    (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "a blank before the colon"),
    (b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", "no name"),
    (b"GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n", "no colon"),
    (b"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", "a method that is no token"),
    (b" / HTTP/1.1\r\nHost: a\r\n\r\n", "no method"),
    (b"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", "a control in the target"),
    (b"GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n", "a raw byte in the target"),
    (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "two blanks"),
    (b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "a blank in the target"),
    (b"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", "a tab"),
    (b"GET a HTTP/1.1\r\nHost: a\r\n\r\n", "a relative target"),
    (b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "a tunnel"),
    (b"GET / HTTP/1.11\r\nHost: a\r\n\r\n", "a long version"),
    (b"GET / http/1.1\r\nHost: a\r\n\r\n", "a version in lower case"),
    (b"GET /\r\nHost: a\r\n\r\n", "HTTP/0.9"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nabcde", "a signed length"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n", "a negative length"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5_0\r\n\r\n", "an underscore"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n", "a hexadecimal length"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", "an empty length"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", "an endless length"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nabcde", "the length twice"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nabcde", "two lengths in one"),
    (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "a host with a path"),
    (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "a host with a blank"),
    (b"GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", "a host with a user"),
    (b"GET / HTTP/1.1\r\nHost: a..b\r\n\r\n", "a host with an empty label"),
    (b"GET / HTTP/1.1\r\nHost: .a\r\n\r\n", "a host that begins with a dot"),
    (b"GET / HTTP/1.1\r\nHost: .\r\n\r\n", "a host of a dot"),
    (b"GET / HTTP/1.1\r\nHost: " + b"a" * 64 + b".b\r\n\r\n", "a host with a long label"),
    (b"GET / HTTP/1.1\r\nHost: " + b"a." * 150 + b"b\r\n\r\n", "a long host"),
    (b"GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n", "a port that is none"),
    (b"GET / HTTP/1.1\r\nHost: [1.2.3.4]\r\n\r\n", "brackets without an IPv6 address"),
    (b"GET / HTTP/1.1\r\nHost: [::1::]\r\n\r\n", "no IPv6 address"),
    (b"GET http://a..b/ HTTP/1.1\r\nHost: a\r\n\r\n", "an address with an empty label"),
    (b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "two empty lines first"),
    (b"GET http://user@a/ HTTP/1.1\r\nHost: a\r\n\r\n", "an address with a user"),
]


async def unreachable(_request: Request) -> Response:
    raise AssertionError("the request must not be handled")


async def echo_target(request: Request) -> Response:
    return text_response(f"{request.method.decode()} {request.uri.decode()} {request.header(b'x')!r}")


@pytest.mark.parametrize("data", [data for data, _ in SMUGGLING], ids=[why for _, why in SMUGGLING])
def test_ambiguous_head_is_refused_and_the_connection_closed(data: bytes) -> None:
    connection = Connection(unreachable)
    connection.send(data)
    answer = connection.answer()
    assert answer.status == 400
    assert answer.headers["connection"] == "close"
    assert answer.headers["content-type"] == "application/json"
    told = json.loads(answer.body)
    assert told == {"error": told["error"], "errors": [{"code": "UNKNOWN", "message": told["error"]}]}
    connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert connection.take() == b""
    connection.wait(2)
    assert connection.closed


@pytest.mark.parametrize("data", [data for data, _ in SMUGGLING], ids=[why for _, why in SMUGGLING])
def test_ambiguous_head_is_refused_also_when_it_drips_in(data: bytes) -> None:
    connection = Connection(unreachable)
    for byte in data:
        connection.send(bytes([byte]))
    assert connection.answer().status == 400


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"POST / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n", 417),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 33000 + b"\r\n\r\n", 431),
        (b"GET /" + b"y" * 33000, 431),
    ],
)
def test_head_that_is_understood_but_not_served_gets_its_own_status(data: bytes, status: int) -> None:
    connection = Connection(unreachable)
    connection.send(data)
    assert connection.answer().status == status


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        (b"GET /a%2fb?c=d HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a%2fb?c=d None"),
        (b"\r\nGET / HTTP/1.1\r\nhOsT:a:80\r\n\r\n", "GET / None"),
        (b"GET / HTTP/1.1\r\nHost: [::1]:80\r\nX:\t b \t\r\n\r\n", "GET / b'b'"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\nx: c\r\n\r\n", "GET / b'b, c'"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n", "GET / b''"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: \xc3\xa4\r\n\r\n", "GET / b'\\xc3\\xa4'"),
        (b"GET http://b:81/c?d HTTP/1.1\r\nHost: a\r\n\r\n", "GET /c?d None"),
        (b"GET http://b HTTP/1.1\r\nHost: a\r\n\r\n", "GET / None"),
        (b"GET / HTTP/1.0\r\n\r\n", "GET / None"),
        (b"GET / HTTP/1.1\r\nHost: a.b-c.example.:65535\r\n\r\n", "GET / None"),
        (b"GET / HTTP/1.1\r\nHost: my_host\r\n\r\n", "GET / None"),
        (b"GET / HTTP/1.1\r\nHost: " + b"a" * 63 + b".b\r\n\r\n", "GET / None"),
        (b"PURGE / HTTP/1.1\r\nHost: a\r\n\r\n", "PURGE / None"),
    ],
)
def test_unusual_but_clear_head_is_served(data: bytes, seen: str) -> None:
    connection = Connection(echo_target)
    connection.send(data)
    assert connection.answer().body.decode() == seen


def test_head_is_found_wherever_the_network_cuts_it() -> None:
    data = b"GET /a HTTP/1.1\r\nHost: a\r\nX: b\r\n\r\n"
    for cut in range(1, len(data)):
        connection = Connection(echo_target)
        connection.send(data[:cut])
        assert connection.take() == b""
        connection.send(data[cut:])
        assert connection.answer().body == b"GET /a b'b'"


def test_fields_of_an_earlier_request_do_not_show_in_a_later_one() -> None:
    connection = Connection(echo_target)
    connection.send(b"GET /1 HTTP/1.1\r\nHost: a\r\nX: b\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n")
    connection.send(b"GET /3 HTTP/1.1\r\nHost: a\r\nX: b\r\n\r\n")
    assert [answer.body for answer in connection.answers()] == [b"GET /1 b'b'", b"GET /2 None", b"GET /3 b'b'"]


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_refused(data: bytes) -> None:
    for parse in (parse_request_line, lambda raw: parse_fields(raw, HttpLimits())):
        try:
            parse(data)
        except BadHead as bad:
            status = bad.status
        else:
            status = 400
        assert 400 <= status < 600


@given(
    st.lists(st.sampled_from([b"GET / HTTP/1.1\r\n", b"Host: a\r\n", b"\r\n", b"\n", b"a: b\r\n", b" ", b"x", b":"]))
)
def test_any_stream_leaves_a_connection_that_answers_in_whole_messages(pieces: list[bytes]) -> None:
    connection = Connection(echo_target)
    for piece in pieces:
        connection.send(piece)
    connection.answers()
