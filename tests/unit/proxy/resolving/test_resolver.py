"""Which members of a repository serve a package, who is asked for it, and for how long that stands."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.defer import Deferred

from pkgrepo.errors import NotFound, RepositoryInactive, UpstreamFailed
from pkgrepo.model import Repository
from pkgrepo.proxy.refusals import NameReserved, NameRetired
from pkgrepo.proxy.resolving.release_age import TooYoung
from pkgrepo.proxy.trace import Trace
from pkgrepo.storage.catalog.packages import retired_names
from tests.support.inprocess_server import until
from tests.support.proxy_world import DAY_S, ProxyWorld, kinds
from tests.support.upstreams.faults import failing
from tests.support.upstreams.messages import HEAD, Fault
from tests.support.upstreams.npm import NpmUpstream

run = pytest_twisted.ensureDeferred
NOBODY = {"reserved_names": ["acme-*"]}


def add_aged(world: ProxyWorld, up: NpmUpstream, name: str, **days: float) -> None:
    """Publish versions ``v1`` (1.0.0) and so on, so many days ago."""
    for version, age in days.items():
        published = datetime.fromtimestamp(world.clock.ms / 1000 - age * DAY_S, UTC).isoformat()
        up.add(name, f"{version[1:]}.0.0", published=published.replace("+00:00", "Z"))


# Names of hosted members


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("switched_off", [False, True])
@run
async def test_name_of_a_hosted_member_is_never_asked_upstream(
    world: ProxyWorld, inside: bool, switched_off: bool
) -> None:
    up = world.upstream()
    up.add("secret", "9.0.0")
    own, mirror = await world.hosted(), await world.proxy("mirror", up)
    members = [mirror, await world.virtual("inner", own) if inside else own]
    everything = await world.virtual("all", *members)
    await world.own(own, "secret")
    if switched_off:
        await world.change(own, active=False)
        with pytest.raises(RepositoryInactive) as refused:
            await world.versions(everything, "secret")
        assert "main/own" not in str(refused.value)
    else:
        await world.versions(everything, "secret", revalidate=True)
    with pytest.raises((NotFound, RepositoryInactive)):
        await world.files.find(world.now(everything), "secret", "secret/-/secret-9.0.0.tgz")
    assert up.count() == 0
    assert kinds(await world.steps(everything, "secret")) == ["own owned_inactive" if switched_off else "own owned"]


@run
async def test_name_of_a_removed_package_is_not_asked_upstream_until_it_is_released(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("secret", "9.0.0")
    own, mirror = await world.hosted(), await world.proxy("mirror", up)
    everything = await world.virtual("all", mirror, own)
    await world.own(own, "secret")
    await world.disown(own, "secret")
    for _ in range(2):
        with pytest.raises(NameRetired, match="a hosted repository had it"):
            await world.versions(everything, "secret", revalidate=True)
        with pytest.raises(NotFound):
            await world.files.find(world.now(everything), "secret", "secret/-/secret-9.0.0.tgz")
    assert up.count() == 0
    assert kinds(await world.steps(everything, "secret")) == ["own retired"]
    await world.core.catalog.write(retired_names.release, own.id, "secret")
    assert await world.versions(everything, "secret") == ["9.0.0"]
    state = await world.resolver.state(world.now(everything), "secret")
    await world.own(own, "secret")
    await world.disown(own, "secret")
    assert not world.core.catalog.peek(state.fresh), "nobody asked meanwhile"


@run
async def test_name_is_not_asked_while_a_virtual_member_with_its_owner_is_switched_off(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("secret")
    own, mirror = await world.hosted(), await world.proxy("mirror", up)
    inner = await world.virtual("inner", own)
    everything = await world.virtual("all", inner, mirror)
    await world.own(own, "secret")
    await world.change(inner, active=False)
    with pytest.raises(RepositoryInactive):
        await world.versions(everything, "secret")
    assert up.count() == 0


@run
async def test_hosted_member_that_gets_a_name_ends_what_an_upstream_served(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("late", "9.0.0")
    own, other = await world.hosted(), await world.hosted("other")
    everything = await world.virtual("all", own, await world.proxy("mirror", up), other)
    state = await world.resolver.state(world.now(everything), "late")
    await world.settle()
    assert world.core.catalog.peek(state.fresh)
    await world.own(other, "late")
    assert not world.core.catalog.peek(state.fresh)
    again = await world.resolver.state(world.now(everything), "late")
    assert again.stamp != state.stamp
    assert kinds(await world.steps(everything, "late")) == ["own not_owned", "other owned"]
    await world.disown(other, "late")
    assert not world.core.catalog.peek(again.fresh)


@run
async def test_name_that_a_hosted_member_gets_while_an_upstream_answers(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("late")
    own = await world.hosted()
    everything = await world.virtual("all", own, await world.proxy("mirror", up))
    up.misbehave("/late", Fault(pause_at=HEAD))
    asking: Deferred[Any] = Deferred.fromCoroutine(world.resolver.state(world.now(everything), "late"))
    await until(lambda: up.count() and up.exchanges[0].paused)
    await world.own(own, "late")
    up.release("/late")
    state = await asking
    assert not world.core.catalog.peek(state.fresh)


@run
async def test_versions_of_all_hosted_members_are_served(world: ProxyWorld) -> None:
    first, second = await world.hosted("first"), await world.hosted("second")
    everything = await world.virtual("all", first, second)
    await world.own(second, "shared")
    await world.own(first, "shared")
    members = await world.resolver.members(everything, "shared", Trace())
    assert [each.repository.name for each in members.serving] == ["first", "second"]


@run
async def test_active_owner_serves_alone_while_another_is_switched_off(world: ProxyWorld) -> None:
    first, second = await world.hosted("first"), await world.hosted("second")
    everything = await world.virtual("all", first, second)
    await world.own(first, "shared")
    await world.own(second, "shared")
    await world.change(first, active=False)
    members = await world.resolver.members(world.now(everything), "shared", Trace())
    assert [each.repository.name for each in members.serving] == ["second"]


# Resolution


@run
async def test_first_member_that_has_a_package_serves_it_alone(world: ProxyWorld) -> None:
    ups = [world.upstream() for _ in range(3)]
    ups[1].add("left", "1.0.0")
    ups[2].add("left", "2.0.0")
    proxies = [await world.proxy(f"p{number}", up) for number, up in enumerate(ups)]
    everything = await world.virtual("all", *proxies)
    assert await world.versions(everything, "left") == ["1.0.0"]
    assert [each.count() for each in ups] == [1, 1, 0]
    await world.settle()
    assert kinds(await world.steps(everything, "left")) == [
        "p0 a absent",
        "p0 cached",
        "p1 a fetched",
        "p1 a cached",
        "p2 unneeded",
    ]


@run
async def test_member_in_front_that_gets_a_package_is_seen_when_its_absence_expires(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    second.add("left", "1.0.0")
    everything = await world.virtual(
        "all",
        await world.proxy("p0", first, cache={"negative_ttl": 60}),
        await world.proxy("p1", second, cache_ttl="1d"),
    )
    state = await world.resolver.state(everything, "left")
    assert state.expires_s == world.clock.ms // 1000 + 60
    first.add("left", "5.0.0")
    world.clock.advance(60)
    assert state.expired(world.clock.ms)
    assert await world.versions(everything, "left") == ["5.0.0"]


@run
async def test_versions_of_several_proxies_are_merged(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    first.add("left", "1.0.0")
    second.add("left", "2.0.0")
    everything = await world.virtual(
        "all", await world.proxy("p0", first), await world.proxy("p1", second), resolution="merge"
    )
    assert await world.versions(everything, "left") == ["1.0.0", "2.0.0"]


@pytest.mark.parametrize(
    ("outer", "inner", "versions"),
    [
        ("first", "merge", ["1.0.0", "2.0.0"]),
        ("merge", "first", ["1.0.0", "3.0.0"]),
        ("merge", "merge", ["1.0.0", "2.0.0", "3.0.0"]),
        ("first", "first", ["1.0.0"]),
    ],
)
@run
async def test_virtual_member_joins_its_members_in_its_own_way(
    world: ProxyWorld, outer: str, inner: str, versions: list[str]
) -> None:
    proxies = []
    for number in (1, 2, 3):
        up = world.upstream()
        up.add("left", f"{number}.0.0")
        proxies.append(await world.proxy(f"p{number}", up))
    nested = await world.virtual("nested", *proxies[:2], resolution=inner)
    everything = await world.virtual("all", nested, proxies[2], resolution=outer)
    assert await world.versions(everything, "left") == versions


@run
async def test_proxy_that_is_a_member_twice_is_asked_once(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    mirror = await world.proxy("mirror", up)
    nested = await world.virtual("nested", mirror)
    everything = await world.virtual("all", nested, mirror, resolution="merge")
    members = await world.resolver.members(everything, "left", Trace())
    assert [each.repository.name for each in members.serving] == ["mirror"]
    assert up.count() == 1


@run
async def test_switched_off_members_are_not_asked(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    mirror = await world.proxy("mirror", up)
    nested = await world.virtual("nested", mirror)
    everything = await world.virtual("all", nested)
    await world.change(nested, active=False)
    with pytest.raises(NotFound):
        await world.versions(everything, "left")
    assert kinds(await world.steps(everything, "left")) == ["mirror inactive"]
    await world.change(everything, config={**everything.config, "members": [nested.uid, mirror.uid]})
    assert await world.versions(everything, "left") == ["1.0.0"]


# Failures


@run
async def test_failing_member_makes_no_package_missing(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    first.misbehave("*", failing(500), repeat=True)
    everything = await world.virtual("all", await world.proxy("p0", first), await world.proxy("p1", second))
    with pytest.raises(UpstreamFailed):
        await world.versions(everything, "left")


@run
async def test_unknown_name_is_not_asked_of_later_members_while_the_first_one_fails(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    first.misbehave("*", failing(500), repeat=True)
    second.add("internal", "9.0.0")
    everything = await world.virtual("all", await world.proxy("p0", first), await world.proxy("p1", second))
    with pytest.raises(UpstreamFailed):
        await world.versions(everything, "internal")
    assert second.count() == 0
    assert kinds(await world.steps(everything, "internal"))[1:] == ["p1 withheld"]


@run
async def test_later_member_goes_on_serving_a_known_name_while_the_first_one_fails(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    second.add("left")
    everything = await world.virtual("all", await world.proxy("p0", first), await world.proxy("p1", second))
    assert await world.versions(everything, "left") == ["1.0.0"]
    first.misbehave("*", failing(500), repeat=True)
    second.misbehave("*", failing(500), repeat=True)
    world.clock.advance(301)
    assert await world.versions(everything, "left") == ["1.0.0"]
    await world.restart()  # what is known of the first member's absent packages is in memory only
    world.clock.advance(11)
    assert await world.versions(everything, "left") == ["1.0.0"]


@run
async def test_merged_members_do_without_one_that_fails_and_ask_it_again_soon(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    first.add("left", "1.0.0")
    second.add("left", "2.0.0")
    first.misbehave("*", failing(500), repeat=True)
    everything = await world.virtual(
        "all", await world.proxy("p0", first), await world.proxy("p1", second), resolution="merge"
    )
    state = await world.resolver.state(everything, "left")
    assert state.expires_s == world.clock.ms // 1000 + 10
    assert await world.versions(everything, "left") == ["2.0.0"]
    first.behave()
    assert await world.versions(everything, "left") == ["1.0.0", "2.0.0"]


# Reserved names


@pytest.mark.parametrize("place", ["mirror", "nested", "all"])
@run
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


@run
async def test_hosted_packages_may_have_reserved_names(world: ProxyWorld) -> None:
    own = await world.hosted()
    everything = await world.virtual("all", own, await world.proxy("mirror", world.upstream()), policy=NOBODY)
    await world.own(own, "acme-tool")
    assert await world.steps(everything, "acme-tool")
    await world.versions(everything, "acme-tool")


@run
async def test_kept_file_whose_name_is_reserved_later_is_not_served(world: ProxyWorld) -> None:
    up = world.upstream()
    mirror = await world.proxy("mirror", up)
    everything = await world.virtual("all", mirror)
    await world.own(mirror, "acme-tool")  # as if it had been fetched
    path = "acme-tool/-/acme-tool-1.0.0.tgz"
    assert (await world.files.find(mirror, "acme-tool", path)).file
    for repository in (mirror, everything):
        reserving = await world.change(repository, settings={"policy": NOBODY})
        with pytest.raises(NameReserved):
            await world.files.find(reserving, "acme-tool", path)
        await world.change(repository, settings={})


# Age of releases


@pytest.mark.parametrize("place", ["mirror", "nested", "all"])
@run
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


@run
async def test_strictest_rule_on_the_way_applies(world: ProxyWorld) -> None:
    up = world.upstream()
    add_aged(world, up, "left", v1=30, v2=10, v3=4)
    mirror = await world.proxy("mirror", up, policy={"minimum_release_age": {"days": 7}})
    everything = await world.virtual("all", mirror, policy={"minimum_release_age": {"days": 20}})
    assert await world.versions(mirror, "left") == ["1.0.0", "2.0.0"]
    assert await world.versions(everything, "left") == ["1.0.0"]


@run
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


@run
async def test_exempt_names_are_served_at_once(world: ProxyWorld) -> None:
    up = world.upstream()
    add_aged(world, up, "left", v1=0)
    add_aged(world, up, "acme-x", v1=0)
    policy = {"minimum_release_age": {"days": 3, "exempt": ["acme-*"]}}
    mirror = await world.proxy("mirror", up, policy=policy)
    assert await world.versions(mirror, "left") == []
    assert await world.versions(mirror, "acme-x") == ["1.0.0"]


@run
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


@run
async def test_kept_file_is_refused_by_a_rule_that_is_set_later(world: ProxyWorld) -> None:
    up = world.upstream()
    mirror: Repository = await world.proxy("mirror", up)
    await world.own(mirror, "left")  # a kept file of unknown date
    path = "left/-/left-1.0.0.tgz"
    assert (await world.files.find(mirror, "left", path)).file
    strict = await world.change(mirror, settings={"policy": {"minimum_release_age": {"days": 3}}})
    with pytest.raises(TooYoung, match="no publication date"):
        await world.files.find(strict, "left", path)


# Repeated questions


@run
async def test_state_is_the_same_until_something_changes(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    first.add("left", "1.0.0")
    second.add("left", "2.0.0")
    everything = await world.virtual(
        "all", await world.proxy("p0", first), await world.proxy("p1", second), resolution="merge"
    )
    state = await world.resolver.state(everything, "left")
    await world.restart()
    world.clock.advance(301)
    confirmed = await world.resolver.state(world.now(everything), "left")
    assert (confirmed.stamp, confirmed.serial) == (state.stamp, state.serial)
    second.add("left", "2.1.0")
    world.clock.advance(301)
    changed = await world.resolver.state(world.now(everything), "left")
    assert changed.stamp != state.stamp
    assert changed.serial > state.serial


@run
async def test_revalidation_asks_each_member(world: ProxyWorld) -> None:
    ups = [world.upstream(), world.upstream()]
    for up in ups:
        up.add("left")
    everything = await world.virtual(
        "all", *[await world.proxy(f"p{number}", up) for number, up in enumerate(ups)], resolution="merge"
    )
    await world.versions(everything, "left")
    world.clock.advance(10)
    await world.versions(everything, "left", revalidate=True)
    await world.versions(everything, "left", revalidate=True)
    assert [up.count() for up in ups] == [2, 2]


@run
async def test_file_that_the_list_does_not_have_yet_is_asked_for(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    everything = await world.virtual("all", await world.proxy("mirror", up))
    await world.versions(everything, "left")
    await world.settle()
    up.add("left", "1.1.0")
    world.clock.advance(10)
    trace = Trace()
    found = await world.files.find(everything, "left", "left/-/left-1.1.0.tgz", trace)
    assert found.file
    assert kinds(trace.steps)[-2:] == ["mirror a fetched", "mirror a file_listed"]
