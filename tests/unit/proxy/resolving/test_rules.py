"""Rules of repositories for what upstreams may serve: reserved names, and the age of releases."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pkgrepo.model import Repository
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.proxy.trace import NameReserved
from pkgrepo.repositories.policy.conditions import Placed
from pkgrepo.repositories.policy.refusals import RuleRefused, TooYoung, refusal
from pkgrepo.repositories.policy.rules import Verdict
from pkgrepo.repositories.policy.schema import PolicyRule, RuleMatch
from tests.support.proxy_world import DAY_S, ProxyWorld
from tests.support.upstreams.npm import NpmUpstream

NOBODY = {"reserved_names": ["acme-*"]}


def add_aged(world: ProxyWorld, up: NpmUpstream, name: str, **days: float) -> None:
    """Publish versions ``v1`` (1.0.0) and so on, so many days ago."""
    for version, age in days.items():
        published = datetime.fromtimestamp(world.clock.ms / 1000 - age * DAY_S, UTC).isoformat()
        up.add(name, f"{version[1:]}.0.0", published=published.replace("+00:00", "Z"))


@pytest.mark.parametrize("place", ["mirror", "nested", "all"])
async def test_reserved_names_are_never_asked(world: ProxyWorld, place: str) -> None:
    up = world.upstream()
    up.add("acme-tool")
    up.add("left")
    policies = {place: {"policy": NOBODY}}
    mirror = await world.proxy("mirror", up, **policies.get("mirror", {}))
    nested = await world.virtual("nested", mirror, **policies.get("nested", {}))
    everything = await world.virtual("all", nested, **policies.get("all", {}))
    with pytest.raises(NameReserved, match=r"reserved_names has 'acme-\*'"):
        await world.versions(everything, "acme-tool")
    assert up.count() == 0
    (step,) = await world.steps(everything, "acme-tool")
    assert (step.step, step.pattern, step.rule) == ("reserved", "acme-*", f"main/{place}")
    assert await world.versions(everything, "left") == ["1.0.0"]


async def test_hosted_packages_may_have_reserved_names(world: ProxyWorld) -> None:
    own = await world.hosted()
    everything = await world.virtual("all", own, await world.proxy("mirror", world.upstream()), policy=NOBODY)
    await world.own(own, "acme-tool")
    assert await world.steps(everything, "acme-tool")
    await world.versions(everything, "acme-tool")


async def test_kept_file_whose_name_is_reserved_later_is_not_served(world: ProxyWorld) -> None:
    up = world.upstream()
    mirror = await world.proxy("mirror", up, policy={"keep_removed": True})
    everything = await world.virtual("all", mirror)
    await world.own(mirror, "acme-tool")  # as if it had been fetched
    path = "acme-tool/-/acme-tool-1.0.0.tgz"
    assert (await world.files.find(mirror, "acme-tool", path)).file
    for repository in (mirror, everything):
        reserving = await world.change(repository, settings={"policy": NOBODY})
        with pytest.raises(NameReserved):
            await world.files.find(reserving, "acme-tool", path)
        await world.change(repository, settings={})


@pytest.mark.parametrize("place", ["mirror", "nested", "all"])
async def test_young_versions_open_with_time_without_a_change_upstream(world: ProxyWorld, place: str) -> None:
    up = world.upstream()
    add_aged(world, up, "left", v1=30, v2=2)
    policies = {place: {"policy": {"minimum_release_age": {"days": 3}}}}
    mirror = await world.proxy("mirror", up, cache_ttl="30d", **policies.get("mirror", {}))
    nested = await world.virtual("nested", mirror, **policies.get("nested", {}))
    everything = await world.virtual("all", nested, **policies.get("all", {}))
    state = await world.resolver.state(everything, "left")
    document = await world.packument(everything, "left")
    assert (list(document["versions"]), document["dist-tags"]) == (["1.0.0"], {"latest": "1.0.0"})
    path = "left/-/left-2.0.0.tgz"
    with pytest.raises(TooYoung):
        await world.files.find(everything, "left", path)
    assert state.expires_s == world.clock.ms // 1000 + DAY_S
    world.clock.advance(DAY_S)
    assert state.expired(world.clock.ms)
    assert (await world.resolver.state(everything, "left")).stamp != state.stamp
    assert (await world.packument(everything, "left"))["dist-tags"] == {"latest": "2.0.0"}
    assert (await world.files.find(everything, "left", path)).file
    assert up.count() == 1


async def test_strictest_rule_on_the_way_applies(world: ProxyWorld) -> None:
    up = world.upstream()
    add_aged(world, up, "left", v1=30, v2=10, v3=4)
    mirror = await world.proxy("mirror", up, policy={"minimum_release_age": {"days": 7}})
    everything = await world.virtual("all", mirror, policy={"minimum_release_age": {"days": 20}})
    assert await world.versions(mirror, "left") == ["1.0.0", "2.0.0"]
    assert await world.versions(everything, "left") == ["1.0.0"]


async def test_rule_that_changes_changes_the_stamp_of_documents(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    up.change("left")["time"] = {"1.0.0": "no time"}
    mirror = await world.proxy("mirror", up, cache_ttl="30d")
    world.clock.advance(-DAY_S)
    before = await world.resolver.state(mirror, "left")
    world.clock.advance(20 * DAY_S)
    stamps = {before.stamp}
    for days in (1, 2):
        changed = await world.change(mirror, settings={"policy": {"minimum_release_age": {"days": days}}})
        stamps.add((await world.resolver.state(changed, "left")).stamp)
    assert len(stamps) == 3
    assert not world.core.catalog.peek(before.fresh)


async def test_exempt_names_are_served_at_once(world: ProxyWorld) -> None:
    up = world.upstream()
    add_aged(world, up, "left", v1=0)
    add_aged(world, up, "acme-x", v1=0)
    policy = {"minimum_release_age": {"days": 3, "exempt": ["acme-*"]}}
    mirror = await world.proxy("mirror", up, policy=policy)
    assert await world.versions(mirror, "left") == []
    assert await world.versions(mirror, "acme-x") == ["1.0.0"]


async def test_first_sight_counts_where_the_upstream_says_no_date(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left", published="")
    up.change("left")["time"] = {}
    mirror = await world.proxy("mirror", up, policy={"minimum_release_age": {"days": 3}})
    assert await world.versions(mirror, "left") == []
    world.clock.advance(3 * DAY_S)
    up.add("left", "1.1.0")
    up.change("left")["time"] = {}
    assert await world.versions(mirror, "left") == ["1.0.0"]


async def test_kept_file_is_refused_by_a_rule_that_is_set_later(world: ProxyWorld) -> None:
    up = world.upstream()
    mirror: Repository = await world.proxy("mirror", up, policy={"keep_removed": True})
    await world.own(mirror, "left")  # a kept file of unknown date
    path = "left/-/left-1.0.0.tgz"
    assert (await world.files.find(mirror, "left", path)).file
    policy = {"minimum_release_age": {"days": 3}, "keep_removed": True}
    strict = await world.change(mirror, settings={"policy": policy})
    with pytest.raises(TooYoung, match="no publication date"):
        await world.files.find(strict, "left", path)


DAY = 86_400_000


def young(days: int = 7, opens_ms: int | None = None, missing: str = "", asked: str = "main/npm") -> RuleRefused:
    rule = PolicyRule(name="minimum_release_age", match=RuleMatch(age_days=days))
    verdict = Verdict(by=Placed(rule, "main/npm", short=True), opens_ms=opens_ms, missing=missing)
    return refusal("x-1.tgz", verdict, make_placeholder(1, *asked.split("/")), make_placeholder(2, "main", "npm"))


def test_a_refusal_survives_dates_that_no_calendar_has() -> None:
    latest_ms = 253_402_300_799_000 + 7 * DAY  # after the end of the year 9999
    assert "in the future" in str(young(opens_ms=latest_ms))


def test_a_refusal_says_when_the_release_will_be_served() -> None:
    assert "7 days that policy.minimum_release_age of main/npm" in str(young(opens_ms=1000 + 7 * DAY))
    assert str(young(opens_ms=1000 + 7 * DAY)).endswith("from 1970-01-08 00:00:01 UTC")
    assert "no publication date" in str(young(missing="the time of publication"))


def test_a_refusal_names_no_member_of_a_virtual_repository() -> None:
    text = str(young(asked="main/all"))
    assert "main/npm" not in text
    assert "a member of main/all" in text
