"""Metadata of upstreams: freshness, confirmation, absence, and what is kept of it."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest
from twisted.internet.defer import Deferred, gatherResults

from pkgrepo.errors import NotFound, StorageFailed, StorageFull
from pkgrepo.model import SYSTEM
from pkgrepo.proxy.purge import Selection
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.upkeep.jobs import NoProgress
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.blobs import blobs
from tests.support.inprocess_server import until
from tests.support.proxy_world import ProxyWorld, kinds
from tests.support.upstreams.faults import failing
from tests.support.upstreams.messages import HEAD, Answer, Fault


def start(coroutine: Any) -> Deferred[Any]:
    return Deferred.fromCoroutine(coroutine)


async def test_fresh_answer_is_served_without_asking_also_after_a_restart(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    first = await world.get(proxy, "left")
    await world.settle()
    world.clock.advance(299)
    trace = Trace()
    again = await world.get(proxy, "left", trace)
    assert again.is_of(first)
    assert kinds(trace.steps) == ["mirror a fetched", "mirror a cached"]
    await world.restart()
    assert await world.versions_in(proxy, await world.get(proxy, "left")) == ["1.0.0"]
    assert up.count() == 1


async def test_many_who_ask_at_once_are_one_request(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    up.misbehave("/left", Fault(pause_at=HEAD))
    asking = [start(world.get(proxy, "left")) for _ in range(50)]
    await until(lambda: up.count() and up.exchanges[0].paused)
    asking[0].addErrback(lambda _: None)
    asking[0].cancel()  # its client has left
    up.release("/left")
    found = await gatherResults(asking[1:])
    assert all(each.is_of(found[0]) for each in found)
    assert up.count() == 1


async def test_client_that_leaves_does_not_stop_the_request(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    up.misbehave("/left", Fault(pause_at=HEAD))
    asking = start(world.get(proxy, "left"))
    asking.addErrback(lambda _: None)
    await until(lambda: up.count() and up.exchanges[0].paused)
    asking.cancel()
    up.release("/left")
    await until(lambda: up.exchanges[0].ended == "complete")
    await world.get(proxy, "left")
    assert up.count() == 1


@pytest.mark.parametrize("confirmation", ["not modified", "same bytes"])
async def test_old_answer_is_confirmed(world: ProxyWorld, confirmation: str) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    first = await world.get(proxy, "left")
    await world.settle()
    world.clock.advance(301)
    if confirmation == "same bytes":
        up.misbehave("/left", lambda answer: Answer(body=answer.body, fields={"Content-Type": "application/json"}))
    trace = Trace()
    again = await world.get(proxy, "left", trace)
    assert up.exchanges[-1].status == (304 if confirmation == "not modified" else 200)
    assert again.is_of(first)
    assert again.document.fresh_until_ms == world.clock.ms + 300_000
    assert kinds(trace.steps) == ["mirror a confirmed"]
    await world.restart()
    kept = await world.get(proxy, "left")
    assert kept.document.checked_ms == world.clock.ms
    assert await world.versions_in(proxy, kept) == ["1.0.0"]
    assert up.count() == 2


async def test_old_answer_is_replaced_and_times_of_first_sight_stay(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    del up.change("left")["time"]["1.0.0"]
    proxy = await world.proxy("mirror", up)
    first = await world.get(proxy, "left")
    seen_ms = world.clock.ms
    world.clock.advance(301)
    up.add("left", "1.1.0")
    del up.change("left")["time"]["1.1.0"]
    second = await world.get(proxy, "left")
    assert second.document.fetched_ms > first.document.fetched_ms
    request = world.format.proxied.document_request("left")
    times = await world.documents.read(
        proxy, request, second, lambda parts: {entry.version: entry.published_ms for entry in parts.entries(())}
    )
    assert times == {"1.0.0": seen_ms, "1.1.0": world.clock.ms}


async def test_answer_that_is_confirmed_before_it_is_stored_is_renewed_and_can_be_cached(
    world: ProxyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    gate: Deferred[None] = Deferred()
    change_with_blobs = world.core.content.change_with_blobs

    async def wait(*args: Any) -> None:
        await gate
        await change_with_blobs(*args)

    monkeypatch.setattr(world.core.content, "change_with_blobs", wait)
    assert not (await world.get(proxy, "left")).stored
    world.clock.advance(301)
    confirmed = await world.get(proxy, "left")
    assert not confirmed.stored
    gate.callback(None)
    await world.settle()
    kept = await world.get(proxy, "left")
    assert kept.stored
    assert kept.document.checked_ms == confirmed.document.checked_ms
    assert await world.versions_in(proxy, kept) == ["1.0.0"]
    assert up.count() == 2


async def test_answers_that_arrive_together_are_stored_together(
    world: ProxyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = world.upstream()
    names = [f"left-{number}" for number in range(12)]
    for name in names:
        up.add(name)
    proxy = await world.proxy("mirror", up)
    gate: Deferred[None] = Deferred()
    change_with_blobs = world.core.content.change_with_blobs
    stored: list[int] = []

    async def wait(*args: Any) -> None:
        stored.append(len(args[-1]))
        await gate
        await change_with_blobs(*args)

    monkeypatch.setattr(world.core.content, "change_with_blobs", wait)
    for name in names:
        await world.get(proxy, name)
    gate.callback(None)
    await world.restart()
    assert stored == [1, 11]
    assert [await world.versions(proxy, name) for name in names] == [["1.0.0"]] * 12
    assert up.count() == 12


async def test_answer_that_cannot_be_stored_is_served_once_and_asked_for_again(
    world: ProxyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    gate: Deferred[None] = Deferred()

    async def fail(*_: Any) -> None:
        await gate
        raise StorageFull("main")

    with monkeypatch.context() as patch:
        patch.setattr(world.core.content, "change_with_blobs", fail)
        held = await world.get(proxy, "left")
        assert await world.versions_in(proxy, held) == ["1.0.0"]
        gate.callback(None)
        await world.settle()
    assert await world.documents.find(proxy, "packument/left") is None
    assert await world.versions_in(proxy, held) == ["1.0.0"]  # asked for again: it has gone meanwhile
    await world.settle()
    assert (await world.get(proxy, "left")).stored
    assert up.count() == 2


@pytest.mark.parametrize("status", [404, 410])
async def test_absence_is_remembered_for_a_while(world: ProxyWorld, status: int) -> None:
    up = world.upstream()
    up.misbehave("/left", failing(status), repeat=True)
    proxy = await world.proxy("mirror", up, cache={"negative_ttl": 60})
    for _ in range(3):
        with pytest.raises(NotFound):
            await world.get(proxy, "left")
        world.clock.advance(25)
    assert up.count() == 1
    up.behave()
    up.add("left")
    assert (await world.get(proxy, "left")).document.found


async def test_package_that_an_upstream_removes_is_gone_also_after_a_restart(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    await world.get(proxy, "left")
    await world.settle()
    up.remove("left")
    world.clock.advance(301)
    with pytest.raises(NotFound):
        await world.get(proxy, "left")
    await world.restart()
    with pytest.raises(NotFound):
        await world.get(proxy, "left")
    assert up.count() == 2


async def test_client_may_have_an_answer_confirmed_every_ten_seconds(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    for seconds, count in ((0, 1), (9, 1), (1, 2), (9, 2), (1, 3)):
        world.clock.advance(seconds)
        await world.get(proxy, "left", revalidate=True)
        await world.settle()
        assert up.count() == count


async def test_shorter_ttl_applies_to_what_is_kept(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up, cache_ttl="1d")
    await world.get(proxy, "left")
    await world.settle()
    world.clock.advance(61)
    proxy = await world.change(proxy, settings={"cache_ttl": "1m"})
    await world.get(proxy, "left")
    assert up.count() == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "lost"])
async def test_damaged_parts_are_asked_for_again_and_stored_anew(world: ProxyWorld, damage: str) -> None:
    up = world.upstream()
    up.add("left", pad=1000)
    proxy = await world.proxy("mirror", up)
    await world.get(proxy, "left")
    await world.restart()
    document = await world.core.catalog.look(upstream_documents.find_document, proxy.id, "packument/left")
    (path,) = world.config.data.dir.rglob(document.locator.rpartition("/")[2])
    body = path.read_bytes()
    path.unlink()
    if damage != "lost":
        path.write_bytes(body[:-5] if damage == "cut" else bytes(20) + body[20:])
    assert await world.versions_in(proxy, await world.get(proxy, "left")) == ["1.0.0"]
    await world.restart()
    assert await world.versions_in(proxy, await world.get(proxy, "left")) == ["1.0.0"]
    assert up.count() == 2


async def test_parts_that_cannot_be_read_now_are_an_error_of_the_storage(
    world: ProxyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = world.upstream()
    up.add("left", pad=1000)
    proxy = await world.proxy("mirror", up)
    await world.get(proxy, "left")
    await world.restart()

    def fails(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    held = await world.get(proxy, "left")
    monkeypatch.setattr(os, "pread", fails)
    with pytest.raises(StorageFailed, match="'main'"):
        await world.versions_in(proxy, held)
    monkeypatch.undo()
    assert await world.versions_in(proxy, held) == ["1.0.0"]
    assert up.count() == 1


async def test_parts_that_were_read_are_served_from_memory_until_they_are_known_to_be_bad(
    world: ProxyWorld,
) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    await world.get(proxy, "left")
    await world.restart()
    held = await world.get(proxy, "left")
    assert await world.versions_in(proxy, held) == ["1.0.0"]
    for path in world.config.data.dir.rglob(held.document.locator.rpartition("/")[2]):
        path.unlink()
    assert await world.versions_in(proxy, await world.get(proxy, "left")) == ["1.0.0"]
    assert up.count() == 1
    document = held.document
    await world.core.catalog.write(blobs.mark_suspect, document.storage_id, document.sha256, document.locator)
    assert await world.versions_in(proxy, await world.get(proxy, "left")) == ["1.0.0"]
    assert up.count() == 2


async def test_purged_answers_are_asked_for_again(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    await world.get(proxy, "left")
    await world.settle()
    await world.proxies.purge.purge(proxy, Selection(package="left"), SYSTEM, NoProgress())
    await world.get(proxy, "left")
    assert up.count() == 2


async def test_answer_of_a_route_that_has_another_address_now_is_neither_served_nor_confirmed(
    world: ProxyWorld,
) -> None:
    before, after = world.upstream(), world.upstream()
    for up, version in ((before, "1.0.0"), (after, "2.0.0")):
        up.add("left", version)
    proxy = await world.proxy("mirror", before)
    assert await world.versions(proxy, "left") == ["1.0.0"]
    await world.settle()
    route = {"name": "a", "url": after.url, "priority": 0}
    moved = await world.change(proxy, config={"type": "Proxy", "proxy": {"routes": [route]}})
    assert await world.versions(moved, "left") == ["2.0.0"]
    assert "if-none-match" not in after.requests("/left")[0].fields
    after.misbehave("/left", failing(500), repeat=True)
    assert await world.versions(moved, "left", revalidate=True) == ["2.0.0"]


async def test_answer_that_replaces_another_one_is_stored_before_it_is_served(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    proxy = await world.proxy("mirror", up)
    await world.get(proxy, "left")
    await world.settle()
    world.clock.advance(301)
    up.add("left", "1.1.0")
    held = await world.get(proxy, "left")
    document = await world.core.catalog.look(upstream_documents.find_document, proxy.id, "packument/left")
    assert (held.stored, document.fetched_ms) == (True, held.document.fetched_ms)
