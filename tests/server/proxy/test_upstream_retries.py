"""Second tries, upstreams that are left alone for a while, and permits."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred, gatherResults

from pkgrepo.errors import (
    UpstreamFailed,
    UpstreamForbiddenAddress,
    UpstreamLimited,
    UpstreamTimeout,
    UpstreamTooLarge,
    UpstreamTruncated,
    UpstreamUnavailable,
)
from pkgrepo.model import ReadLimits, UpstreamState
from pkgrepo.proxy.upstream.health import FAILURES
from tests.support.inprocess_server import turn, until
from tests.support.ports import closed_port
from tests.support.upstreams import faults
from tests.support.upstreams.messages import Answer, Fault
from tests.support.upstreams.server import ANY, unaccepting_port

pytestmark = pytest.mark.server


async def fetch(upstream: Any, url: str = "x", **options: Any) -> tuple[int, bytes]:
    async with upstream.open("GET", url, **options) as response:
        return response.status, await response.read()


async def test_busy_upstream_is_asked_again(scene: Any) -> None:
    server = scene.serve({"/x": b"third"})
    upstream = scene.upstream(server.url)
    server.misbehave("/x", faults.failing(503), faults.failing(429, "0"))
    assert await fetch(upstream) == (200, b"third")
    assert server.count() == 3


async def test_connection_that_breaks_before_the_answer_is_made_again(scene: Any) -> None:
    server = scene.serve({"/x": b"third"})
    server.misbehave("/x", faults.NO_ANSWER, faults.NO_ANSWER)
    assert await fetch(scene.upstream(server.url)) == (200, b"third")


async def test_upstream_that_stays_busy_is_unavailable(scene: Any) -> None:
    server = scene.serve({"/x": faults.failing(502)})
    with pytest.raises(UpstreamUnavailable, match="it answers 502"):
        await fetch(scene.upstream(server.url))
    assert server.count() == 3


@pytest.mark.parametrize("status", [500, 501])
async def test_error_that_no_second_try_mends(scene: Any, status: int) -> None:
    server = scene.serve({"/x": faults.failing(status)})
    with pytest.raises(UpstreamFailed, match=f"it answers {status}"):
        await fetch(scene.upstream(server.url))
    assert server.count() == 1


async def test_upstream_that_limits_the_rate_is_left_alone_for_so_long(scene: Any) -> None:
    server = scene.serve({"/x": faults.failing(429, "100")})
    upstream = scene.upstream(server.url)
    for _ in range(3):
        with pytest.raises(UpstreamLimited) as caught:
            await fetch(upstream)
        assert 0 < caught.value.retry_after_s <= 100
    assert server.count() == 1
    assert upstream.health().limited_until is not None
    assert upstream.health().state is UpstreamState.CLOSED


async def test_upstream_that_is_down_is_not_asked_for_a_while(scene: Any) -> None:
    port = closed_port()
    upstream = scene.upstream(f"http://127.0.0.1:{port}")
    sentences = []
    for _ in range(4):
        with pytest.raises(UpstreamUnavailable) as caught:
            await fetch(upstream)
        sentences.append(str(caught.value))
    assert "it refuses connections" in sentences[0]
    assert "failed 5 times in a row" in sentences[-1]
    health = upstream.health()
    assert (health.state, health.failures, health.last_error) == (UpstreamState.OPEN, 5, "it refuses connections")
    assert str(port) not in "".join(sentences)


async def test_nobody_waits_after_another_one_for_a_host_that_accepts_no_connection(scene: Any) -> None:
    with unaccepting_port() as port:
        upstream = scene.upstream(f"http://127.0.0.1:{port}", route={"connect_timeout_s": 0.05})
        with pytest.raises(UpstreamTimeout, match=r"within 0\.05 s \(connect_timeout of the route\)"):
            await fetch(upstream)
        with pytest.raises(UpstreamUnavailable, match="it failed once; the last time it did not accept a connection"):
            await fetch(upstream)
    assert (upstream.health().state, upstream.health().failures) == (UpstreamState.OPEN, 1)


async def test_nobody_waits_for_a_second_try_that_would_not_be_sent(scene: Any) -> None:
    upstream = scene.upstream(f"http://127.0.0.1:{closed_port()}")

    async def failure() -> str:
        with pytest.raises(UpstreamUnavailable) as caught:
            await fetch(upstream)
        return str(caught.value)

    sentences = await gatherResults([Deferred.fromCoroutine(failure()) for _ in range(20)])
    # Those whose failures came first wanted to try again.
    assert sum("in a row" in sentence for sentence in sentences) < FAILURES


async def test_failures_of_another_host_do_not_close_the_route(scene: Any) -> None:
    server, files = scene.serve({"/x": b"x"}), scene.serve()
    files.misbehave(ANY, faults.failing(500), repeat=True)
    upstream = scene.upstream(server.url)
    for number in range(FAILURES):
        with pytest.raises(UpstreamFailed, match="it answers 500"):
            await fetch(upstream, f"{files.url}/file{number}")
    with pytest.raises(UpstreamUnavailable, match="in a row"):
        await fetch(upstream, f"{files.url}/file")
    assert await fetch(upstream) == (200, b"x")
    assert upstream.health().failures == 0


@pytest.mark.parametrize("fault", [faults.failing(500), faults.failing(503), faults.NO_ANSWER, faults.TRUNCATED])
async def test_failures_of_one_package_do_not_close_the_route(scene: Any, fault: Any) -> None:
    server = scene.serve({"/bad": b"x" * 1000, "/bad/file": b"x" * 1000, "/good": b"x"})
    for path in ("/bad", "/bad/file"):
        server.misbehave(path, fault, repeat=True)
    upstream = scene.upstream(server.url)

    async def fail(path: str) -> None:
        with pytest.raises(UpstreamFailed):
            await fetch(upstream, path, subject="bad")

    await gatherResults([Deferred.fromCoroutine(fail(path)) for path in ("bad", "bad/file") * FAILURES])
    assert upstream.health().state is UpstreamState.CLOSED
    assert await fetch(upstream, "good", subject="good") == (200, b"x")


async def test_failures_of_one_kind_of_request_do_not_close_the_route_for_another(scene: Any) -> None:
    server = scene.serve({"/good": b"x", "/search": faults.failing(500)})
    upstream = scene.upstream(server.url)
    for number in range(FAILURES):
        with pytest.raises(UpstreamFailed, match="it answers 500"):
            await fetch(upstream, f"search?text={number}", kind="search")
    with pytest.raises(UpstreamUnavailable, match="5 times in a row"):
        await fetch(upstream, "search", kind="search")
    assert server.count("/search") == FAILURES
    assert await fetch(upstream, "good") == (200, b"x")
    assert (upstream.health().failures, upstream.health().last_error) == (0, None)
    server.serve("/search", b"found")
    with pytest.raises(UpstreamUnavailable):
        await fetch(upstream, "search", kind="search")  # that packages are served tells nothing about searches


async def test_permits_return_after_300_failures_of_all_kinds(scene: Any) -> None:
    bodies = dict.fromkeys(("/good", "/large", "/left", "/cut", "/paused", "/stopped"), b"x" * 1000)
    server = scene.serve({**bodies, "/broken": Answer(200, b"x", {"Content-Encoding": "br"})})
    server.serve("/away", faults.redirect("http://10.0.0.1/"))
    server.misbehave("/cut", Fault(cut_at=500), repeat=True)
    server.misbehave("/paused", Fault(pause_at=500), repeat=True)
    server.misbehave("/stopped", Fault(pause_at=-1), repeat=True)
    upstream = scene.upstream(server.url, max_connections_per_host=2)

    async def leave() -> None:
        async with upstream.open("GET", "left"):
            raise ZeroDivisionError

    async def cancel(path: str) -> None:
        before = server.count(f"/{path}")
        running = Deferred.fromCoroutine(fetch(upstream, path))
        await until(lambda: server.count(f"/{path}") > before)
        running.cancel()
        await running

    failures: list[tuple[Any, type[Exception]]] = [
        (lambda: fetch(upstream, "large", limits=ReadLimits(10)), UpstreamTooLarge),
        (lambda: fetch(upstream, "cut"), UpstreamTruncated),
        (lambda: fetch(upstream, "broken"), UpstreamFailed),
        (lambda: fetch(upstream, "away"), UpstreamForbiddenAddress),
        (leave, ZeroDivisionError),
        (lambda: cancel("paused"), CancelledError),
        (lambda: cancel("stopped"), CancelledError),
    ]
    for number in range(300):
        work, error = failures[number % len(failures)]
        with pytest.raises(error):
            await work()
    answers = await gatherResults([Deferred.fromCoroutine(fetch(upstream, "good")) for _ in range(20)])
    assert answers == [(200, b"x" * 1000)] * 20
    assert upstream.health().state is UpstreamState.CLOSED


async def test_no_more_requests_at_a_time_than_permits(scene: Any) -> None:
    server = scene.serve({"/x": b"x" * 1000})
    server.misbehave("/x", *[Fault(pause_at=500)] * 3)
    upstreams = scene.upstreams(max_connections_per_host=3)
    clients = [upstreams.of(number, scene.route(server.url)) for number in (1, 2)]
    running = [Deferred.fromCoroutine(fetch(clients[number % 2])) for number in range(6)]
    await until(lambda: sum(exchange.paused for exchange in server.exchanges) == 3)
    for _ in range(100):
        await turn()
    assert server.count() == 3
    server.behave()
    assert await gatherResults(running) == [(200, b"x" * 1000)] * 6


async def test_a_repository_with_many_requests_delays_another_with_one_by_one(scene: Any) -> None:
    server = scene.serve({"/many": b"x" * 1000, "/one": b"x"})
    server.misbehave("/many", Fault(pause_at=500))
    upstreams = scene.upstreams(max_connections_per_host=1)
    busy, other = (upstreams.of(number, scene.route(server.url)) for number in (1, 2))
    running = [Deferred.fromCoroutine(fetch(busy, "many")) for _ in range(20)]
    await until(lambda: sum(exchange.paused for exchange in server.exchanges) == 1)
    running.append(Deferred.fromCoroutine(fetch(other, "one")))
    server.behave()
    await gatherResults(running)
    assert [request.path for request in server.requests()].index("/one") <= 2
