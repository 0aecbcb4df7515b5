"""Rules of repositories for what upstreams may serve: reserved names, and the age of releases."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pkgrepo.auth.permissions.rules import make_placeholder
from pkgrepo.model import Repository
from pkgrepo.proxy.resolving.rules import AgeRule, TooYoung
from pkgrepo.proxy.trace import NameReserved
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
RULE = AgeRule(7 * DAY, 7, "main/npm")


def asked(path: str) -> Repository:
    return make_placeholder(1, *path.split("/"))


@pytest.mark.parametrize(("age_ms", "hidden"), [(0, True), (7 * DAY - 1, True), (7 * DAY, False), (9 * DAY, False)])
def test_a_release_is_hidden_until_it_is_old_enough(age_ms: int, hidden: bool) -> None:
    now_ms = 100 * DAY
    assert RULE.hides(now_ms - age_ms, now_ms) is hidden


def test_a_release_of_unknown_time_is_hidden() -> None:
    assert RULE.hides(None, 100 * DAY)


def test_the_next_opening_is_that_of_the_oldest_release_that_is_too_young() -> None:
    now_ms = 100 * DAY
    assert RULE.next_opening_ms([1, now_ms - DAY, now_ms - 3 * DAY, None], now_ms) == now_ms + 4 * DAY
    assert RULE.next_opening_ms([1, None], now_ms) is None


def test_a_refusal_survives_dates_that_no_calendar_has() -> None:
    latest_ms = 253_402_300_799_000  # the end of the year 9999
    with pytest.raises(TooYoung, match="in the future"):
        RULE.check("x-1.tgz", latest_ms, 2000, asked("main/npm"))


def test_a_refusal_says_when_the_release_will_be_served() -> None:
    with pytest.raises(TooYoung, match=r"x-1\.tgz .* 7 days .* main/npm .* from 1970-01-08 00:00:01 UTC"):
        RULE.check("x-1.tgz", 1000, 2000, asked("main/npm"))
    with pytest.raises(TooYoung, match="no publication date"):
        RULE.check("x-1.tgz", None, 2000, asked("main/npm"))
    RULE.check("x-1.tgz", 1000, 1000 + 7 * DAY, asked("main/npm"))


def test_a_refusal_names_no_member_of_a_virtual_repository() -> None:
    with pytest.raises(TooYoung) as refused:
        RULE.check("x-1.tgz", 1000, 2000, asked("main/all"))
    assert "main/npm" not in str(refused.value)
    assert "a member of main/all" in str(refused.value)
