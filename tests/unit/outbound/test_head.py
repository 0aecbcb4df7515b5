"""Heads of answers: what is read, and what is refused."""

import pytest

from pkgrepo.outbound.head import HEAD_BYTES, HEAD_LINES, LINE_BYTES, HeadReader, HeadTooLarge, NotHttp


def read(raw, *, bodiless=False):
    found = HeadReader(bodiless=bodiless).feed(raw)
    assert found is not None
    return found


def framing(fields, *, status=b"200 OK", version=b"1.1", bodiless=False):
    head, _ = read(b"HTTP/%s %s\r\n%s\r\n" % (version, status, fields), bodiless=bodiless)
    return head.length, head.chunked, head.persists


def test_fields_are_joined_by_name_and_the_rest_is_the_body():
    head, rest = read(b'HTTP/1.1 200 OK\r\nETag: "a"\r\nX-A:b \r\nx-a:\tc\r\nX-Empty:\r\nContent-Length: 2\r\n\r\nab')
    assert head.status == 200
    assert head.fields == {b"etag": b'"a"', b"x-a": b"b, c", b"x-empty": b"", b"content-length": b"2"}
    assert rest == b"ab"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (b"Content-Length: 3\r\n", (3, False, True)),
        (b"Content-Length: 3\r\nContent-Length: 3\r\n", (3, False, True)),
        (b"Content-Length: 3, 3\r\n", (3, False, True)),
        (b"Content-Length: 3\r\nConnection: keep-alive, Close\r\n", (3, False, False)),
        (b"Transfer-Encoding: Chunked\r\n", (None, True, True)),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", (None, True, False)),
        (b"", (None, False, False)),
    ],
)
def test_framing_of_the_body(fields, expected):
    assert framing(fields) == expected


@pytest.mark.parametrize(("status", "bodiless"), [(b"204 None", False), (b"304 Same", False), (b"200 OK", True)])
def test_answers_without_a_body(status, bodiless):
    assert framing(b"Content-Length: 3\r\n", status=status, bodiless=bodiless) == (0, False, True)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (b"Content-Length: 3\r\n", (3, False, False)),
        (b"Content-Length: 3\r\nConnection: Keep-Alive\r\n", (3, False, True)),
        (b"Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n", (None, True, False)),
    ],
)
def test_version_1_0_keeps_connections_only_if_it_says_so(fields, expected):
    assert framing(fields, version=b"1.0") == expected


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_pieces_of_any_size(size):
    raw = b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab"
    reader = HeadReader(bodiless=False)
    found, at = None, 0
    while found is None:
        found, at = reader.feed(raw[at : at + size]), at + size
    assert (found[0].status, found[0].length) == (200, 1)
    assert found[1] + raw[at:] == b"ab"


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-server\r\n",
        b"\r\n",
        b"HTTP/2 200\r\n",
        b"HTTP/1.1  200 OK\r\n",
        b"HTTP/1.1 +20 OK\r\n",
        b"HTTP/1.1 200 OK\nA: b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\nB: c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\rB: c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n: b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: \0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0x1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1111111111111111111\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 1\n\na",  # no end that would be waited for
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\n\na",
    ],
    ids=[f"odd-{number}" for number in range(22)],
)
def test_what_is_ambiguous_or_no_head_is_refused(raw):
    with pytest.raises(NotHttp):
        HeadReader(bodiless=False).feed(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * HEAD_LINES + b"\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * HEAD_LINES,
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * LINE_BYTES + b"\r\n\r\n",
        b"H" * (LINE_BYTES + 1),
        b"HTTP/1.1 200 OK\r\n" + b"A: %s\r\n" % (b"b" * 15_000) * 5 + b"\r\n",
        b"HTTP/1.1 100 Go\r\n\r\n" * HEAD_LINES,
        b"HTTP/1.1 100 Go\r\nA: %s\r\n\r\n" % (b"b" * 15_000) * (HEAD_BYTES // 15_000 + 1),
    ],
    ids=[f"large-{number}" for number in range(7)],
)
def test_large_heads_are_refused(raw):
    with pytest.raises(HeadTooLarge):
        HeadReader(bodiless=False).feed(raw)
