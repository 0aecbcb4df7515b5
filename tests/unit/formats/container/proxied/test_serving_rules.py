"""The minimum release age of images, by when this server first saw them."""

from __future__ import annotations

from typing import Any

from tests.support.images import digest_of, make_index

from .conftest import ONE, SIGNATURE, THREE, TWO, Mirrors

WEEK: Any = {"policy": {"minimum_release_age": {"days": 7, "exempt": ["ours/*"]}}, "cache_ttl": 0}


async def test_image_is_refused_until_it_was_known_for_some_days(mirrors: Mirrors) -> None:
    await mirrors.add(**WEEK)
    mirrors.up.push("app", ONE, "1")
    for path in ("manifests/1", f"manifests/{ONE.digest}"):
        refused = await mirrors.get(f"app/{path}")
        (error,) = refused.json["errors"]
        assert (refused.status, error["code"]) == (403, "DENIED")
        assert "is younger than the 7 days that policy.minimum_release_age of main/mirror asks for" in error["message"]
        assert "it will be served from 20" in error["message"]
    for blob in ONE.blobs:
        assert (await mirrors.get(f"app/blobs/{digest_of(blob)}")).status == 403
    mirrors.pass_days(6.9)
    assert (await mirrors.get("app/manifests/1")).status == 403
    mirrors.pass_days(0.2)
    assert (await mirrors.get("app/manifests/1")).body == ONE.manifest
    for blob in ONE.blobs:
        assert (await mirrors.get(f"app/blobs/{digest_of(blob)}")).body == blob


async def test_tag_stays_at_the_latest_image_that_is_old_enough(mirrors: Mirrors) -> None:
    await mirrors.add(**WEEK)
    mirrors.up.push("app", ONE, "1")
    await mirrors.get("app/manifests/1")
    mirrors.pass_days(8)
    mirrors.up.push("app", TWO, "1")
    for method in ("GET", "HEAD", "GET"):
        reply = await mirrors.get("app/manifests/1", method=method)
        assert (reply.status, reply.headers["docker-content-digest"]) == (200, ONE.digest)
    assert (await mirrors.get(f"app/manifests/{TWO.digest}")).status == 403
    mirrors.pass_days(5)
    mirrors.up.push("app", THREE, "1")
    assert (await mirrors.get("app/manifests/1")).body == ONE.manifest
    mirrors.pass_days(3)
    assert (await mirrors.get("app/manifests/1")).body == TWO.manifest, "the third one is too young"
    mirrors.pass_days(5)
    assert (await mirrors.get("app/manifests/1")).body == THREE.manifest


async def test_cached_answer_ends_when_the_next_image_is_old_enough(mirrors: Mirrors) -> None:
    await mirrors.add(**{**WEEK, "cache_ttl": "300d"})
    mirrors.up.push("app", ONE, "1")
    await mirrors.get("app/manifests/1")
    mirrors.pass_days(300)
    mirrors.up.push("app", TWO, "1")
    for _ in range(2):
        assert (await mirrors.get("app/manifests/1")).body == ONE.manifest
    mirrors.pass_days(7.1)
    assert (await mirrors.get("app/manifests/1")).body == TWO.manifest


async def test_image_of_an_old_index_and_a_signature_are_not_young(mirrors: Mirrors) -> None:
    await mirrors.add(**WEEK)
    index = make_index([ONE])
    mirrors.up.push("app", index, "1", children=(ONE,))
    await mirrors.get("app/manifests/1")
    mirrors.pass_days(8)
    tag = ONE.digest.replace(":", "-") + ".sig"
    mirrors.up.push("app", SIGNATURE, tag)
    assert (await mirrors.get("app/manifests/1")).body == index.manifest
    assert (await mirrors.get(f"app/manifests/{ONE.digest}")).body == ONE.manifest
    assert (await mirrors.get(f"app/blobs/{digest_of(ONE.blobs[1])}")).body == ONE.blobs[1]
    assert (await mirrors.get(f"app/manifests/{tag}")).body == SIGNATURE.manifest


async def test_exempt_image_is_served_at_once(mirrors: Mirrors) -> None:
    await mirrors.add(**WEEK)
    mirrors.up.push("ours/app", ONE, "1")
    assert (await mirrors.get("ours/app/manifests/1")).body == ONE.manifest


async def test_rule_of_a_virtual_repository_holds_for_its_members_only_there(mirrors: Mirrors) -> None:
    await mirrors.add(cache_ttl=0)
    await mirrors.add("all", members=["main/mirror"], policy={"minimum_release_age": 7})
    mirrors.up.push("app", ONE, "1")
    assert (await mirrors.get("app/manifests/1")).body == ONE.manifest
    refused = await mirrors.get("app/manifests/1", "all")
    assert (refused.status, "of main/all asks for" in refused.json["errors"][0]["message"]) == (403, True)
    mirrors.pass_days(8)
    mirrors.up.push("app", TWO, "1")
    for _ in range(2):
        assert (await mirrors.get("app/manifests/1")).body == TWO.manifest
        assert (await mirrors.get("app/manifests/1", "all")).body == ONE.manifest


async def test_evicted_image_is_as_old_as_before(mirrors: Mirrors) -> None:
    await mirrors.add(**WEEK)
    mirrors.up.push("app", ONE, "1")
    await mirrors.get("app/manifests/1")
    mirrors.pass_days(8)
    found = await mirrors.stack.ok("GET", "/repository")
    uid = next(each["id"] for each in found["items"] if each["name"] == "mirror")
    await mirrors.stack.ok("POST", f"/repository/{uid}/cache/purge", {})
    assert (await mirrors.get(f"app/manifests/{ONE.digest}")).body == ONE.manifest
    mirrors.up.push("app", TWO, "1")
    assert (await mirrors.get("app/manifests/1")).body == ONE.manifest
