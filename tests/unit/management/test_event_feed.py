"""The feed of events: who sees which, and how it goes on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, DeferredList

from pkgrepo.storage.catalog.packages.events import kinds_after
from pkgrepo.storage.catalog.people.tokens import DAY_MS, announce_expiring
from pkgrepo.storage.catalog.server.upstream_states import note_upstream
from pkgrepo.webhooks.feed import MOST_OF_CALLER
from tests.support.memory_server import WITHOUT_CONDA, Stack, running_stacks

HELD = '{"version":"1.0","quarantined":true}'


async def feed(stack: Stack, query: str = "", who: str | None = "admin") -> tuple[list[Any], str]:
    reply = await stack.api("GET", f"/events{query}", who=who)
    assert (reply.status, reply.headers["content-type"]) == (200, "application/x-ndjson"), reply.body
    found = re.search(r"<http://registry\.example/api([^>]*)>; rel=\"next\"", reply.headers["link"])
    assert found is not None
    return [json.loads(line) for line in reply.body.splitlines()], found[1]


def subjects(found: list[Any]) -> list[str]:
    return [each["subject"] for each in found]


async def test_events_come_in_order_and_the_link_goes_on(stack: Stack) -> None:
    await stack.add_repository("py", config=WITHOUT_CONDA)
    for version in ("1.0", "1.1", "1.2"):
        await stack.publish("main/py", "demo", version)
    newest, link = await feed(stack, "?limit=2")
    assert subjects(newest) == ["main/py/demo@1.1", "main/py/demo@1.2"]
    await stack.publish("main/py", "demo", "1.3")
    reply = await stack.call("GET", f"/api{link}")
    assert subjects([json.loads(line) for line in reply.body.splitlines()]) == ["main/py/demo@1.3"]
    every, _ = await feed(stack, "?after=0")
    assert [each["seq"] for each in every] == sorted(each["seq"] for each in every)
    assert every[-1]["id"].startswith(f"evt_{every[-1]['seq']}_")
    assert subjects((await feed(stack, f"?after={every[-2]['seq']}&limit=1000"))[0]) == ["main/py/demo@1.3"]
    assert (await feed(stack, "?type=package.yanked"))[0] == []
    assert subjects((await feed(stack, "?type=repository.*,package.yanked"))[0]) == ["main/py"]


async def test_only_what_the_caller_may_read_is_there(stack: Stack) -> None:
    await stack.add_user("ada")
    for name in ("public", "private", "hidden"):
        await stack.add_repository(name, visibility=name, config=WITHOUT_CONDA)
        await stack.publish(f"main/{name}", "demo", "1.0")
    await stack.ok("PUT", "/repository/main%2Fpublic/config/auth", {"enabled": False})

    async def seen(who: str | None) -> set[str]:
        return {each.partition("/demo")[0] for each in subjects((await feed(stack, "?type=package.*", who))[0])}

    assert await seen("admin") == {"main/public", "main/private", "main/hidden"}
    assert await seen(None) == {"main/public"}
    assert await seen("ada") == {"main/public"}
    await stack.grant("ada", "main/private", "read")
    assert await seen("ada") == {"main/public", "main/private"}
    # What is about no package is for those who look after the repository, or the server.
    assert (await feed(stack, "?type=repository.*", "ada"))[0] == []
    assert len((await feed(stack, "?type=repository.created"))[0]) == 3


async def test_wrong_questions_are_refused(stack: Stack) -> None:
    for query in ("after=x", "after=-1", "limit=0", "limit=1001", "type=nothing"):
        assert (await stack.api("GET", f"/events?{query}")).status == 422, query
    stream = {"Accept": "text/event-stream", "Last-Event-ID": "x"}
    assert (await stack.api("GET", "/events", headers=stream)).status == 422


async def test_tokens_that_expire_are_announced_twice(stack: Stack) -> None:
    catalog, now_ms = stack.assembly.core.catalog, stack.assembly.core.clock.now_ms()
    await catalog.write(announce_expiring, now_ms)
    for name, days in (("long", 20), ("short", 10), ("revoked", 20)):
        made = await stack.ok("POST", "/user/token", {"name": name, "expires_in_days": days})
    await stack.ok("DELETE", f"/user/token/{made['id']}")
    found = [await catalog.write(announce_expiring, now_ms + days * DAY_MS) for days in (1, 7, 8, 18, 30)]
    assert found == [0, 1, 1, 1, 0]
    events, _ = await feed(stack, "?type=token.expiring")
    said = [(each["data"]["name"], each["data"]["days"], each["data"]["user"]) for each in events]
    assert said == [("long", 14, "admin"), ("short", 3, "admin"), ("long", 3, "admin")]


async def test_an_upstream_that_is_down_is_announced_once_by_all_processes(stack: Stack) -> None:
    repository = await stack.add_repository("py")
    core = stack.assembly.core
    place = (core.registry.find_uid(repository["id"]).id, "main")
    for reason in (None, "it refuses connections", "it refuses connections", None, None):
        await core.catalog.write(note_upstream, *place, reason, core.clock.now_ms())
    events, _ = await feed(stack, "?type=upstream.*")
    assert [each["type"] for each in events] == ["pkgrepo.upstream.down.v1", "pkgrepo.upstream.up.v1"]
    assert events[0]["data"]["reason"] == "it refuses connections"


async def test_a_reader_follows_one_repository_and_learns_nothing_of_others(stack: Stack) -> None:
    await stack.add_user("ada")
    for name, visibility in (("mine", "hidden"), ("other", "private")):
        await stack.add_repository(name, visibility=visibility, config=WITHOUT_CONDA)
        await stack.publish(f"main/{name}", "demo", "1.0")
    await stack.grant("ada", "main/mine", "read")
    found, link = await feed(stack, "?repository=main/mine", "ada")
    assert subjects(found) == ["main/mine/demo@1.0"]  # of a hidden repository, whose name the reader knows
    await stack.publish("main/other", "demo", "1.1")
    await stack.publish("main/mine", "demo", "1.1")
    reply = await stack.api("GET", link, who="ada")
    assert subjects([json.loads(line) for line in reply.body.splitlines()]) == ["main/mine/demo@1.1"]
    assert reply.headers["x-events-left"] == "0"
    for name in ("main/other", "main/none"):
        assert (await stack.api("GET", f"/events?repository={name}", who="ada")).status == 404
    assert (await stack.api("GET", "/events?repository=main/other", who=None)).status == 401


async def test_what_is_left_is_what_the_caller_may_see(stack: Stack) -> None:
    await stack.add_user("ada")
    made = await stack.add_repository("py", config=WITHOUT_CONDA)
    for version in ("1.0", "1.1"):
        await stack.publish("main/py", "demo", version)
    # A change of settings is for editors.
    await stack.ok(
        "PUT", "/repository/main%2Fpy/config/policy", {"rules": [{"name": "old", "match": {"versions": "<1"}}]}
    )

    async def left(query: str, who: str) -> str:
        return (await stack.api("GET", f"/events?repository={made['id']}&after=0&limit=1{query}", who=who)).headers[
            "x-events-left"
        ]

    assert [await left(query, "ada") for query in ("", "&type=package.*", "&type=package.yanked")] == ["1", "1", "0"]
    assert int(await left("", "admin")) > 1
    for name in ("else", "other"):
        await stack.publish("main/py", name, "1.0")
    assert await left("", "ada") == "3"


async def test_of_what_is_in_quarantine_each_package_is_asked_about(stack: Stack) -> None:
    await stack.add_repository("py", config=WITHOUT_CONDA)
    for name in ("demo", "else", "other"):
        await stack.publish("main/py", name, "1.0")
    await stack.publish("main/py", "demo", "1.1")
    catalog = stack.assembly.core.catalog
    repository = stack.assembly.core.registry.find_path("main/py")
    assert repository is not None

    async def counts() -> list[tuple[bool, int]]:
        found = await catalog.scan(kinds_after, repository.id, 0, 100)
        return sorted((bool(each.package_key), count) for each, count in found if each.kind == "published")

    assert await counts() == [(True, 4)]
    await catalog.write(lambda tx: tx.send("UPDATE event SET data = ? WHERE package_key <> 'demo'", (HELD,)))
    assert await counts() == [(True, 1), (True, 1), (True, 2)]


async def test_a_position_of_another_log_is_refused(stack: Stack) -> None:
    await stack.add_repository("py", config=WITHOUT_CONDA)
    await stack.publish("main/py", "demo", "1.0")
    (event,), _ = await feed(stack, "?repository=main/py&type=package.*")
    seq, there = event["seq"], event["id"]
    assert (await feed(stack, f"?repository=main/py&after={there}"))[0] == []
    for position in (f"evt_{seq}_1", f"evt_{seq + 1000}_{there.rpartition('_')[2]}"):
        reply = await stack.api("GET", f"/events?repository=main/py&after={position}")
        assert (reply.status, json.loads(reply.body)["type"].rpartition("/")[2]) == (410, "position_lost")
    await stack.add_repository("else", config=WITHOUT_CONDA)
    assert (await stack.api("GET", f"/events?repository=main/else&after={there}")).status == 410
    assert (await stack.api("GET", "/events?after=evt_x")).status == 422


async def test_a_caller_waits_for_an_event(stack: Stack) -> None:
    await stack.add_repository("py", config=WITHOUT_CONDA)
    _, link = await feed(stack, "?repository=main/py")
    waiting = Deferred.fromCoroutine(stack.api("GET", f"{link}&wait=30&type=package.*"))
    await stack.publish("main/py", "demo", "1.0")
    assert subjects([json.loads(line) for line in (await waiting).body.splitlines()]) == ["main/py/demo@1.0"]
    assert (await stack.api("GET", f"{link}&wait=31")).status == 422


async def test_waits_without_credentials_are_counted_for_a_network_of_ipv6(tmp_path: Path) -> None:
    async with running_stacks(tmp_path) as make:
        stack = await make(server__trusted_proxies=["192.168.0.0/16"])  # where connections in memory come from
        await stack.add_repository("py", visibility="public", config=WITHOUT_CONDA)
        _, link = await feed(stack, "?repository=main/py", None)

        def wait_from(address: str) -> Deferred[Any]:
            headers = {"X-Forwarded-For": address}
            return Deferred.fromCoroutine(stack.api("GET", f"{link}&wait=30", who=None, headers=headers))

        mates = [wait_from(f"2001:db8:0:1::{number:x}") for number in range(MOST_OF_CALLER + 1)]
        neighbour = wait_from("2001:db8:0:2::1")
        refused, at = await DeferredList(mates, fireOnOneCallback=True)
        assert refused.body == b"", "one of them more than may wait is answered at once"
        await stack.publish("main/py", "demo", "1.0")
        for each in (*mates[:at], *mates[at + 1 :], neighbour):
            assert b"main/py/demo@1.0" in (await each).body
