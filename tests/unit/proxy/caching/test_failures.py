"""Metadata of upstreams that fail, and of several routes."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.proxy.trace import Trace
from pkgrepo.proxy.upstream.limits import TRIES_WITH_OLD
from tests.support.proxy_world import ProxyWorld, kinds
from tests.support.upstreams.faults import failing
from tests.support.upstreams.messages import Answer, Fault


@pytest.mark.parametrize("fault", [failing(500), Fault(cut_at=10), failing(429, "3"), Answer(body=b"<html>")])
async def test_stale_answer_is_served_while_the_upstream_fails(world: ProxyWorld, fault: Any) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    first = await world.get(proxy, "left")
    await world.settle()
    world.clock.advance(301)
    up.add("left", "1.1.0")
    up.misbehave("/left", fault, repeat=True)
    trace = Trace()
    stale = await world.get(proxy, "left", trace)
    assert stale.is_of(first)
    assert stale.failure is not None
    assert kinds(trace.steps) == ["mirror a failed", "mirror a stale"]
    asked = up.count()
    world.clock.advance(9)
    assert await world.versions_in(proxy, await world.get(proxy, "left", revalidate=True)) == ["1.0.0"]
    assert up.count() == asked
    up.behave()


async def test_a_web_page_instead_of_a_document_is_called_one(world: ProxyWorld) -> None:
    up = world.upstream()
    proxy = await world.proxy("mirror", up)
    up.misbehave("/left", Answer(body=b"<html>", fields={"Content-Type": "text/html; charset=utf-8"}), repeat=True)
    with pytest.raises(UpstreamFailed, match="it sent a web page that cannot be used"):
        await world.get(proxy, "left")
    up.behave()


async def test_nobody_waits_for_a_third_try_while_there_is_an_old_answer(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    await world.get(proxy, "left")
    await world.settle()
    world.clock.advance(301)
    up.misbehave("/left", failing(503), repeat=True)
    before = up.count()
    assert (await world.get(proxy, "left")).failure is not None
    assert up.count() - before == TRIES_WITH_OLD
    up.behave()


async def test_upstream_is_asked_again_some_seconds_after_a_failure(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    await world.get(proxy, "left")
    world.clock.advance(301)
    up.misbehave("/left", failing(500))
    assert (await world.get(proxy, "left")).failure is not None
    world.clock.advance(10)
    assert (await world.get(proxy, "left")).failure is None


async def test_routes_are_asked_in_order_of_priority(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    second.add("left")
    proxy = await world.proxy("mirror", first, second)
    trace = Trace()
    held = await world.get(proxy, "left", trace)
    assert held.document.route == "b"
    assert kinds(trace.steps) == ["mirror a absent", "mirror b fetched"]
    first.add("left", "2.0.0")
    world.clock.advance(301)
    assert (await world.get(proxy, "left")).document.route == "a"


async def test_next_route_is_asked_for_a_new_name_only_if_the_one_that_fails_is_a_replica(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    second.add("left")
    first.misbehave("/left", failing(500), repeat=True)
    proxy = await world.proxy("mirror", first, second)
    trace = Trace()
    with pytest.raises(UpstreamFailed):
        await world.get(proxy, "left", trace)
    assert kinds(trace.steps) == ["mirror a failed", "mirror b withheld"]
    assert second.count() == 0
    proxy = await world.change(proxy, settings={"routes_are_replicas": True})
    trace = Trace()
    assert (await world.get(proxy, "left", trace)).document.route == "b"
    assert kinds(trace.steps) == ["mirror a failed", "mirror b fetched"]


async def test_while_a_route_fails_a_later_one_goes_on_with_what_it_said_before(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    second.add("left")
    proxy = await world.proxy("mirror", first, second)
    await world.get(proxy, "left")
    await world.settle()
    first.misbehave("/left", failing(500), repeat=True)
    second.add("left", "1.1.0")
    world.clock.advance(301)
    held = await world.get(proxy, "left")
    assert await world.versions_in(proxy, held) == ["1.0.0", "1.1.0"]
    first.behave()


async def test_what_a_route_said_before_is_better_than_what_another_one_says(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    first.add("left", "1.0.0")
    second.add("left", "9.0.0")
    proxy = await world.proxy("mirror", first, second)
    await world.get(proxy, "left")
    world.clock.advance(301)
    first.misbehave("/left", failing(500), repeat=True)
    held = await world.get(proxy, "left")
    assert (held.document.route, second.count()) == ("a", 0)


async def test_answer_of_a_route_that_was_removed_is_not_served(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    first.add("left", "1.0.0")
    second.add("left", "2.0.0")
    proxy = await world.proxy("mirror", first)
    await world.get(proxy, "left")
    await world.settle()
    routes = [{"name": "z", "url": second.url}]
    proxy = await world.change(proxy, config={**proxy.config, "proxy": {"routes": routes}})
    assert await world.versions_in(proxy, await world.get(proxy, "left")) == ["2.0.0"]


async def test_failure_is_never_the_answer_that_there_is_no_package(world: ProxyWorld) -> None:
    up = world.upstream()
    proxy = await world.proxy("mirror", up)
    with pytest.raises(NotFound):
        await world.get(proxy, "left")
    world.clock.advance(61)
    up.misbehave("*", failing(500), repeat=True)
    for _ in range(2):
        with pytest.raises(UpstreamFailed):
            await world.get(proxy, "left")
    with pytest.raises(UpstreamFailed):
        await world.get(proxy, "never-asked")


async def test_route_whose_certificates_cannot_be_used_is_a_failing_one(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up, routes_are_replicas=True)
    routes = [{"name": "a", "url": "https://127.0.0.1:1/", "ca_file": "/none/ca.pem"}, {"name": "b", "url": up.url}]
    proxy = await world.change(proxy, config={**proxy.config, "proxy": {"routes": routes}})
    trace = Trace()
    assert (await world.get(proxy, "left", trace)).document.route == "b"
    assert kinds(trace.steps) == ["mirror a failed", "mirror b fetched"]
    assert "/none" not in trace.steps[0].why
