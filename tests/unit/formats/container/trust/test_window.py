"""Content trust: images wait for signatures for a while, and are dropped with what they name when it ends."""

from __future__ import annotations

from twisted.internet.defer import maybeDeferred

from pkgrepo.repositories.images.quarantine import EVERY_S
from pkgrepo.storage.catalog.images.gc import may_remove_manifest, plan_image
from pkgrepo.storage.catalog.packages.packages import find_package
from tests.support.images import make_image, make_index
from tests.support.signing import signature_tag
from tests.support.trust import KEY, READER, TrustingRegistry


async def test_an_image_that_nobody_signs_is_dropped_when_the_window_ends(world: TrustingRegistry) -> None:
    old, new = make_image("old"), make_image("new")
    await world.registry.push(old, "v1")
    await world.sign(old)
    await world.registry.push(new, "v1")
    await world.registry.push(new, "v2")
    await world.later(3599)
    assert await world.seen("v2", "admin") == new.digest
    await world.later(2)
    assert [await world.seen("v1", who) for who in (READER, "admin")] == [old.digest] * 2
    assert await world.seen("v2", "admin") is None
    assert await world.seen(new.digest, "admin") is None
    assert await world.tags("admin") == [signature_tag(old.digest), "v1"]


async def test_pushing_again_begins_the_window_anew(world: TrustingRegistry) -> None:
    image = make_image()
    await world.registry.push(image, "v1")
    await world.later(3000)
    await world.registry.push(image, "v1")
    await world.later(3000)
    assert await world.seen("v1", "admin") == image.digest
    await world.later(601)
    assert await world.seen("v1", "admin") is None


async def test_the_window_is_the_repositorys(world: TrustingRegistry) -> None:
    await world.configure(KEY, window_s=60)
    image = make_image()
    await world.registry.push(image, "v1")
    await world.later(61)
    assert await world.seen("v1", "admin") is None


async def test_an_unsigned_index_is_dropped_with_what_it_names(world: TrustingRegistry) -> None:
    children = [make_image("a"), make_image("b", architecture="arm64")]
    for child in children:
        await world.registry.push(child)
    await world.later(1800)
    await world.registry.push(make_index(children), "v1")
    await world.later(1801)
    assert await world.seen(children[0].digest, "admin") is not None  # its index waits still
    await world.later(1800)
    assert await world.seen("v1", "admin") is None
    assert await world.seen(children[0].digest, "admin") is None


async def test_a_deleted_push_gives_the_tag_back_to_what_readers_have(world: TrustingRegistry) -> None:
    old, new = make_image("old"), make_image("new")
    await world.registry.push(old, "v1")
    await world.sign(old)
    await world.registry.push(new, "v1")
    assert (await world.registry.below("DELETE", f"manifests/{new.digest}")).status == 202
    assert [await world.seen("v1", who) for who in (READER, "admin")] == [old.digest] * 2


async def test_what_readers_have_may_be_deleted_while_another_waits(world: TrustingRegistry) -> None:
    old, new = make_image("old"), make_image("new")
    await world.registry.push(old, "v1")
    await world.sign(old)
    await world.registry.push(new, "v1")
    assert (await world.registry.below("DELETE", f"manifests/{old.digest}")).status == 202
    assert (await world.seen("v1"), await world.seen("v1", "admin")) == (None, new.digest)
    await world.later(3601)
    assert await world.seen("v1", "admin") is None


async def test_the_expiry_runs_every_minute(world: TrustingRegistry) -> None:
    await world.registry.push(make_image(), "v1")
    clock = world.expiry._loop.clock
    world.expiry.startService()
    try:
        await world.expiry._running
        world.core.clock.ms += 3_601_000
        clock.advance(EVERY_S)
        await world.expiry._running
        assert await world.seen("v1", "admin") is None
    finally:
        await maybeDeferred(world.expiry.stopService)


async def test_the_gc_keeps_what_readers_get_while_another_waits(world: TrustingRegistry) -> None:
    old, new = make_image("old"), make_image("new")
    await world.registry.push(old, "v1")
    await world.sign(old)
    await world.registry.push(new, "v1")
    catalog, later_ms = world.core.catalog, world.core.clock.now_ms() + 1
    package = catalog.peek(find_package, world.repository.id, "app")
    plan = await catalog.scan(plan_image, package.id, later_ms, later_ms, untagged=True)
    assert plan.manifests == ()
    assert not await catalog.write(may_remove_manifest, package.id, old.digest, [old.digest], later_ms, later_ms)
