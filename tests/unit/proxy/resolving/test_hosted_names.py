"""Names of hosted members: no upstream is asked for them, and all hosted members serve their versions."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from pkgrepo.errors import NotFound, RepositoryInactive
from pkgrepo.proxy.trace import NameRetired, Trace
from pkgrepo.storage.catalog.packages import packages
from tests.support.catalogs import publish
from tests.support.inprocess_server import until
from tests.support.proxy_world import ProxyWorld, kinds
from tests.support.upstreams.messages import HEAD, Fault


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("switched_off", [False, True])
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
    await world.core.catalog.write(packages.release_name, own.id, "secret")
    assert await world.versions(everything, "secret") == ["9.0.0"]
    state = await world.resolver.state(world.now(everything), "secret")
    await world.own(own, "secret")
    await world.disown(own, "secret")
    assert not world.core.catalog.peek(state.fresh), "nobody asked meanwhile"


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


async def test_versions_of_all_hosted_members_are_served(world: ProxyWorld) -> None:
    first, second = await world.hosted("first"), await world.hosted("second")
    everything = await world.virtual("all", first, second)
    await world.own(second, "shared")
    await world.own(first, "shared")
    members = await world.resolver.members(everything, "shared", Trace())
    assert [each.repository.name for each in members.serving] == ["first", "second"]


async def test_nobody_stands_in_for_an_owner_that_is_switched_off_unless_that_is_wanted(world: ProxyWorld) -> None:
    first, second = await world.hosted("first"), await world.hosted("second")
    everything = await world.virtual("all", first, second)
    await world.own(first, "shared")
    await world.own(second, "shared")
    await world.change(first, active=False)
    with pytest.raises(RepositoryInactive):
        await world.resolver.members(world.now(everything), "shared", Trace())
    await world.change(everything, settings={"policy": {"skip_inactive": True}})
    members = await world.resolver.members(world.now(everything), "shared", Trace())
    assert [each.repository.name for each in members.serving] == ["second"]


async def test_nor_for_a_file_that_is_asked_for_by_its_path(world: ProxyWorld) -> None:
    path, key = "com/acme/lib/1.0/lib-1.0.jar", "com.acme:lib"
    first, second = [await world.hosted(each, format="maven") for each in ("first", "second")]
    everything = await world.virtual("all", first, second, format="maven")
    for each in (first, second):
        await world.core.catalog.write(publish, each, path, package=key, version="1.0")
    await world.change(first, active=False)
    with pytest.raises(RepositoryInactive):
        await world.files.find(world.now(everything), key, path)
    await world.change(everything, settings={"policy": {"skip_inactive": True}})
    assert (await world.files.find(world.now(everything), key, path)).file.repository_id == second.id
