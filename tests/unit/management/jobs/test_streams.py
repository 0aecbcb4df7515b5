"""The stream of a job: what has changed of it, until it has ended or the caller may not see it."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred

from tests.support.browser import Browser
from tests.support.inprocess_server import until
from tests.support.memory_server import Reply, Stack

STREAM = {"Accept": "text/event-stream"}


def events(reply: Reply) -> list[Any]:
    """The jobs in a stream that has ended."""
    assert reply.headers["content-type"] == "text/event-stream"
    lines = reply.body.decode().splitlines()
    return [json.loads(each.removeprefix("data: ")) for each in lines if each.startswith("data: ")]


async def begin(stack: Stack) -> tuple[str, Any, Deferred[None]]:
    """The id of a job that runs, its progress, and what ends it."""
    begun: list[Any] = []
    ended: Deferred[None] = Deferred()

    async def work(progress: Any) -> dict[str, Any]:
        progress.begin("counting", 3)
        begun.append(progress)
        await ended
        return {}

    uid = await stack.assembly.core.jobs.begin("verify", "key", {"on": "storage 'main'", "by": "admin"}, work)
    return uid, begun[0], ended


async def test_a_job_is_told_of_until_it_has_ended(stack: Stack) -> None:
    uid, progress, ended = await begin(stack)
    reply = Deferred.fromCoroutine(stack.call("GET", f"/api/job/{uid}", headers=STREAM))
    await until(lambda: b'"running"' in stack.transport.value())
    progress.step(2)
    ended.callback(None)
    found = events(await reply)
    assert [each["state"] for each in (found[0], found[-1])] == ["running", "done"]
    assert found[-1]["parts"][0]["done"] == 2
    [only] = events(await stack.call("GET", f"/api/job/{uid}", headers=STREAM))
    assert only["state"] == "done"


async def test_a_stream_is_for_those_who_may_see_the_job(stack: Stack) -> None:
    uid, _, ended = await begin(stack)
    await stack.add_user("ada")
    for who, status in (("ada", 404), (None, 401)):
        assert (await stack.call("GET", f"/api/job/{uid}", who=who, headers=STREAM)).status == status
    ended.callback(None)


async def test_a_stream_ends_with_the_session(stack: Stack) -> None:
    uid, _, ended = await begin(stack)
    browser = Browser(stack)
    page = await browser.log_in()
    headers = {**STREAM, "Cookie": browser.cookie}
    reply = Deferred.fromCoroutine(stack.call("GET", f"/api/job/{uid}", who=None, headers=headers))
    begun = stack.transport
    await until(lambda: b'"running"' in begun.value())
    await browser.send(page, "/ui/logout")
    assert [each["state"] for each in events(await reply)] == ["running"]
    assert (await stack.ok("GET", f"/job/{uid}"))["state"] == "running"
    ended.callback(None)


async def test_a_caller_has_only_some_streams(stack: Stack) -> None:
    uid, _, ended = await begin(stack)
    path = f"/api/job/{uid}"
    await stack.call("GET", "/api/repository/types")  # loads all formats, for which the first requests would wait
    replies = [Deferred.fromCoroutine(stack.call("GET", path, headers=STREAM)) for _ in range(10)]
    assert (await stack.call("GET", path, headers=STREAM)).status == 429
    ended.callback(None)
    assert {events(await each)[-1]["state"] for each in replies} == {"done"}
