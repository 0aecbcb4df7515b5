"""New dependencies of versions, and when these packages were first published."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.proxy.resolving.package_files import keep_file
from pkgrepo.storage.catalog.file_facts import dependency_name, facts_of_package
from tests.support.proxy_world import DAY_S, ProxyWorld
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.npm import NpmUpstream
from tests.unit.proxy.resolving.test_differs import NAME, ask, days_ago, mirror_of, shown

RULE: dict[str, Any] = {
    "name": "young needs",
    "match": {"differs": ["young_dependency"]},
    "action": "quarantine",
    "missing": "block",
}
WHY = "new young_dependency crypto since 1.0.0"


def two_versions(up: NpmUpstream, **needs: str) -> None:
    up.add(NAME, "1.0.0", published=days_ago(90), dependencies={"kept": "1"})
    up.add(NAME, "1.0.1", published=days_ago(1), dependencies={"kept": "1", **needs})


async def test_a_version_that_needs_a_package_of_yesterday_is_held(world: ProxyWorld) -> None:
    up = world.upstream()
    two_versions(up, crypto="^1")
    up.add("crypto", "1.0.0", published=days_ago(2))
    mirror = await mirror_of(world, up, RULE)
    assert WHY in await ask(world, mirror, "1.0.1")
    assert await shown(world, mirror) == ["1.0.0"]
    assert up.count("/crypto") == 1
    assert not up.count("/kept")
    world.clock.advance(90 * DAY_S)  # it was young when the version came
    assert WHY in await ask(world, mirror, "1.0.1")


async def test_it_is_known_before_a_document_is_answered_and_after_a_restart(world: ProxyWorld) -> None:
    up = world.upstream()
    two_versions(up, crypto="^1")
    up.add("crypto", "1.0.0", published=days_ago(2))
    mirror = await mirror_of(world, up, RULE)
    assert await shown(world, mirror) == ["1.0.0"]
    await world.settle()
    await world.restart()
    mirror = world.now(mirror)
    assert WHY in await ask(world, mirror, "1.0.1")
    assert up.count("/crypto") == 1


async def test_one_that_needs_an_old_package_is_served(world: ProxyWorld) -> None:
    up = world.upstream()
    two_versions(up, crypto="^2")
    up.add("crypto", "1.0.0", published=days_ago(61.1))
    up.add("crypto", "2.0.0", published=days_ago(1))
    mirror = await mirror_of(world, up, RULE)
    assert not await ask(world, mirror, "1.0.1")
    assert await shown(world, mirror) == ["1.0.0", "1.0.1"]
    assert not await ask(world, mirror, "1.0.1")
    assert up.count("/crypto") == 1


@pytest.mark.parametrize("answer", [Answer(status=404, body=b""), Answer(status=503, body=b""), Answer(body=b"[")])
@pytest.mark.parametrize(("missing", "refused"), [("block", True), ("quarantine", True), ("allow", False)])
async def test_what_cannot_be_asked_is_missing(world: ProxyWorld, answer: Answer, missing: str, refused: bool) -> None:
    up = world.upstream()
    two_versions(up, crypto="^1")
    up.serve("/crypto", answer)
    mirror = await mirror_of(world, up, {**RULE, "missing": missing})
    for _ in range(2):
        why = await ask(world, mirror, "1.0.1")
        assert bool(why) == refused
        assert not refused or "how it differs from the version before is not known" in why


async def test_a_package_without_dates_is_as_old_as_it_is_known_for_certain(world: ProxyWorld) -> None:
    up = world.upstream()
    two_versions(up, crypto="^1")
    up.add("crypto", "1.0.0")
    up.change("crypto")["time"].clear()
    mirror = await mirror_of(world, up, RULE)
    assert "is not known" in await ask(world, mirror, "1.0.1")
    world.clock.advance(70 * DAY_S)
    up.add(NAME, "1.0.2", published=days_ago(-70), dependencies={"kept": "1", "crypto": "^1"})
    await world.get(mirror, NAME)
    assert not await ask(world, mirror, "1.0.2")  # it was seen 70 days before


async def test_what_was_kept_long_ago_is_not_asked_for(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("crypto", "1.0.0", published=days_ago(2))
    mirror = await mirror_of(world, up, RULE)
    await keep_file(world.files, world.proxies.fetching, mirror, "crypto", "crypto/-/crypto-1.0.0.tgz")
    await world.settle()
    world.clock.advance(70 * DAY_S)
    up.add(NAME, "1.0.0", published=days_ago(90))
    up.add(NAME, "1.0.1", published=days_ago(-70), dependencies={"crypto": "^1"})
    before = up.count("/crypto")
    assert not await ask(world, mirror, "1.0.1")
    assert up.count("/crypto") == before


async def test_nothing_is_asked_of_many_or_of_what_comes_from_elsewhere(world: ProxyWorld) -> None:
    up = world.upstream()
    two_versions(up, **{f"other-{letter}": "1" for letter in "abcdef"})
    up.add("old", "1.0.0", published=days_ago(99))
    needs = {"kept": "1", "crypto": "github:a/b", "other-a": "npm:old@1"}
    up.add(NAME, "1.0.2", published=days_ago(0.5), dependencies=needs)
    mirror = await mirror_of(world, up, RULE)
    assert "new young_dependencies other-a other-b other-c other-d other-e and 1 more" in await ask(
        world, mirror, "1.0.1"
    )
    assert not await ask(world, mirror, "1.0.2")
    assert [each for each in ("/crypto", "/other-a", "/old") if up.count(each)] == ["/old"]


async def test_packages_that_newly_need_each_other_wait_for_neither(world: ProxyWorld) -> None:
    up = world.upstream()
    for name, other in (("one", "two"), ("two", "one")):
        up.add(name, "1.0.0", published=days_ago(90))
        up.add(name, "1.0.1", published=days_ago(1), dependencies={other: "1"})
    mirror = await mirror_of(world, up, RULE)
    for name in ("one", "two"):
        await world.files.find(mirror, name, f"{name}/-/{name}-1.0.1.tgz")
    assert [up.count(each) for each in ("/one", "/two")] == [1, 1]


async def test_a_rule_that_does_not_ask_for_it_asks_for_nothing(world: ProxyWorld) -> None:
    up = world.upstream()
    two_versions(up, crypto="^1")
    mirror = await mirror_of(world, up, {**RULE, "match": {"differs": ["dependency"]}})
    assert "new dependency crypto since 1.0.0" in await ask(world, mirror, "1.0.1")
    assert not up.count("/crypto")


async def test_each_repository_knows_its_own_upstream(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    for up, days in ((first, 2), (second, 80)):
        two_versions(up, crypto="^1")
        up.add("crypto", "1.0.0", published=days_ago(days))
    policy = {"rules": [RULE]}
    one, two = [await world.proxy(name, up, policy=policy) for name, up in (("one", first), ("two", second))]
    assert WHY in await ask(world, one, "1.0.1")
    assert not await ask(world, two, "1.0.1")
    _, facts = await world.core.catalog.scan(facts_of_package, "npm", NAME)
    assert {each for each in facts if ": " in each} == {dependency_name(each.id, "crypto") for each in (one, two)}
