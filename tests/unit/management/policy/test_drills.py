"""Drills by the API: with the rules of the server, of a repository and such as are given; and what the log tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.memory_server import Stack
from tests.support.npm_packages import make_publish
from tests.support.osv_records import REQUESTS, write_folder

PATH = "/policy/drill?wait=true"
YOUNG = {"name": "young", "match": {"age_days": 3, "source": "cached"}}


async def drill(stack: Stack, **body: Any) -> Any:
    return await stack.ok("POST", PATH, body)


def by_name(found: Any) -> dict[str, Any]:
    return {each["incident"]: each for each in found["incidents"]}


async def test_without_rules_each_incident_is_served_and_no_incident_is_left_out(stack: Stack) -> None:
    found = await drill(stack)
    assert (found["held"], found["opened"], found["served"]) == (0, 0, len(found["incidents"]))
    assert len(found["incidents"]) >= 20
    assert {each["format"] for each in found["incidents"]} == {"npm", "python", "ruby"}
    times = [each["published_at"] for each in found["incidents"]]
    assert times == sorted(times)


async def test_the_rules_of_the_server_hold_and_the_spans_tell_until_when(stack: Stack) -> None:
    await stack.ok("PUT", "/policy/rules", {"rules": [YOUNG]})
    found = by_name(await drill(stack))
    assert found["chalk-debug"]["outcome"] == "held"
    assert found["chalk-debug"]["served_s"] == 0
    (rule,) = found["chalk-debug"]["rules"]
    assert (rule["rule"], rule["owner"], rule["versions"], rule["throughout"]) == ("young", "the server", 2, 2)
    event = found["event-stream"]
    assert event["outcome"] == "opened"
    assert event["served_s"] == (78 - 3) * 86400
    (harmful,) = [each for each in event["versions"] if each["package"] == "flatmap-stream"]
    assert [(each["from_at"], each["served"], each["rule"]) for each in harmful["spans"]] == [
        ("2018-10-05T00:00:00Z", False, "young"),
        ("2018-10-08T00:00:00Z", True, ""),
    ]
    assert harmful["spans"][-1]["until_at"] == event["removed_at"] == "2018-11-26T00:00:00Z"


async def test_one_incident_is_played_with_rules_that_are_given(stack: Stack) -> None:
    rule = {"name": "inside", "match": {"contents": ["pth"]}, "action": "quarantine"}
    found = await drill(stack, incident="litellm", rules=[rule])
    (incident,) = found["incidents"]
    outcomes = {each["version"]: (each["outcome"], each["spans"][0]["action"]) for each in incident["versions"]}
    assert outcomes == {"1.82.7": ("served", ""), "1.82.8": ("held", "quarantine")}
    assert incident["outcome"] == "served"  # the worst of them
    assert (await stack.ok("GET", "/policy/rules"))["rules"] == []


async def test_the_rules_of_a_repository_are_those_by_which_it_is_reached(stack: Stack) -> None:
    routes = {"routes": [{"url": "https://upstream.invalid/", "name": "up"}]}
    config = {"type": "Proxy", "proxy": routes, "policy": {"rules": [{"name": "up", "match": {"source": "up"}}]}}
    await stack.add_repository("mirror", format="npm", config=config)
    blocked = {"rules": [{"name": "around", "match": {"packages": ["keyv"]}}]}
    await stack.add_repository(
        "all", format="npm", config={"type": "Virtual", "members": ["main/mirror"], "policy": blocked}
    )
    own = by_name(await drill(stack, repository="main/mirror"))
    assert {each["format"] for each in own.values()} == {"npm"}
    assert {each["outcome"] for each in own.values()} == {"held"}
    assert own["keyv"]["repository"] == "main/mirror"
    assert {each["rule"] for each in own["keyv"]["rules"]} == {"up"}
    around = by_name(await drill(stack, repository="main/all"))
    assert {(each["rule"], each["owner"]) for each in around["keyv"]["rules"]} == {
        ("up", "main/mirror"),
        ("around", "main/all"),
    }


async def test_what_cannot_be_drilled_is_refused(stack: Stack) -> None:
    await stack.add_repository("hosted", format="npm")
    await stack.add_repository("empty", format="npm", config={"type": "Virtual", "members": ["main/hosted"]})
    for body, status, pointer in (
        ({"repository": "main/hosted"}, 422, "/repository"),
        ({"repository": "main/empty"}, 422, "/repository"),
        ({"incident": "heartbleed"}, 404, None),
        ({"rules": [{"name": "x", "match": {"advisories": "worst"}}]}, 422, "/rules/0/match/advisories"),
    ):
        reply = await stack.api("POST", PATH, body)
        assert reply.status == status, (body, reply.body)
        assert pointer is None or reply.pointer == pointer


async def test_the_log_tells_what_was_fetched_of_its_packages_and_of_the_versions_that_did_harm(stack: Stack) -> None:
    await stack.add_repository("js", format="npm")
    for version, times in (("4.4.1", 3), ("4.4.2", 2)):
        reply = await stack.call("PUT", "/repositories/main/js/debug", raw=make_publish("debug", version))
        assert reply.status in (200, 201), reply.body
        for _ in range(times):
            assert (await stack.call("GET", f"/repositories/main/js/debug/-/debug-{version}.tgz")).status == 200
    found = by_name(await drill(stack, incident="chalk-debug"))["chalk-debug"]
    assert found["fetched"] == [{"package": "debug", "requests": 5, "clients": 1}]
    assert found["recalled"] == {"requests": 2, "clients": 1}
    assert found["taken"] == 1  # of five in a month, in two hours
    held = by_name(await drill(stack, incident="chalk-debug", rules=[YOUNG]))["chalk-debug"]
    assert held["taken"] == 0


async def test_a_record_of_malware_is_known_from_its_own_publication_on(make_stack: Any, tmp_path: Path) -> None:
    stack = await make_stack(advisories__source=str(write_folder(tmp_path / "osv", [REQUESTS])))
    while (await stack.api("POST", "/advisories/refresh?wait=true")).status == 409:
        pass
    routes = {"routes": [{"url": "https://upstream.invalid/"}]}
    await stack.add_repository("mirror", format="npm", config={"type": "Proxy", "proxy": routes})
    for body in ({}, {"repository": "main/mirror"}, {"rules": []}):  # the server has a rule of its own
        found = by_name(await drill(stack, incident="axios", **body))["axios"]
        (bad,) = [each for each in found["versions"] if each["package"] == "plain-crypto-js"]
        assert [(each["from_at"], each["rule"]) for each in bad["spans"]] == [
            ("2026-03-30T23:59:00Z", ""),
            ("2026-03-31T02:07:58Z", "known malware"),
        ]


async def test_without_a_source_of_advisories_none_are_known(stack: Stack) -> None:
    rule = {"name": "known", "match": {"advisories": "critical"}}
    found = by_name(await drill(stack, incident="axios", rules=[rule]))["axios"]
    assert found["outcome"] == "held"
    assert {each["missing"] for each in found["rules"]} == {"whether it has vulnerabilities"}
