"""What the upstream client sends, and the answers it hands out."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_twisted

from pkgrepo.errors import (
    Invalid,
    UpstreamFailed,
    UpstreamForbiddenAddress,
    UpstreamLimited,
    UpstreamTruncated,
    UpstreamUnavailable,
)
from pkgrepo.model import ReadLimits, UpstreamState
from tests.support.inprocess_server import turn, until
from tests.support.raw_server import by_path, in_turn, reply, response_head
from tests.support.upstreams.faults import failing, redirect
from tests.support.upstreams.server import ScriptedUpstream

pytestmark = pytest.mark.server


async def fetch(upstream: Any, url: str = "x", headers: Any = None, **options: Any) -> tuple[int, bytes]:
    async with upstream.open("GET", url, headers, **options) as response:
        return response.status, await response.read()


@pytest_twisted.ensureDeferred
async def test_answer_of_a_path_below_the_route(scene: Any) -> None:
    server = scene.serve(reply(b"hello", Content_Type="text/plain", X_Twice="a\r\nX-Twice: b"))
    upstream = scene.upstream(f"{server.url}/npm/")
    async with upstream.open("GET", "@scope%2fname?a=b%20c&d=?", {"Accept": "text/*"}) as response:
        assert (response.status, response.length, response.framed) == (200, 5, True)
        assert response.url == f"{server.url}/npm/@scope%2fname?a=b%20c&d=?"
        assert response.headers.get("CONTENT-type") == "text/plain"
        assert response.headers.get("x-twice") == "a, b"
        assert response.headers.get("etag") is None
        assert [chunk async for chunk in response.chunks()] == [b"hello"]
    (head,) = server.heads
    assert head.target == "/npm/@scope%2fname?a=b%20c&d=?"
    assert head.fields["accept"] == "text/*"
    assert head.fields["accept-encoding"] == "identity"
    assert head.fields["user-agent"].startswith("pkgrepo/")
    assert upstream.health().successes == 1


@pytest_twisted.ensureDeferred
async def test_body_read_to_its_end_keeps_the_connection(scene: Any) -> None:
    server = scene.serve(
        in_turn(reply(b"one"), reply(status="404 Not Found"), reply(status="304 Not Modified"), reply(b"4"))
    )
    upstream = scene.upstream(server.url)
    answers = [await fetch(upstream) for _ in range(4)]
    assert answers == [(200, b"one"), (404, b""), (304, b""), (200, b"4")]
    assert len(server.connections) == 1


@pytest_twisted.ensureDeferred
async def test_head_request_has_the_length_of_the_file(scene: Any) -> None:
    server = scene.serve(reply(b"x" * 1000))
    async with scene.upstream(server.url).open("HEAD", "x", limits=ReadLimits(10)) as response:
        assert (response.length, await response.read()) == (1000, b"")


@pytest_twisted.ensureDeferred
async def test_leaving_before_the_end_closes_the_connection(scene: Any) -> None:
    server = scene.serve(lambda connection, _: connection.send(response_head(Content_Length="1000000"), b"x" * 1000))
    async with scene.upstream(server.url).open("GET", "x") as response:
        assert await anext(response.chunks())
    await until(lambda: server.connections[0].is_lost)


@pytest_twisted.ensureDeferred
async def test_slow_reader_slows_the_upstream_down(scene: Any) -> None:
    size = 64 * 1024 * 1024
    sent = []

    def pour(connection: Any, _head: Any) -> None:
        class Producer:
            def resumeProducing(self) -> None:
                if len(sent) * 65536 < size:
                    sent.append(None)
                    connection.transport.write(bytes(65536))
                else:
                    connection.transport.unregisterProducer()

            def stopProducing(self) -> None: ...

        connection.send(response_head(Content_Length=str(size)))
        connection.transport.registerProducer(Producer(), False)

    server = scene.serve(pour)
    async with scene.upstream(server.url).open("GET", "x", limits=ReadLimits(size)) as response:
        chunks = response.chunks()
        received = len(await anext(chunks))
        for _ in range(2000):
            await turn()
        assert len(sent) * 65536 < size  # socket buffers hold a few MiB
        biggest = 0
        async for chunk in chunks:
            received += len(chunk)
            biggest = max(biggest, len(chunk))
    assert received == size
    assert biggest <= 512 * 1024


@pytest_twisted.ensureDeferred
async def test_credentials_go_to_the_host_of_the_route_alone(scene: Any) -> None:
    other = scene.serve(reply(b"file"))
    server = scene.serve(reply(status="302 Found", Location=f"{other.url}/file?sig=a%2Bb"))
    upstream = scene.upstream(server.url, route={"authorization": "Basic bWU6c2VjcmV0"})
    assert await fetch(upstream) == (200, b"file")
    assert await fetch(upstream, f"{other.url}/file") == (200, b"file")
    assert server.heads[0].fields["authorization"] == "Basic bWU6c2VjcmV0"
    assert [("authorization" in head.fields, head.target) for head in other.heads] == [
        (False, "/file?sig=a%2Bb"),
        (False, "/file"),
    ]


@pytest_twisted.ensureDeferred
async def test_redirect_that_leads_back_has_no_credentials(scene: Any) -> None:
    home = scene.serve(reply())
    away = scene.serve(reply(status="302 Found", Location=f"{home.url}/end"))
    home.answer = by_path({"/x": reply(status="307 Go", Location=f"{away.url}/"), "/end": reply(b"end")})
    upstream = scene.upstream(home.url, route={"authorization": "Bearer secret"})
    assert await fetch(upstream) == (200, b"end")
    assert ["authorization" in head.fields for head in home.heads] == [True, False]


@pytest_twisted.ensureDeferred
async def test_own_authorization_replaces_that_of_the_route(scene: Any) -> None:
    server = scene.serve(by_path({"/x": reply(status="301 Moved", Location="y"), "/y": reply(b"end")}))
    upstream = scene.upstream(server.url, route={"authorization": "Bearer secret"})
    async with upstream.open("GET", "x", {"Authorization": "Bearer mine"}) as response:
        assert response.url == f"{server.url}/y"
    assert [head.fields["authorization"] for head in server.heads] == ["Bearer mine", "Bearer mine"]


@pytest_twisted.ensureDeferred
async def test_cookies_are_not_sent_back(scene: Any) -> None:
    server = scene.serve(reply(b"x", Set_Cookie="a=b; Path=/"))
    upstream = scene.upstream(server.url)
    for _ in range(2):
        await fetch(upstream)
    assert ["cookie" in head.fields for head in server.heads] == [False, False]


@pytest.mark.parametrize(
    ("location", "sentence"),
    [
        ("/x", "redirects more than 5 times"),
        ("ftp://127.0.0.1/", "does not begin with http"),
        ("file:///etc/passwd", "does not begin with http"),
        ("http://me:secret@127.0.0.1/", "has a user name"),
        ("http://127.0.0.1\\@10.0.0.1/", "has a user name"),
        ("//[fe80::1%25eth0]/", "no valid host"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_redirect_that_is_not_followed(scene: Any, location: str, sentence: str) -> None:
    server = scene.serve(reply(status="302 Found", Location=location))
    with pytest.raises(UpstreamFailed, match=sentence) as caught:
        await fetch(scene.upstream(server.url))
    assert "secret" not in str(caught.value)
    assert len(server.heads) <= 6


@pytest.mark.parametrize(
    "location",
    [
        "http://10.0.0.1/",
        "http://0177.0.0.1:{port}/",
        "http://2130706433:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://[::1]:{port}/",
        "http://localhost:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "//0.0.0.0:{port}/",
    ],
)
@pytest_twisted.ensureDeferred
async def test_redirect_to_a_private_address_is_refused(scene: Any, location: str) -> None:
    target = scene.serve(reply(b"secret"))
    # The server is excepted by its name alone, so that the same address under other names is not.
    server = scene.serve(reply(status="302 Found", Location=location.format(port=target.port)))
    scene.names(**{"mirror.example": "127.0.0.1"})
    upstream = scene.upstream(f"http://mirror.example:{server.port}", allow_private=("mirror.example",))
    with pytest.raises(UpstreamForbiddenAddress, match="allow_private") as caught:
        await fetch(upstream)
    assert "127.0.0.1" not in str(caught.value)
    assert (len(server.heads), target.connections) == (1, [])
    assert upstream.health().state is UpstreamState.CLOSED


@pytest_twisted.ensureDeferred
async def test_name_that_resolves_differently_the_second_time_is_refused(scene: Any) -> None:
    server = scene.serve(reply(b"one", Connection="close"))
    names = scene.names(**{"mirror.example": "127.0.0.1"})
    upstream = scene.upstream(f"http://mirror.example:{server.port}", allow_private=("127.0.0.1",))
    assert await fetch(upstream) == (200, b"one")
    names["mirror.example"] = "127.0.0.2"  # leads to this machine as well, but is not excepted
    with pytest.raises(UpstreamForbiddenAddress):
        await fetch(upstream)
    assert len(server.heads) == 1


@pytest_twisted.ensureDeferred
async def test_busy_upstream_is_asked_again(scene: Any) -> None:
    server = scene.serve(
        in_turn(
            reply(status="503 Busy"),
            reply(status="429 Slow down", Retry_After="0"),
            reply(b"third"),
            reply(status="502 Bad Gateway"),
        )
    )
    upstream = scene.upstream(server.url)
    assert await fetch(upstream) == (200, b"third")
    with pytest.raises(UpstreamUnavailable, match="it answers 502"):
        await fetch(upstream)
    assert len(server.heads) == 6


@pytest_twisted.ensureDeferred
async def test_upstream_that_limits_the_rate_is_left_alone_for_so_long(scene: Any) -> None:
    server = scene.serve(reply(status="429 Too Many Requests", Retry_After="100"))
    upstream = scene.upstream(server.url)
    for _ in range(3):
        with pytest.raises(UpstreamLimited) as caught:
            await fetch(upstream)
        assert 0 < caught.value.retry_after_s <= 100
    assert len(server.heads) == 1
    assert upstream.health().limited_until is not None


@pytest.mark.parametrize("status", ["500 Oops", "501 No", "999 Denied"])
@pytest_twisted.ensureDeferred
async def test_error_that_no_second_try_mends(scene: Any, status: str) -> None:
    server = scene.serve(reply(status=status))
    with pytest.raises(UpstreamFailed, match=f"it answers {status[:3]}"):
        await fetch(scene.upstream(server.url))
    assert len(server.heads) == 1


@pytest_twisted.ensureDeferred
async def test_upstream_that_is_down_is_not_asked_for_a_while(scene: Any) -> None:
    server = scene.serve(reply())
    upstream = scene.upstream(server.url)
    await server.stop()
    sentences = []
    for _ in range(4):
        with pytest.raises(UpstreamUnavailable) as caught:
            await fetch(upstream)
        sentences.append(str(caught.value))
    assert "it refuses connections" in sentences[0]
    assert "failed 5 times in a row" in sentences[-1]
    health = upstream.health()
    assert (health.state, health.failures, health.last_error) == (UpstreamState.OPEN, 5, "it refuses connections")
    assert str(server.port) not in "".join(sentences)


@pytest.mark.parametrize("url", ["http://", "https://me@host/", "http://host:0/", "a b", "ü", "http://a\\b/"])
@pytest_twisted.ensureDeferred
async def test_malformed_url_is_refused(scene: Any, url: str) -> None:
    with pytest.raises(Invalid):
        await fetch(scene.upstream("http://127.0.0.1:1"), url)


@pytest_twisted.ensureDeferred
async def test_changed_route_has_a_new_client(scene: Any) -> None:
    server = scene.serve(reply(b"x"))
    upstreams = scene.upstreams()

    first = upstreams.of(1, scene.route(server.url))
    async with first.open("GET", "x") as response:
        assert upstreams.of(1, scene.route(server.url)) is first
        second = upstreams.of(1, scene.route(server.url, priority=3))
        assert second is not first
        assert upstreams.of(2, scene.route(server.url)) is not first
        assert await response.read() == b"x"
    await until(lambda: server.connections[0].is_lost)
    await fetch(second)
    upstreams.drop(1)
    await until(lambda: server.connections[1].is_lost)


@pytest_twisted.ensureDeferred
async def test_stop_ends_requests_under_way(scene: Any) -> None:
    server = scene.serve(lambda connection, _: connection.send(response_head(Content_Length="10"), b"x"))
    upstreams = scene.upstreams()
    upstream = upstreams.of(1, scene.route(server.url))
    async with upstream.open("GET", "x") as response:
        await anext(response.chunks())
        await upstreams.close()
        with pytest.raises(UpstreamTruncated):
            await anext(response.chunks())


@pytest_twisted.ensureDeferred
async def test_short_answer_that_is_not_read_keeps_the_connection(scene: Any) -> None:
    server = scene.serve(reply(b"no such package", "404 Not Found"))
    upstream = scene.upstream(server.url)
    for _ in range(3):
        async with upstream.open("GET", "x") as response:
            assert response.status == 404
    assert len(server.connections) == 1


@pytest_twisted.ensureDeferred
async def test_question_with_a_body_is_sent_again_after_a_failure_and_never_redirected(scene: Any) -> None:
    with ScriptedUpstream({"/x": b"answer", "/y": b"other"}) as server:
        upstream = scene.upstream(server.url)
        server.misbehave("/x", failing(503, retry_after="0"))
        async with upstream.open("POST", "x", {"Content-Type": "text/plain"}, body=b"question") as response:
            assert (response.status, await response.read()) == (200, b"answer")
        first, second = server.requests("/x")
        assert first == second
        assert (first.method, first.body, first.fields["content-type"]) == ("POST", b"question", "text/plain")
        server.misbehave("/x", redirect("/y", 307))
        with pytest.raises(UpstreamFailed, match="redirects a POST"):
            async with upstream.open("POST", "x", body=b""):
                pass
        assert server.count("/y") == 0


@pytest.mark.parametrize(("method", "body"), [("POST", None), ("GET", b""), ("DELETE", None)])
@pytest_twisted.ensureDeferred
async def test_requests_that_change_something_are_not_sent(scene: Any, method: str, body: bytes | None) -> None:
    with pytest.raises(ValueError, match=f"{method} is not sent to upstreams"):
        async with scene.upstream("http://127.0.0.1:1").open(method, "x", body=body):
            pass
