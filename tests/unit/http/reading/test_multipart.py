"""Forms with files."""

from __future__ import annotations

import pytest

from pkgrepo.http.reading.multipart import MultipartLimits, read_form
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response, json_response
from tests.support.memory_connection import Connection

FORM = (
    b'--b\r\nContent-Disposition: form-data; name="name"\r\n\r\nD\xc3\xa4mon\r\n'
    b'--b\r\nContent-Disposition: form-data; name="content"; filename="a.whl"\r\n'
    b"Content-Type: application/octet-stream\r\n\r\n\r\n--\r\n-b\x00\xff\r\n"
    b'--b\r\nContent-Disposition: form-data; name="empty"\r\n\r\n\r\n'
    b"--b--\r\n"
)


def post(body: bytes, content_type: str = "multipart/form-data; boundary=b") -> bytes:
    head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


LIMITS = MultipartLimits(parts=3, text_bytes=10)


async def read(request: Request) -> Response:
    parts: list[list[str | None]] = []
    async for part in read_form(request.body, request.header(b"content-type"), LIMITS):
        if part.filename is None:
            parts.append([part.name, await part.read_text()])
        else:
            data = b"".join([chunk async for chunk in part])
            parts.append([part.name, part.filename, part.headers["content-type"], data.hex()])
    return json_response(parts)


EXPECTED = (
    '[["name","Dämon"],["content","a.whl","application/octet-stream","'
    + b"\r\n--\r\n-b\x00\xff".hex()
    + '"],["empty",""]]'
)


@pytest.mark.parametrize("step", [1, 3, 50, 10_000])
def test_parts_arrive_whole_however_the_network_cuts_them(step: int) -> None:
    connection = Connection(read)
    data = post(FORM)
    for at in range(0, len(data), step):
        connection.send(data[at : at + step])
    answer = connection.answer()
    assert (answer.status, answer.body.decode()) == (200, EXPECTED)


def test_parts_that_nobody_reads_are_passed_over() -> None:
    async def names(request: Request) -> Response:
        return json_response([part.name async for part in read_form(request.body, request.header(b"content-type"))])

    connection = Connection(names)
    for byte in post(FORM):
        connection.send(bytes([byte]))
    assert connection.answer().body == b'["name","content","empty"]'


def test_large_file_is_never_held() -> None:
    sizes: list[int] = []

    async def measure(request: Request) -> Response:
        async for part in read_form(request.body, request.header(b"content-type")):
            sizes.extend([len(chunk) async for chunk in part])
        return Response()

    body = b'--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n' + b"\r\n" * 500_000 + b"\r\n--b--"
    connection = Connection(measure)
    data = post(body)
    for at in range(0, len(data), 65536):
        connection.send(data[at : at + 65536])
    assert connection.answer().status == 200
    assert sum(sizes) == 1_000_000
    assert max(sizes) < 70_000


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (post(FORM[:-10]), 400),
        (post(b""), 400),
        (post(b"--b--"), 200),
        (post(b"no boundary at all, but long enough for one"), 400),
        (post(b"--b\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--\r\n"), 400),
        (post(b"--b\r\nnonsense\r\n\r\nx\r\n--b--\r\n"), 400),
        (post(b'--b\nContent-Disposition: form-data; name="x"\n\nx\n--b--\n'), 400),
        (post(b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n\xff\r\n--b--\r\n'), 400),
        (post(b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n12345678901\r\n--b--\r\n'), 413),
        (post(b'--b\r\nContent-Disposition: form-data; name="' + b"x" * 9000 + b'"\r\n\r\n\r\n--b--\r\n'), 413),
        (post(b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n\r\n' * 4 + b"--b--\r\n"), 413),
        (post(FORM, "multipart/form-data"), 400),
        (post(FORM, "multipart/mixed; boundary=b"), 415),
        (post(FORM, "multipart/form-datum; boundary=b"), 415),
        (post(FORM, "application/x-www-form-urlencoded"), 415),
    ],
)
def test_form_that_cannot_be_taken_is_refused_with_a_sentence(data: bytes, status: int) -> None:
    connection = Connection(read)
    connection.send(data)
    answer = connection.answer()
    assert answer.status == status
    assert status == 200 or len(answer.body) > 10
