"""Content trust: readers see an image when a trusted key has signed it; pushers see what waits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from pkgrepo.errors import Invalid
from pkgrepo.formats.container.configuration import CONFIGURATIONS
from pkgrepo.formats.container.trust import visibility
from pkgrepo.storage.catalog.images.manifests import find_manifest
from pkgrepo.storage.catalog.packages.packages import find_package
from tests.support.images import Image, make_artifact, make_image, make_index
from tests.support.signing import Signer, sign_as_bundle, sign_as_referrer, sign_simply, signature_tag
from tests.support.trust import KEY, READER, RULES, TrustingRegistry


async def test_an_unsigned_push_is_taken_and_only_pushers_see_it(world: TrustingRegistry) -> None:
    image = make_image()
    pushed = await world.registry.push(image, "v1")
    assert "readers do not see" in pushed.headers["warning"]
    for reference in ("v1", image.digest):
        for method in ("GET", "HEAD"):
            refused = await world.pull(reference, method=method)
            assert refused.status == 404
        error = (await world.pull(reference)).json["errors"][0]
        assert (error["code"], error["detail"]) == ("MANIFEST_UNKNOWN", "not signed by a trusted key")
        assert await world.seen(reference, "rita") is None
        assert await world.seen(reference, "admin") == image.digest
    assert (await world.tags(), await world.tags("admin")) == ([], ["v1"])
    assert (await world.catalog("rita"), await world.catalog("admin")) == ([], ["main/images/app"])


@pytest.mark.parametrize("kind", ["ecdsa", "ed25519", "rsa", "rsa-pss"])
@pytest.mark.parametrize("form", ["simple", "bundle"])
async def test_a_valid_signature_shows_the_image_at_once(world: TrustingRegistry, kind: str, form: str) -> None:
    key, image = Signer(kind), make_image()
    await world.configure(key)
    await world.registry.push(image, "v1")
    assert await world.seen("v1") is None
    if form == "simple":
        await world.registry.push(sign_simply(key, image.digest), signature_tag(image.digest))
    else:
        await world.registry.push(sign_as_bundle(key, image))
    assert [await world.seen(each) for each in ("v1", image.digest)] == [image.digest] * 2
    assert "v1" in await world.tags()
    assert await world.catalog("rita") == ["main/images/app"]
    await world.later(7200)
    assert await world.seen("v1") == image.digest


OLD_BUNDLE = "application/vnd.dev.sigstore.bundle+json;version=0.2"


@pytest.mark.parametrize("form", ["referrer", OLD_BUNDLE, "application/vnd.dev.sigstore.bundle.v0.4+json"])
async def test_every_form_that_verifiers_find_shows_the_image(world: TrustingRegistry, form: str) -> None:
    def sign(key: Signer) -> Image:
        return sign_as_referrer(key, image) if form == "referrer" else sign_as_bundle(key, image, media_type=form)

    image = make_image()
    await world.registry.push(image, "v1")
    await world.registry.push(sign(Signer()))
    assert await world.seen("v1") is None
    signature = sign(KEY)
    await world.registry.push(signature)
    assert await world.seen("v1") == image.digest
    await world.configure(Signer())
    assert await world.seen("v1") is None
    await world.configure(KEY)  # now it is found among what is stored
    assert await world.seen("v1") == image.digest
    assert await world.seen(signature.digest) == signature.digest


async def test_a_signature_may_come_before_the_image(world: TrustingRegistry) -> None:
    image = make_image()
    await world.sign(image)
    assert await world.catalog("rita") == []
    pushed = await world.registry.push(image, "v1")
    assert "warning" not in pushed.headers
    assert await world.seen("v1") == image.digest


async def test_signatures_by_other_keys_or_of_other_images_show_nothing(world: TrustingRegistry) -> None:
    image, other = make_image("one"), make_image("two")
    await world.registry.push(image, "v1")
    await world.registry.push(sign_simply(Signer(), image.digest), signature_tag(image.digest))
    await world.registry.push(sign_as_bundle(Signer(), image))
    assert await world.seen("v1") is None
    # a good signature of another image, at the place of this one's
    await world.registry.push(sign_simply(KEY, other.digest), signature_tag(image.digest))
    await world.registry.push(sign_as_bundle(KEY, image, digest=other.digest))
    assert await world.seen("v1") is None
    assert await world.seen(image.digest) is None


async def test_a_signature_in_another_image_shows_nothing(world: TrustingRegistry) -> None:
    image = make_image()
    await world.registry.push(image, "v1")
    await world.registry.push(sign_simply(KEY, image.digest), signature_tag(image.digest), name="main/images/elsewhere")
    assert await world.seen("v1") is None


async def test_readers_keep_what_a_tag_stood_for_until_the_next_is_signed(world: TrustingRegistry) -> None:
    old, new = make_image("old"), make_image("new")
    await world.registry.push(old, "v1")
    await world.sign(old)
    assert await world.seen("v1") == old.digest  # and is kept in memory now
    await world.registry.push(new, "v1")
    assert (await world.seen("v1"), await world.seen("v1", "admin")) == (old.digest, new.digest)
    assert (await world.seen("v1"), await world.seen("v1", "admin")) == (old.digest, new.digest)
    await world.sign(new)
    assert [await world.seen("v1", who) for who in (READER, "admin")] == [new.digest] * 2


async def test_cached_answers_of_pushers_are_not_served_to_readers(world: TrustingRegistry) -> None:
    image = make_image()
    await world.registry.push(image, "v1")
    for reference in ("v1", image.digest):
        for _ in range(3):
            assert await world.seen(reference, "admin") == image.digest
            assert await world.seen(reference) is None


async def test_the_signature_of_an_index_covers_what_it_names(world: TrustingRegistry) -> None:
    children = [make_image("a"), make_image("b", architecture="arm64")]
    index = make_index(children)
    for child in children:
        await world.registry.push(child)
    await world.registry.push(index, "v1")
    await world.sign(index)
    for image in (index, *children):
        assert await world.seen(image.digest) == image.digest
    await world.later(7200)
    assert await world.seen(children[1].digest) == children[1].digest


async def test_the_signature_of_a_child_covers_the_child_alone(world: TrustingRegistry) -> None:
    children = [make_image("a"), make_image("b", architecture="arm64")]
    index = make_index(children)
    for child in children:
        await world.registry.push(child)
    await world.registry.push(index, "v1")
    await world.registry.push(sign_as_bundle(KEY, children[0]))
    assert await world.seen(children[0].digest) == children[0].digest
    assert [await world.seen(each) for each in ("v1", index.digest, children[1].digest)] == [None] * 3


async def test_a_key_that_is_taken_away_hides_what_it_signed_and_drops_nothing(world: TrustingRegistry) -> None:
    image = make_image()
    await world.registry.push(image, "v1")
    await world.sign(image)
    assert await world.seen("v1") == image.digest
    await world.configure(Signer())
    assert await world.seen("v1") is None
    assert await world.tags() == [signature_tag(image.digest)]
    await world.later(7200)
    assert await world.seen("v1", "admin") == image.digest
    await world.configure(KEY)
    assert await world.seen("v1") == image.digest


async def test_signatures_that_are_there_are_held_against_a_key_that_is_added(world: TrustingRegistry) -> None:
    key, simply, bundled = Signer(), make_image("a"), make_image("b")
    await world.registry.push(simply, "a")
    await world.registry.push(sign_simply(key, simply.digest), signature_tag(simply.digest))
    await world.registry.push(bundled, "b")
    await world.registry.push(sign_as_bundle(key, bundled))
    assert [await world.seen("a"), await world.seen("b")] == [None, None]
    assert await world.catalog("rita") == []
    await world.configure(KEY, key)
    assert await world.catalog("rita") == ["main/images/app"]
    assert [await world.seen("a"), await world.seen("b")] == [simply.digest, bundled.digest]


async def test_the_rule_hides_what_is_older_than_itself_and_drops_nothing(world: TrustingRegistry) -> None:
    await world.configure(KEY, rule=False)
    image = make_image()
    pushed = await world.registry.push(image, "v1")
    assert "warning" not in pushed.headers
    assert await world.seen("v1") == image.digest
    await world.configure(KEY)
    assert await world.seen("v1") is None
    await world.later(7200)
    assert await world.seen("v1", "admin") == image.digest
    await world.sign(image)
    assert await world.seen("v1") == image.digest


async def test_taking_the_rule_back_accepts_what_waits(world: TrustingRegistry) -> None:
    image = make_image()
    await world.registry.push(image, "v1")
    await world.configure(KEY, rule=False)
    assert await world.seen("v1") == image.digest
    await world.later(7200)
    await world.configure(KEY)
    await world.later(7200)
    assert await world.seen("v1", "admin") == image.digest


async def test_evidence_is_visible_unsigned_and_images_of_its_types_are_not(world: TrustingRegistry) -> None:
    image = make_image()
    await world.registry.push(image, "v1")
    signature = sign_as_bundle(Signer(), image)
    await world.registry.push(signature)
    assert await world.seen(signature.digest) == signature.digest
    guised = make_image("evil", subject=image.descriptor, artifactType="application/vnd.dsse.envelope.v1+json")
    await world.registry.push(guised, signature_tag(make_image("other").digest))
    plain = make_artifact(image, "application/vnd.example")
    await world.registry.push(plain)
    assert [await world.seen(each.digest) for each in (guised, plain)] == [None, None]
    assert await world.tags() == []
    listed = (await world.registry.below("GET", f"referrers/{image.digest}", who=READER)).json["manifests"]
    assert [each["digest"] for each in listed] == [signature.digest]


PRIVATE = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("trust", "pointer"),
    [
        ({"keys": [KEY.pem, "no key"]}, "/trust/keys/1"),
        ({"keys": [PRIVATE]}, "/trust/keys/0"),
        ({"keys": [KEY.pem] * 17}, "/trust/keys"),
        ({"keys": [7]}, "/trust/keys/0"),
        ({"keys": [KEY.pem], "window_s": 1}, "/trust/window_s"),
        ({"keys": [KEY.pem], "windows": 1}, "/trust/windows"),
    ],
)
def test_wrong_settings_are_refused_where_they_stand(trust: Any, pointer: str) -> None:
    with pytest.raises(Invalid) as caught:
        CONFIGURATIONS.validate({"push_rules": RULES, "trust": trust})
    assert caught.value.pointer == pointer


def test_settings_are_kept_beside_the_rules_with_their_defaults() -> None:
    fixed, settings = CONFIGURATIONS.validate({"push_rules": RULES, "trust": {"keys": [KEY.pem]}})
    assert fixed["push_rules"]["require_content_trust"] is True
    assert settings["trust"] == {"keys": [KEY.pem], "window_s": 3600}


async def test_proxies_may_not_cache_manifests_in_quarantine(world: TrustingRegistry) -> None:
    image = make_image()
    await world.registry.push(image, "v1")
    for reference in ("v1", image.digest):
        assert (await world.pull(reference, "admin")).headers["cache-control"] == "private, no-cache"
    await world.sign(image)
    for reference in ("v1", image.digest):
        assert (await world.pull(reference, "admin")).headers["cache-control"] == "no-cache"


async def test_the_size_of_signature_layers_is_limited(
    world: TrustingRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same payload may stand in many layers of many manifests, and each costs its time."""
    image = make_image()
    await world.registry.push(image, "v1")
    monkeypatch.setattr(visibility, "SIGNATURE_LAYERS_SIZE", 100)
    await world.sign(image)
    assert await world.seen("v1") is None
    monkeypatch.undo()
    await world.sign(image)
    assert await world.seen("v1") == image.digest


