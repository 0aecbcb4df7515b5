"""Blocks of images by tag and by digest: hosted, of an upstream, and through virtual repositories."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.images import Registry, digest_of, make_image, make_index, sentence

from .conftest import Mirrors

OLD, NEW, ARM = (make_image(each) for each in ("old", "new", "arm"))
INDEX = make_index([NEW, ARM])


async def fill(mirrors: Mirrors, kind: str) -> str:
    """Have ``app:1.0`` and ``app:1.1``, which is an index; returns the name of the repository to read from."""
    if kind in ("own", "around"):
        await mirrors.stack.add_repository("own", format="docker", config={"type": "Hosted"})
        registry = Registry(mirrors.stack, "main/own/app")
        await registry.push(OLD, "1.0")
        for image in (NEW, ARM):
            await registry.push(image)
        assert (await registry.put(INDEX, "1.1")).status == 201
        if kind == "around":
            await mirrors.add("around", members=["main/own"])
        return kind
    await mirrors.add(cache_ttl=0)
    mirrors.up.push("app", OLD, "1.0")
    mirrors.up.push("app", INDEX, "1.1", children=(NEW, ARM))
    if kind == "all":
        await mirrors.add("all", members=["main/mirror"])
        return "all"
    return "mirror"


async def block(mirrors: Mirrors, name: str, **fields: Any) -> str:
    body = {"repository": f"main/{name}", "reason": "stolen key", **fields}
    return str((await mirrors.stack.ok("POST", "/policy/blocks", body))["id"])


async def statuses(mirrors: Mirrors, name: str, *paths: str, method: str = "GET") -> list[int]:
    return [(await mirrors.get(f"app/{path}", name, method)).status for path in paths]


KINDS = ["own", "around", "mirror", "all"]
BLOBS = [f"blobs/{digest_of(each)}" for each in NEW.blobs if each not in (*OLD.blobs, *ARM.blobs)]
BAD = ["manifests/1.1", f"manifests/{INDEX.digest}", f"manifests/{NEW.digest}", f"manifests/{ARM.digest}", *BLOBS]
GOOD = ["manifests/1.0", f"manifests/{OLD.digest}", *(f"blobs/{digest_of(each)}" for each in OLD.blobs)]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_tag_is_blocked_with_all_that_only_it_has(mirrors: Mirrors, kind: str) -> None:
    name = await fill(mirrors, kind)
    for _ in range(2):
        assert await statuses(mirrors, name, *BAD, *GOOD) == [200] * len([*BAD, *GOOD])
    uid = await block(mirrors, name, package="app", versions="1.1")
    for method in ("GET", "HEAD"):
        assert await statuses(mirrors, name, *BAD[:4], method=method) == [403] * 4
    assert await statuses(mirrors, name, *BAD, *GOOD) == [403] * len(BAD) + [200] * len(GOOD)
    refused = await mirrors.get("app/manifests/1.1", name)
    assert "stolen key" in sentence(refused)
    assert refused.json["errors"][0]["code"] == "DENIED"
    await mirrors.stack.call("DELETE", f"/api/policy/blocks/{uid}")
    assert await statuses(mirrors, name, *BAD) == [200] * len(BAD)


@pytest.mark.parametrize("kind", KINDS)
async def test_the_digest_of_one_platform_blocks_the_index_and_its_tag(mirrors: Mirrors, kind: str) -> None:
    name = await fill(mirrors, kind)
    await statuses(mirrors, name, *BAD)
    await block(mirrors, name, digests=[NEW.digest])
    bad = ["manifests/1.1", f"manifests/{INDEX.digest}", f"manifests/{NEW.digest}", *BLOBS]
    assert await statuses(mirrors, name, *bad, *GOOD) == [403] * len(bad) + [200] * len(GOOD)


async def test_a_tag_of_an_upstream_goes_back_to_the_last_digest_that_is_not_blocked(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "mirror")
    mirrors.up.push("app", OLD, "latest")
    await statuses(mirrors, name, "manifests/latest")
    mirrors.pass_days(1)
    mirrors.up.push("app", NEW, "latest")
    assert (await mirrors.get("app/manifests/latest", name)).body == NEW.manifest
    await block(mirrors, name, digests=[NEW.digest])
    assert (await mirrors.get("app/manifests/latest", name)).body == OLD.manifest
    found = await mirrors.explain("app", "latest", name)
    assert [each["step"] for each in found["steps"]][-2:] == ["blocked", "file_kept"]
    await block(mirrors, name, package="app", versions="latest")
    assert await statuses(mirrors, name, "manifests/latest") == [403]


async def test_what_is_not_kept_is_refused_before_it_is_fetched_a_second_time(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "all")
    await block(mirrors, "mirror", package="app")
    assert await statuses(mirrors, name, *BAD, *GOOD) == [403] * len([*BAD, *GOOD])
    await mirrors.stack.ok("PUT", "/policy/rules", {"rules": [{"name": "old", "match": {"age_days": 3}}]})
    await mirrors.stack.add_repository("own", format="docker", config={"type": "Hosted"})
    await Registry(mirrors.stack, "main/own/app").push(OLD, "1.0")
    assert await statuses(mirrors, "own", "manifests/1.0") == [403]
    mirrors.pass_days(3.1)
    assert await statuses(mirrors, "own", "manifests/1.0") == [200]


async def tags(mirrors: Mirrors, name: str, query: str = "") -> list[str]:
    found: list[str] = (await mirrors.get(f"app/tags/list{query}", name)).json["tags"]
    return found


@pytest.mark.parametrize("kind", KINDS)
async def test_lists_do_not_name_tags_that_are_refused(mirrors: Mirrors, kind: str) -> None:
    name = await fill(mirrors, kind)
    for _ in range(2):
        assert await tags(mirrors, name) == ["1.0", "1.1"]
    by_name = await block(mirrors, name, package="app", versions="1.1")
    for _ in range(2):
        assert await tags(mirrors, name) == ["1.0"]
    first = await mirrors.get("app/tags/list?n=1", name)
    assert (first.json["tags"], "last=1.0" in first.headers["link"]) == (["1.0"], True)
    assert (await mirrors.get("app/tags/list?n=1&last=1.0", name)).json["tags"] == []
    await mirrors.stack.call("DELETE", f"/api/policy/blocks/{by_name}")
    assert await tags(mirrors, name) == ["1.0", "1.1"]
    await statuses(mirrors, name, "manifests/1.1")
    by_digest = await block(mirrors, name, digests=[ARM.digest])
    assert await tags(mirrors, name) == ["1.0"]
    await mirrors.stack.call("DELETE", f"/api/policy/blocks/{by_digest}")
    await block(mirrors, name, package="app")
    assert await tags(mirrors, name) == []


async def test_a_list_names_a_tag_again_when_its_manifest_is_old_enough(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "own")
    await mirrors.stack.ok("PUT", "/policy/rules", {"rules": [{"name": "young", "match": {"age_days": 3}}]})
    for _ in range(2):
        assert await tags(mirrors, name) == []
    mirrors.pass_days(3.1)
    assert await tags(mirrors, name) == ["1.0", "1.1"]


async def test_a_list_names_a_tag_that_goes_back_to_an_earlier_manifest(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "mirror")
    for image in (OLD, NEW):
        mirrors.up.push("app", image, "latest")
        await statuses(mirrors, name, "manifests/latest")
        mirrors.pass_days(1)
    await block(mirrors, name, digests=[NEW.digest])
    assert await tags(mirrors, name) == ["1.0", "1.1", "latest"]  # the manifest of 1.1 is not known
