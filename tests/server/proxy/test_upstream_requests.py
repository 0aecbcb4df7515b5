"""What the upstream client sends, and the answers it hands out."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs, formatEvent
from zope.interface.verify import verifyObject

from pkgrepo.errors import (
    Invalid,
    UpstreamDenied,
    UpstreamFailed,
    UpstreamMisconfigured,
    UpstreamTruncated,
    UpstreamUnavailable,
)
from pkgrepo.interfaces import IUpstreamResponse
from pkgrepo.model import ReadLimits
from pkgrepo.outbound.connection import RECEIVED
from pkgrepo.proxy.upstream import failures
from pkgrepo.proxy.upstream.instances import MOST_UPSTREAMS
from tests.support.inprocess_server import turn, until
from tests.support.upstreams.faults import STALL_BEFORE_HEAD, failing, redirect
from tests.support.upstreams.messages import Answer, Fault, Request
from tests.support.upstreams.server import ANY, ScriptedUpstream

pytestmark = pytest.mark.server


async def fetch(upstream: Any, url: str = "x", headers: Any = None, **options: Any) -> tuple[int, bytes]:
    async with upstream.open("GET", url, headers, **options) as response:
        return response.status, await response.read()


async def test_answer_of_a_path_below_the_route(scene: Any) -> None:
    fields = {"Content-Type": "text/plain", "X-Twice": "a\r\nX-Twice: b"}
    server = scene.serve({"/npm/@scope%2fname": Answer(body=b"hello", fields=fields)})
    upstream = scene.upstream(f"{server.url}/npm/")
    async with upstream.open("GET", "@scope%2fname?a=b%20c&d=?", {"Accept": "text/*"}) as response:
        assert (response.status, response.length, response.framed) == (200, 5, True)
        assert response.url == f"{server.url}/npm/@scope%2fname"  # a query may hold a signature
        assert response.headers.get("CONTENT-type") == "text/plain"
        assert response.headers.get("x-twice") == "a, b"
        assert response.headers.get("etag") is None
        assert [chunk async for chunk in response.chunks()] == [b"hello"]
    (request,) = server.requests()
    assert request.target == "/npm/@scope%2fname?a=b%20c&d=?"
    assert request.fields["accept"] == "text/*"
    assert request.fields["accept-encoding"] == "identity"
    assert request.fields["user-agent"].startswith("pkgrepo/")
    assert upstream.health().successes == 1


async def test_client_and_answer_have_their_interfaces(scene: Any) -> None:
    upstream = scene.upstream(scene.serve().url)
    async with upstream.open("GET", "x") as response:
        verifyObject(IUpstreamResponse, response)


async def test_address_of_ip_version_6(scene: Any) -> None:
    proxy = scene.serve({"/x": b"x"})
    assert await fetch(scene.upstream("http://[2606:4700::1111]:8080", proxies={"http": proxy.url})) == (200, b"x")
    (request,) = proxy.requests()
    assert (request.target, request.fields["host"]) == ("http://[2606:4700::1111]:8080/x", "[2606:4700::1111]:8080")


async def test_connections_are_kept_for_the_next_request(scene: Any) -> None:
    server = scene.serve({"/x": Answer(body=b"one", fields={"ETag": '"1"'})})
    upstream = scene.upstream(server.url)
    for _ in range(3):
        assert await fetch(upstream) == (200, b"one")
        assert await fetch(upstream, headers={"If-None-Match": '"1"'}) == (304, b"")
        async with upstream.open("GET", "absent") as response:
            assert response.status == 404  # a short body that nobody reads
        async with upstream.open("HEAD", "x"):
            pass
    assert server.connections == 1


async def test_connection_that_the_upstream_has_closed_is_replaced(scene: Any) -> None:
    server = scene.serve({"/x": b"one"})
    upstream = scene.upstream(server.url)
    server.misbehave("/x", Fault(drop=True))
    for _ in range(2):
        assert await fetch(upstream) == (200, b"one")
    assert (server.connections, upstream.health().failures) == (2, 0)


async def test_head_request_has_the_length_of_the_file(scene: Any) -> None:
    server = scene.serve({"/x": b"x" * 1000})
    async with scene.upstream(server.url).open("HEAD", "x", limits=ReadLimits(10)) as response:
        assert (response.length, await response.read()) == (1000, b"")


@pytest.mark.parametrize("status", [400, 403, 404, 405, 406, 410, 500, 501, 503])
async def test_head_that_fails_is_a_get_whose_body_is_not_wanted(scene: Any, status: int) -> None:
    class Headless(ScriptedUpstream):
        def answer(self, request: Request) -> Answer:
            return Answer(status) if request.method == "HEAD" else super().answer(request)

    server = scene.adopt(Headless({"/x": b"x" * 1000}))
    upstream = scene.upstream(server.url)
    async with upstream.open("HEAD", "x", limits=ReadLimits(10)) as response:
        assert (response.status, response.length) == (200, 1000)
    async with upstream.open("HEAD", "absent") as response:
        assert response.status == 404
    assert [each.method for each in server.requests()] == ["HEAD", "GET", "HEAD", "GET"]
    assert upstream.health().failures == 0


async def test_failing_heads_and_gets_are_failures_of_the_gets(scene: Any) -> None:
    server = scene.serve({"/x": Answer(500), "/y": Answer(500), "/z": Answer(500)})
    upstream = scene.upstream(server.url)
    for path in ("x", "y", "z"):
        with pytest.raises(UpstreamFailed, match="it answers 500"):
            async with upstream.open("HEAD", path, subject=path):
                pytest.fail("it is an answer")
    assert (upstream.health().successes, upstream.health().failures) == (0, 3)


async def test_refusal_is_an_error_with_the_sentence_of_the_upstream(scene: Any) -> None:
    server = scene.serve({"/x": Answer(403, b'{"error":"blocked by policy"}')})
    upstream = scene.upstream(server.url)
    for method in ("GET", "HEAD"):
        with pytest.raises(UpstreamDenied, match="'main' refuses this: blocked by policy"):
            async with upstream.open(method, "x"):
                pytest.fail("it is an answer")
    async with upstream.open("GET", "x", accept=(403,)) as response:
        assert response.status == 403
    assert upstream.health().failures == 0


async def test_refusal_without_an_end_has_the_sentence_that_came(scene: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "LONGEST_S", 1.0)  # its beginning comes within it, also on a slow machine
    server = scene.serve({"/x": Answer(403, b"blocked by policy" + b" " * 1000, {"Content-Type": "text/plain"})})
    server.misbehave("/x", Fault(pause_at=20), repeat=True)
    with pytest.raises(UpstreamDenied, match="'main' refuses this: blocked by policy"):
        await fetch(scene.upstream(server.url))


async def test_what_a_search_wants_is_no_fault_of_the_route(scene: Any) -> None:
    upstream = scene.upstream(scene.serve({"/search": Answer(401)}).url)
    with capturedLogs() as events, pytest.raises(UpstreamMisconfigured):
        await fetch(upstream, "search", kind="search")
    assert (upstream.fault, events) == (None, [])


@pytest.mark.parametrize(
    ("route", "sentence"),
    [(None, "wants credentials, and the route has none"), ({"authorization": "Basic x"}, "refuses the credentials")],
)
async def test_wrong_credentials_are_logged_once(scene: Any, route: Any, sentence: str) -> None:
    upstream = scene.upstream(scene.serve({"/x": Answer(401)}).url, route=route)
    with capturedLogs() as events:
        for _ in range(3):
            with pytest.raises(UpstreamMisconfigured, match=sentence):
                await fetch(upstream)
    assert [sentence in formatEvent(each) for each in events] == [True]


async def test_body_that_ends_with_the_connection(scene: Any) -> None:
    server = scene.serve({"/x": Answer(body=b"hello", fault=Fault(unframed=True))})
    async with scene.upstream(server.url).open("GET", "x") as response:
        assert response.length is None
        assert await response.read() == b"hello"
        assert not response.framed


async def test_leaving_before_the_end_closes_the_connection(scene: Any) -> None:
    server = scene.serve({"/x": b"x" * 1000})
    server.misbehave("/x", Fault(pause_at=500))
    async with scene.upstream(server.url).open("GET", "x") as response:
        assert await anext(response.chunks())
    await until(lambda: server.exchanges[0].ended == "left")


async def test_slow_reader_slows_the_upstream_down(scene: Any) -> None:
    body = bytes(64 * 1024 * 1024)
    server = scene.serve({"/x": body})
    async with scene.upstream(server.url).open("GET", "x", limits=ReadLimits(len(body))) as response:
        chunks = response.chunks()
        sizes = [len(await anext(chunks))]
        for _ in range(5000):
            await turn()
        assert server.sent() < len(body)  # buffers of sockets hold a few MiB
        sizes += [len(chunk) async for chunk in chunks]
    assert sum(sizes) == len(body)
    assert max(sizes) < 2 * RECEIVED


async def test_credentials_go_to_the_host_of_the_route_alone(scene: Any) -> None:
    other = scene.serve({"/file": b"file"})
    server = scene.serve({"/x": Answer(302, fields={"Location": f"{other.url}/file?sig=a%2Bb"})})
    upstream = scene.upstream(server.url, route={"authorization": "Basic bWU6c2VjcmV0"})
    assert await fetch(upstream) == (200, b"file")
    assert await fetch(upstream, f"{other.url}/file") == (200, b"file")
    assert server.requests()[0].fields["authorization"] == "Basic bWU6c2VjcmV0"
    assert [("authorization" in request.fields, request.target) for request in other.requests()] == [
        (False, "/file?sig=a%2Bb"),
        (False, "/file"),
    ]


async def test_own_authorization_replaces_that_of_the_route(scene: Any) -> None:
    server = scene.serve({"/a/x": Answer(301, fields={"Location": "y"}), "/a/y": b"end"})
    upstream = scene.upstream(f"{server.url}/a", route={"authorization": "Bearer secret"})
    async with upstream.open("GET", "x", {"Authorization": "Bearer mine"}) as response:
        assert response.url == f"{server.url}/a/y"
    assert [request.fields["authorization"] for request in server.requests()] == ["Bearer mine", "Bearer mine"]


async def test_cookies_are_not_sent_back(scene: Any) -> None:
    server = scene.serve({"/x": Answer(body=b"x", fields={"Set-Cookie": "a=b; Path=/"})})
    upstream = scene.upstream(server.url)
    for _ in range(2):
        await fetch(upstream)
    assert ["cookie" in request.fields for request in server.requests()] == [False, False]


@pytest.mark.parametrize("url", ["http://", "https://me@host/", "http://host:0/", "a b", "ü", "http://a\\b/"])
async def test_malformed_url_is_refused(scene: Any, url: str) -> None:
    with pytest.raises(Invalid):
        await fetch(scene.upstream("http://127.0.0.1:1"), url)


async def test_changed_route_has_a_new_client(scene: Any) -> None:
    server = scene.serve({"/x": b"x"})
    upstreams = scene.upstreams()
    first = upstreams.of(1, scene.route(server.url))
    async with first.open("GET", "x") as response:
        assert upstreams.of(1, scene.route(server.url)) is first
        second = upstreams.of(1, scene.route(server.url, priority=3))
        assert second is not first
        assert upstreams.of(2, scene.route(server.url)) is not first
        assert await response.read() == b"x"
    await fetch(second)
    assert server.connections == 2
    # The first is closed, though it is forgotten: the fixture checks what is left in the reactor.


async def test_clients_that_are_not_used_are_forgotten(scene: Any) -> None:
    server = scene.serve({"/x": b"x" * 1000})
    upstreams, route = scene.upstreams(), scene.route(server.url)
    oldest, kept = upstreams.of(1, route), upstreams.of(2, route)
    await fetch(oldest)
    for number in range(3, MOST_UPSTREAMS + 2):
        assert upstreams.of(2, route) is kept
        upstreams.of(number, route)
    assert upstreams.of(1, route) is not oldest
    assert await fetch(oldest) == (200, b"x" * 1000), "a caller that still has it can use it"
    server.misbehave("/x", Fault(pause_at=500))
    async with oldest.open("GET", "x") as response:
        await anext(response.chunks())
        await upstreams.close()
        with pytest.raises(UpstreamTruncated):
            await anext(response.chunks())


async def test_stop_ends_requests_under_way(scene: Any) -> None:
    server = scene.serve({"/x": b"x" * 1000})
    server.misbehave(ANY, Fault(pause_at=500))
    upstreams = scene.upstreams()
    async with upstreams.of(1, scene.route(server.url)).open("GET", "x") as response:
        await anext(response.chunks())
        await upstreams.close()
        with pytest.raises(UpstreamTruncated):
            await anext(response.chunks())


async def test_question_with_a_body_is_sent_again_after_a_failure_and_never_redirected(scene: Any) -> None:
    server = scene.serve({"/x": b"answer", "/y": b"other"})
    upstream = scene.upstream(server.url)
    server.misbehave("/x", failing(503, retry_after="0"))
    async with upstream.open("POST", "x", {"Content-Type": "text/plain"}, body=b"question") as response:
        assert (response.status, await response.read()) == (200, b"answer")
    first, second = server.requests("/x")
    assert first == second
    assert (first.method, first.body, first.fields["content-type"]) == ("POST", b"question", "text/plain")
    server.misbehave("/x", failing(503, retry_after="0"))
    with pytest.raises(UpstreamUnavailable):
        async with upstream.open("POST", "x", body=b"question", tries=1):
            pass
    assert server.count("/x") == 3
    server.misbehave("/x", redirect("/y", 307))
    with pytest.raises(UpstreamFailed, match="redirects a POST"):
        async with upstream.open("POST", "x", body=b""):
            pass
    assert server.count("/y") == 0


@pytest.mark.parametrize(("method", "body"), [("POST", None), ("GET", b""), ("DELETE", None)])
async def test_requests_that_change_something_are_not_sent(scene: Any, method: str, body: bytes | None) -> None:
    with pytest.raises(ValueError, match=f"{method} is not sent to upstreams"):
        async with scene.upstream("http://127.0.0.1:1").open(method, "x", body=body):
            pass


async def test_request_without_an_answer_is_not_sent_again_after_a_stop(scene: Any) -> None:
    server = scene.serve({"/x": b"x"})
    server.misbehave("/x", STALL_BEFORE_HEAD)
    upstreams = scene.upstreams()
    running = Deferred.fromCoroutine(fetch(upstreams.of(1, scene.route(server.url))))
    await until(lambda: server.exchanges and server.exchanges[0].paused)
    await upstreams.close()
    with pytest.raises(UpstreamUnavailable):
        await running
    assert server.count() == 1