async def test_a_lost_signature_hides_nothing_else(world: TrustingRegistry) -> None:
    image, key = make_image(), Signer()
    await world.registry.push(image, "v1")
    await world.sign(image)
    lost = sign_as_bundle(key, image)
    await world.registry.push(lost)
    where = (world.repository.storage_id, world.repository.id, "app")
    found = world.core.catalog.peek(find_manifest, *where, lost.digest)
    await world.registry.update_layout()
    store = await world.core.stores.of(world.core.registry.storage(world.repository.storage_id))
    await store.delete(found.locator)
    await world.configure(KEY, key)
    assert await world.seen("v1") == image.digest


async def test_trust_is_an_event_of_the_image(world: TrustingRegistry) -> None:
    image = make_image()
    await world.registry.push(image, "v1")
    await world.sign(image)
    await world.sign(image)
    package = world.core.catalog.peek(find_package, world.repository.id, "app")
    rows = world.core.catalog.peek(
        lambda r: r.all("SELECT data FROM event WHERE package_id = ? AND kind = 'trusted'", (package.id,))
    )
    assert [json.loads(row[0])["digest"] for row in rows] == [image.digest]


async def test_a_signature_counts_that_is_pushed_concurrently_with_its_image(world: TrustingRegistry) -> None:
    images = [make_image(f"image {number}") for number in range(8)]
    pushes: list[Deferred[Any]] = []
    for number, image in enumerate(images):
        signature = sign_simply(KEY, image.digest)
        for blob in (*image.blobs, *signature.blobs):
            await world.registry.push_blob(blob)
        for what, tag in ((image, f"v{number}"), (signature, signature_tag(image.digest))):
            pushes.append(Deferred.fromCoroutine(world.registry.put(what, tag)))
    for each in pushes:
        assert (await each).status == 201
    assert [await world.seen(f"v{number}") for number in range(8)] == [image.digest for image in images]


async def test_a_pusher_sees_what_waits_also_by_a_token_that_only_pulls(world: TrustingRegistry) -> None:
    image = make_image()
    await world.registry.push(image, "v1")
    for who, status in (("admin", 200), ("rita", 404)):
        scope = "repository:main/images/app:pull"
        issued = await world.registry.stack.call("GET", f"/api/auth/token?scope={scope}", who=who)
        assert (await world.pull("v1", issued.json["token"])).status == status
