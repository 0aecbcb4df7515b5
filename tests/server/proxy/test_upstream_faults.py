"""Upstreams that break off, stall, or send more than anybody wants."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from pkgrepo.errors import (
    UpstreamFailed,
    UpstreamTimeout,
    UpstreamTooLarge,
    UpstreamTruncated,
    UpstreamUnavailable,
)
from pkgrepo.model import ReadLimits
from tests.support.upstreams import faults
from tests.support.upstreams.messages import Answer, Fault

pytestmark = pytest.mark.server

BODY = bytes(range(256)) * 1000
MIB = 1024 * 1024
SHORT_S = 0.05  # seconds; the upstream is silent until the test ends
PATIENT_S = 2.0  # seconds; the upstream sends something within it before it is silent, also on a slow machine


async def fetch(upstream: Any, url: str = "x", **options: Any) -> bytes:
    async with upstream.open("GET", url, **options) as response:
        body: bytes = await response.read()
        return body


async def measure(upstream: Any, sizes: list[int], **options: Any) -> None:
    async with upstream.open("GET", "x", **options) as response:
        async for chunk in response.chunks():
            sizes.append(len(chunk))  # noqa: PERF401 - what came before an error counts


@pytest.mark.parametrize(
    "fault",
    [
        faults.TRUNCATED,
        faults.RESET,
        faults.CHUNKED_WITHOUT_END,
        faults.truncated_by(1, announce=True),
        Fault(length=len(BODY) + 1),
    ],
)
async def test_body_that_is_cut_is_never_complete(scene: Any, fault: Any) -> None:
    server = scene.serve({"/x": BODY})
    server.misbehave("/x", fault)
    upstream = scene.upstream(server.url)
    with pytest.raises(UpstreamTruncated):
        await fetch(upstream)
    assert upstream.health().failures == 1
    assert await fetch(upstream) == BODY


async def test_upstream_that_does_not_answer(scene: Any) -> None:
    server = scene.serve({"/x": BODY})
    server.misbehave("/x", faults.STALL_BEFORE_HEAD, repeat=True)
    for settings, name in (
        ({"idle_timeout_s": SHORT_S}, "proxy.idle_timeout"),
        ({"route": {"idle_timeout_s": SHORT_S}}, "idle_timeout of the route"),
    ):
        with pytest.raises(UpstreamTimeout) as caught:
            await fetch(scene.upstream(server.url, **settings))
        assert caught.value.reason == f"it did not answer within {SHORT_S} s ({name})"
    assert server.count() == 2


async def test_connection_that_is_used_again_has_the_same_limits(scene: Any) -> None:
    server = scene.serve({"/x": BODY})
    upstream = scene.upstream(server.url, idle_timeout_s=PATIENT_S)
    assert await fetch(upstream) == BODY
    server.misbehave("/x", faults.STALL_BEFORE_HEAD)
    with pytest.raises(UpstreamTimeout, match=rf"did not answer within {PATIENT_S:g}(\.0)? s \(proxy.idle_timeout\)"):
        await fetch(upstream)
    assert (server.connections, await fetch(upstream)) == (1, BODY)


async def test_body_that_stalls(scene: Any) -> None:
    server = scene.serve({"/x": BODY})
    server.misbehave("/x", faults.STALL_IN_BODY)
    upstream = scene.upstream(server.url, idle_timeout_s=PATIENT_S)
    async with upstream.open("GET", "x") as response:
        assert await anext(response.chunks()) == BODY[:10]
        with pytest.raises(UpstreamTimeout, match=r"proxy\.idle_timeout"):
            await anext(response.chunks())
    assert upstream.health().failures == 1


async def test_document_that_takes_too_long_in_all(scene: Any) -> None:
    server = scene.serve({"/x": Answer(body=BODY, fault=Fault(rate=1000))})
    with pytest.raises(UpstreamTimeout, match=r"proxy\.document_timeout"):
        await fetch(scene.upstream(server.url), limits=ReadLimits(MIB, total_s=0.5))


async def test_endless_body_ends_at_the_limit(scene: Any) -> None:
    server = scene.serve({"/x": Answer(body=BODY, fault=faults.ENDLESS_BODY)})
    sizes: list[int] = []
    with pytest.raises(UpstreamTooLarge, match=str(10 * MIB)):
        await measure(scene.upstream(server.url), sizes, limits=ReadLimits(10 * MIB))
    assert sum(sizes) <= 10 * MIB


async def test_announced_length_above_the_limit_is_refused_at_once(scene: Any) -> None:
    server = scene.serve({"/x": BODY})
    server.misbehave("/x", faults.STALL_IN_BODY)
    with pytest.raises(UpstreamTooLarge):
        await fetch(scene.upstream(server.url), limits=ReadLimits(len(BODY) - 1))


async def test_endless_head_is_cut_off(scene: Any) -> None:
    server = scene.serve({"/x": Answer(body=BODY, fault=faults.ENDLESS_HEAD)})
    with pytest.raises(UpstreamFailed, match="the head of its answer is too large"):
        await fetch(scene.upstream(server.url))


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000 + b"\r\n", "head of its answer is too large"),
        (b"HTTP/1.1 200 OK\nX: " + b"a" * 70_000, "head of its answer is too large|before its answer"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 16_500 + b"\r\n\r\n", "too large, or a line in it"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 16_500, "too large, or a line in it"),
        (b"HTTP/1.1 103 Early\r\n\r\n" * 1000, "head of its answer is too large"),
        (b"HTTP/1.1 0150 Odd\r\n\r\n" * 1000, "head of its answer is too large"),
        (b"SSH-2.0-server\r\n", "does not answer in HTTP"),
        (b"HTTP/1.1 abc\r\n\r\n", "does not answer in HTTP"),
        (b"\r\n\r\n", "does not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "does not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "does not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "does not answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\n continued\r\n\r\n", "does not answer in HTTP"),
        (b"HTTP/1.1 99 Low\r\nContent-Length: 0\r\n\r\n", "it answers 99"),
        (b"HTTP/1.1 999 Denied\r\nContent-Length: 0\r\n\r\n", "it answers 999"),
    ],
)
async def test_answer_with_an_odd_head(scene: Any, answer: bytes, sentence: str) -> None:
    server = scene.serve_raw(lambda connection, _head: connection.write(answer))
    with pytest.raises(UpstreamFailed, match=sentence):
        await fetch(scene.upstream(server.url))


@pytest.mark.parametrize("body", [b"zz\r\nabc", b"1" * 2000, b"3\r\nabcdef", b"0\r\n" + b"A: b\r\n" * 20_000])
async def test_chunked_body_with_odd_framing(scene: Any, body: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server = scene.serve_raw(lambda connection, _head: connection.write(head + body))
    with pytest.raises(UpstreamTruncated):
        await fetch(scene.upstream(server.url))


async def test_informational_heads_precede_the_answer(scene: Any) -> None:
    answer = (
        b"HTTP/1.1 103 Early\r\nLink: <x>\r\n\r\nHTTP/1.1 100 Go\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    )
    server = scene.serve_raw(lambda connection, _head: connection.write(answer))
    upstream = scene.upstream(server.url)
    for _ in range(2):
        assert await fetch(upstream) == b"ok"


async def test_document_may_be_compressed(scene: Any) -> None:
    server = scene.serve({"/x": Answer(body=BODY, compress=True)})
    upstream = scene.upstream(server.url)
    async with upstream.open("GET", "x", decode=True) as response:
        assert response.length is None
        assert response.headers.get("Content-Encoding") is None
        sizes = [len(chunk) async for chunk in response.chunks()]
    assert (sum(sizes), max(sizes) <= 65536) == (len(BODY), True)
    assert await fetch(upstream) == BODY
    assert [request.fields["accept-encoding"] for request in server.requests()] == ["gzip", "identity"]


async def test_file_that_is_compressed_unasked_is_inflated(scene: Any) -> None:
    server = scene.serve({"/x": BODY})
    server.misbehave("/x", faults.gzipped)
    assert await fetch(scene.upstream(server.url)) == BODY


async def test_compressed_answer_without_a_body(scene: Any) -> None:
    server = scene.serve({"/x": Answer(200, b"", {"Content-Encoding": "gzip"})})
    upstream = scene.upstream(server.url)
    assert await fetch(upstream, decode=True) == b""
    async with upstream.open("HEAD", "x", decode=True) as response:
        assert await response.read() == b""


async def test_gzip_bomb_is_not_inflated(scene: Any) -> None:
    server = scene.serve({"/x": faults.gzip_bomb()})
    sizes: list[int] = []
    with pytest.raises(UpstreamFailed, match="inflates to more than"):
        await measure(scene.upstream(server.url), sizes, decode=True)
    assert max(sizes) <= 65536
    assert sum(sizes) <= 250 * MIB


@pytest.mark.parametrize(
    ("body", "coding", "sentence"),
    [
        (gzip.compress(BODY)[:-4], "gzip", "ends within compressed data"),
        (gzip.compress(BODY) + b"plain", "gzip", "not in gzip"),
        (b"plain", "gzip", "not in gzip"),
        (b"plain", "br", "not asked for"),
        (gzip.compress(gzip.compress(BODY)), "gzip, gzip", "not asked for"),
    ],
)
async def test_body_that_cannot_be_decoded(scene: Any, body: bytes, coding: str, sentence: str) -> None:
    server = scene.serve({"/x": Answer(200, body, {"Content-Encoding": coding})})
    with pytest.raises(UpstreamFailed, match=sentence):
        await fetch(scene.upstream(server.url), decode=True)


async def test_unknown_host(scene: Any) -> None:
    scene.names(**{"mirror.example": ""})
    with pytest.raises(UpstreamUnavailable, match="its name cannot be resolved"):
        await fetch(scene.upstream("http://mirror.example"))
