"""Unusual request heads, sent to every kind of path: none is answered with a 5xx status."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.configurations import hosted
from tests.support.container_clients import ADMIN
from tests.support.http_client import HttpClient, basic, read_reply
from tests.support.server_process import ServerProcess, running

pytestmark = pytest.mark.server

CONFIG = """
server.trusted_proxies = ["127.0.0.1"]
limits.login_failures = 1000
""" + "".join((hosted("python", "py"), hosted("npm", "node"), hosted("docker", "images")))
PATHS = [
    "/",
    "*",
    "//",
    "/nowhere",
    "/%",
    "/%zz",
    "/%ff",
    "/a%0d%0ab",
    "/" + "a" * 20_000,
    "http://a:1/api",
    "/api",
    "/api/users?limit=1e9&after=%ff",
    "/api/repository/main%2Fpy/setup",
    "/api/" + "a/" * 5_000,
    "/repositories//",
    "/repositories/main/py/simple",
    "/repositories/main/py/simple/?format=%ff",
    "/repositories/main/py/simple/%ed%a0%80/",
    "/repositories/main/py/..%2f..%00",
    "/repositories/main/node/@a%2f",
    "/repositories/main/node/-/v1/search?text=%ff&size=abc&from=-1",
    "/repositories/main/node/" + "a" * 20_000,
    "/v2/",
    "/v2/main/images/app/tags/list?n=99999999999999999999&last=%00",
    "/v2/%00/manifests/x",
    "/v2/" + "a/" * 5_000 + "tags/list",
]
# Header fields as bytes, including Host.
FIELDS = [
    *[b"Host: " + host for host in (b"a..b", b".x", b"a" * 64, b"a" * 64 + b".b", b"xn--a", b"[:::]", b"a:99999")],
    *[b"Host: a\r\n" + line for line in (
        b"Accept: \xff\xfe",
        b"Accept: " + b"a/b;q=0.1," * 2_000,
        b"Accept-Encoding: gzip;q=x,\xff",
        b"Authorization: \xff",
        b"Authorization: Basic \xff",
        b"Authorization: Basic ////",
        b"Authorization: Bearer \xff.\xff.\xff",
        b"Authorization: Bearer eyJhbGciOiJub25lIn0.e30.",
        b"Content-Range: \xb2",
        b"Content-Type: \xff/;=",
        b"Cookie: \xff=\xfe; a",
        b'Forwarded: for="[::1";host="a..b";proto=x',
        b"If-Match: \xff",
        b"If-Modified-Since: Sun, 99 Nov 99999 99:99:99 GMT",
        b'If-None-Match: \xff"',
        b"Origin: http://[x",
        b"Range: bytes=--1,\xb2-",
        b"Referer: http://[x",
        b"Sec-Fetch-Site: \xff",
        b"User-Agent: \xff",
        b"X-Forwarded-For: [::, \xff, 1.2.3.4:x",
        b"X-Forwarded-Host: a..b",
        b"X-Forwarded-Host: [:::]",
        b"X-Forwarded-Port: 99999",
        b"X-Forwarded-Prefix: /\xff",
        b"X-Forwarded-Proto: \xff",
        b"X-Request-Id: \xff",
    )],
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("odd"), CONFIG) as process:
        yield process


@pytest.mark.parametrize("path", PATHS, ids=[path[:40] for path in PATHS])
def test_an_unusual_head_causes_no_server_error(server: ServerProcess, path: str) -> None:
    method = "POST" if PATHS.index(path) % 3 == 2 else "GET"
    known = f"Authorization: {basic(ADMIN)['Authorization']}\r\n".encode()
    connection = HttpClient(server.url).connect()
    for fields in FIELDS:
        for who in (b"",) if b"Authorization" in fields else (b"", known):
            head = f"{method} {path} HTTP/1.1\r\nContent-Length: 0\r\n".encode() + who + fields + b"\r\n\r\n"
            connection.sendall(head)
            reply = read_reply(connection, method)
            assert reply.status < 500, head
            if reply.headers.get("connection") == "close":
                connection.close()
                connection = HttpClient(server.url).connect()
    connection.close()


@pytest.mark.parametrize("host", ["a..b", ".x", "a" * 64])
@pytest.mark.parametrize("path", ["/", "/api", "/v2/", "/repositories/main/py/simple/", "/repositories/main/node/demo"])
def test_an_invalid_host_is_refused(server: ServerProcess, path: str, host: str) -> None:
    assert HttpClient(server.url).get(path, Host=host).status == 400


@pytest.mark.parametrize("method", ["DELETE", "PATCH", "TRACE"])
def test_nothing_is_changed_at_the_address_of_the_server(server: ServerProcess, method: str) -> None:
    assert HttpClient(server.url).ask(method, "/").status == 405
