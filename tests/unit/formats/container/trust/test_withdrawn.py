"""Loss of trust: what hides an image again, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.errors import StorageFull
from pkgrepo.gateway.responses.content import Files
from tests.support.image_layouts import lose_catalog, reindex, tags, top, verify
from tests.support.images import Image, make_image, make_index
from tests.support.signing import Signer, sign_as_bundle, sign_simply, signature_tag
from tests.support.trust import KEY, READER, TrustingRegistry


async def signed(world: TrustingRegistry, form: str = "simple") -> tuple[Image, Image]:
    """An image that readers see by the tag v1, and its signature."""
    image = make_image()
    await world.registry.push(image, "v1")
    signature = sign_simply(KEY, image.digest) if form == "simple" else sign_as_bundle(KEY, image)
    await world.registry.push(signature, signature_tag(image.digest) if form == "simple" else "")
    assert await world.seen("v1") == image.digest
    return image, signature


async def delete(world: TrustingRegistry, reference: str) -> None:
    assert (await world.registry.below("DELETE", f"manifests/{reference}")).status == 202


@pytest.mark.parametrize("form", ["simple", "bundle"])
async def test_a_deleted_signature_takes_trust_back(world: TrustingRegistry, form: str) -> None:
    image, signature = await signed(world, form)
    await delete(world, signature.digest)
    assert [await world.seen(each) for each in ("v1", image.digest)] == [None, None]
    assert await world.catalog("rita") == []
    await world.later(7200)
    assert await world.seen("v1", "admin") == image.digest  # it was served once, so it stays
    await world.sign(image)
    assert await world.seen("v1") == image.digest


async def test_a_deleted_tag_of_a_signature_takes_trust_back(world: TrustingRegistry) -> None:
    image, signature = await signed(world)
    await delete(world, signature_tag(image.digest))
    assert await world.seen("v1") is None
    assert (await world.registry.put(signature, signature_tag(image.digest))).status == 201
    assert await world.seen("v1") == image.digest


async def test_the_management_api_takes_trust_back_with_a_signature(world: TrustingRegistry) -> None:
    image, _ = await signed(world)
    stack, package = world.registry.stack, f"/package/{world.repository.uid}/app/versions"
    reply = await stack.api("DELETE", f"{package}/{signature_tag(image.digest)}")
    assert reply.status == 200, reply.body
    assert await world.seen("v1") is None


async def test_another_manifest_at_the_tag_of_a_signature_takes_trust_back(world: TrustingRegistry) -> None:
    image, _ = await signed(world)
    await world.sign(image, Signer())
    assert await world.seen("v1") is None
    image, _ = await signed(world)
    await world.registry.push(make_image("junk"), signature_tag(image.digest))
    assert await world.seen("v1") is None


async def test_one_signature_of_two_is_enough(world: TrustingRegistry) -> None:
    image, signature = await signed(world)
    bundle = sign_as_bundle(KEY, image)
    await world.registry.push(bundle)
    await delete(world, signature.digest)
    assert await world.seen("v1") == image.digest
    await delete(world, bundle.digest)
    assert await world.seen("v1") is None


async def test_a_key_that_is_put_back_shows_only_what_still_has_a_signature(world: TrustingRegistry) -> None:
    image, signature = await signed(world)
    other = make_image("other")
    await world.registry.push(other, "v2")
    await world.sign(other)
    await world.configure(Signer())
    await delete(world, signature.digest)
    assert [await world.seen("v1"), await world.seen("v2")] == [None, None]
    await world.configure(KEY)
    assert [await world.seen("v1"), await world.seen("v2")] == [None, other.digest]
    assert await world.seen(image.digest, "admin") == image.digest


@pytest.mark.parametrize("goes", ["signature", "index"])
async def test_what_an_index_covered_is_covered_no_more(world: TrustingRegistry, goes: str) -> None:
    children = [make_image("a"), make_image("b", architecture="arm64")]
    inner = make_index(children[:1])
    index = make_index([inner, children[1]])
    for each in (*children, inner):
        await world.registry.push(each)
    await world.registry.push(index, "v1")
    signature = sign_as_bundle(KEY, index)
    await world.registry.push(signature)
    await world.registry.push(sign_as_bundle(KEY, children[1]))
    assert await world.seen(children[0].digest) == children[0].digest
    await delete(world, signature.digest if goes == "signature" else index.digest)
    assert [await world.seen(each.digest) for each in (index, inner, children[0])] == [None] * 3
    assert await world.seen(children[1].digest) == children[1].digest  # by its own
    again = make_index(children[:1])
    assert again.digest == inner.digest
    if goes == "index":
        await world.registry.push(index, "v1")  # its signature was there all the time
        assert await world.seen(children[0].digest) == children[0].digest


async def test_a_signature_that_is_replaced_by_a_longer_one_never_hides_the_image(
    world: TrustingRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, _ = await signed(world)
    change, hidden = world.core.catalog.write, []

    async def watched(*command: Any, **more: Any) -> Any:
        found = await change(*command, **more)
        rows = world.core.catalog.peek(lambda r: r.all("SELECT 1 FROM manifest_trust"))
        hidden.append(not rows)
        return found

    monkeypatch.setattr(world.core.catalog, "write", watched)
    await world.sign(image)  # ECDSA: each one differs
    assert await world.seen("v1") == image.digest
    assert not any(hidden)


async def test_a_signature_that_came_while_the_rule_was_off_counts_when_it_is_on_again(world: TrustingRegistry) -> None:
    other = make_image("other")
    await world.registry.push(other, "v2")
    assert await world.seen("v2") is None  # from now on the keys are known to be held against all signatures
    await world.configure(KEY, rule=False)
    image = make_image()
    await world.registry.push(image, "v1")
    await world.sign(image)
    await world.configure(KEY)
    assert await world.seen("v1") == image.digest


async def test_what_a_new_key_has_signed_is_not_dropped_although_nobody_read_it(world: TrustingRegistry) -> None:
    key, image = Signer(), make_image()
    await world.registry.push(image, "v1")
    await world.sign(image, key)
    await world.configure(KEY, key)
    await world.later(3601)
    assert await world.seen("v1") == image.digest


async def restored(world: TrustingRegistry, make_registry: Any) -> TrustingRegistry:
    """The server on the same files, after its database was lost and built again from the layout."""
    await world.registry.update_layout()
    stack = world.registry.stack
    await stack.stop()
    lose_catalog(stack.folder / "data")
    registry = await make_registry(fresh=False)
    assert (await reindex(registry)).problems == []
    found = TrustingRegistry(registry)
    await registry.stack.add_user("rita")
    await registry.stack.grant("rita", "main/images", "read")
    return found


async def test_reindex_gives_the_same_answers(world: TrustingRegistry, make_registry: Any) -> None:
    old, new, first, plain = (make_image(each) for each in ("old", "new", "first", "plain"))
    await world.registry.push(old, "v1")
    await world.sign(old)
    await world.registry.push(new, "v1")
    await world.registry.push(first, "v2")
    await world.registry.push(plain, "v3")
    gone = sign_as_bundle(KEY, plain)
    await world.registry.push(gone)
    await delete(world, gone.digest)

    async def answers(world: TrustingRegistry) -> Any:
        return [
            [await world.seen(each, who) for each in ("v1", "v2", "v3", old.digest, new.digest, first.digest)]
            + [await world.tags(who)]
            for who in (READER, "rita", "admin")
        ]

    before = await answers(world)
    assert before[0][:3] == [old.digest, None, None]
    assert before[2][:3] == [new.digest, first.digest, plain.digest]
    again = await restored(world, make_registry)
    assert await answers(again) == before
    await again.registry.update_layout()
    assert not (await verify(again.registry)).problems
    await again.later(3601)
    assert [await again.seen(each, "admin") for each in ("v1", "v2", "v3")] == [old.digest, None, plain.digest]


async def test_what_waits_has_its_whole_window_again_after_reindex_and_can_be_signed(
    world: TrustingRegistry, make_registry: Any
) -> None:
    image = make_image()
    await world.registry.push(image, "v1")
    await world.later(3000)
    again = await restored(world, make_registry)
    await again.later(3000)
    assert await again.seen("v1", "admin") == image.digest
    await again.sign(image)
    assert await again.seen("v1") == image.digest
    await again.registry.update_layout()
    assert tags(top(again.registry))["v1"] == image.digest
    assert not (await verify(again.registry)).problems


async def test_nothing_is_dropped_while_signatures_cannot_be_read(
    world: TrustingRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, image = Signer(), make_image()
    await world.registry.push(image, "v1")
    await world.sign(image, key)
    await world.configure(KEY, key)

    async def fail(*_: object) -> bytes:
        raise StorageFull("main")

    with monkeypatch.context() as patch:
        patch.setattr(Files, "read", fail)
        await world.later(3601)
    await world.later(60)
    assert await world.seen("v1") == image.digest
