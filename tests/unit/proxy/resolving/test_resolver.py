"""Which members of a repository serve a package, who is asked for it, and for how long that stands."""

from __future__ import annotations

import pytest

from pkgrepo.errors import NotFound, RepositoryInactive, UpstreamFailed
from pkgrepo.proxy.trace import Trace
from tests.support.proxy_world import ProxyWorld, kinds
from tests.support.upstreams.faults import failing
from tests.support.upstreams.server import ANY


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


async def test_proxy_that_is_a_member_twice_is_asked_once(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    mirror = await world.proxy("mirror", up)
    nested = await world.virtual("nested", mirror)
    everything = await world.virtual("all", nested, mirror, resolution="merge")
    members = await world.resolver.members(everything, "left", Trace())
    assert [each.repository.name for each in members.serving] == ["mirror"]
    assert up.count() == 1


async def test_switched_off_members_are_not_asked(world: ProxyWorld) -> None:
    up = world.upstream()
    up.add("left")
    mirror = await world.proxy("mirror", up)
    nested = await world.virtual("nested", mirror)
    everything = await world.virtual("all", nested)
    await world.change(nested, active=False)
    with pytest.raises(RepositoryInactive):
        await world.versions(everything, "left")
    assert kinds(await world.steps(everything, "left")) == ["mirror inactive"]
    await world.change(everything, config={**everything.config, "members": [nested.uid, mirror.uid]})
    assert await world.versions(everything, "left") == ["1.0.0"]


async def test_failing_member_makes_no_package_missing(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    first.misbehave("*", failing(500), repeat=True)
    everything = await world.virtual("all", await world.proxy("p0", first), await world.proxy("p1", second))
    with pytest.raises(UpstreamFailed):
        await world.versions(everything, "left")


async def test_unknown_name_is_not_asked_of_later_members_while_the_first_one_fails(world: ProxyWorld) -> None:
    first, second = world.upstream(), world.upstream()
    first.misbehave("*", failing(500), repeat=True)
    second.add("internal", "9.0.0")
    everything = await world.virtual("all", await world.proxy("p0", first), await world.proxy("p1", second))
    with pytest.raises(UpstreamFailed):
        await world.versions(everything, "internal")
    assert second.count() == 0
    assert kinds(await world.steps(everything, "internal"))[1:] == ["p1 withheld"]


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


@pytest.mark.parametrize("later_s", [1, 61], ids=["fresh", "old"])
async def test_what_former_routes_did_not_have_is_not_absent_at_new_ones(world: ProxyWorld, later_s: int) -> None:
    former, new, public = world.upstream(), world.upstream(), world.upstream()
    own = await world.proxy("p0", former, cache={"negative_ttl": 60})
    everything = await world.virtual("all", own, await world.proxy("p1", public, cache={"negative_ttl": 0}))
    with pytest.raises(NotFound):
        await world.versions(everything, "left")
    public.add("left", "9.9.9")
    new.misbehave(ANY, failing(503), repeat=True)
    await world.change(own, config={"proxy": {"routes": [{"name": "a", "url": new.url, "priority": 0}]}})
    world.clock.advance(later_s)
    with pytest.raises(UpstreamFailed):
        await world.versions(everything, "left")


async def test_the_catalog_is_read_for_hosted_repositories_alone(world: ProxyWorld) -> None:
    own, mirror = await world.hosted(), await world.proxy("mirror", world.upstream())
    everything = await world.virtual("all", own, mirror)
    found = [world.resolver.reads_catalog(each, "left") for each in (own, mirror, everything)]
    assert found == [True, False, False]


async def test_what_several_members_serve_is_fresh_while_all_of_them_have_the_same(world: ProxyWorld) -> None:
    members = [await world.hosted(name) for name in ("one", "two")]
    everything = await world.virtual("all", *members)
    for each in members:
        await world.own(each, "left")
    state = await world.resolver.state(everything, "left")
    assert await world.core.catalog.look(state.fresh)
    await world.disown(members[1], "left")
    assert not await world.core.catalog.look(state.fresh)
