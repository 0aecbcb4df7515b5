"""Rules over labels and routes of images: hosted, of an upstream, through virtual repositories, for one platform."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.images import Registry, digest_of, make_image, make_index, sentence
from tests.support.upstreams.messages import Answer

from .conftest import Mirrors
from .test_blocks import statuses

PLAIN = make_image("plain", settings={"Labels": {"stage": "production"}})
BAD = make_image("bad", settings={"Labels": {"stage": "dev", "team": "a"}})
ARM = make_image("arm", architecture="arm64")
INDEX = make_index([ARM, BAD])
RULE = {"name": "stages", "reason": "not released", "match": {"labels": {"stage": "dev*"}}}


async def fill(mirrors: Mirrors, kind: str) -> str:
    """Have ``app`` with the tags plain, bad and both (an index); returns the name of the repository to read from."""
    if kind == "own":
        await mirrors.stack.add_repository("own", format="docker", config={"type": "Hosted"})
        registry = Registry(mirrors.stack, "main/own/app")
        await registry.push(PLAIN, "plain")
        await registry.push(BAD, "bad")
        await registry.push(ARM)
        assert (await registry.put(INDEX, "both")).status == 201
        return "own"
    await mirrors.add(cache_ttl=0)
    mirrors.up.push("app", PLAIN, "plain")
    mirrors.up.push("app", BAD, "bad")
    mirrors.up.push("app", INDEX, "both", children=(ARM, BAD))
    if kind == "all":
        await mirrors.add("all", members=["main/mirror"])
    return kind


async def set_rules(mirrors: Mirrors, *rules: Any) -> None:
    await mirrors.stack.ok("PUT", "/policy/rules", {"rules": list(rules)})


@pytest.mark.parametrize("kind", ["own", "mirror", "all"])
async def test_an_image_is_refused_by_a_label_of_one_of_its_platforms(mirrors: Mirrors, kind: str) -> None:
    name = await fill(mirrors, kind)
    await set_rules(mirrors, RULE)
    layers = [f"blobs/{digest_of(each)}" for each in BAD.blobs]
    refused = ["manifests/bad", f"manifests/{BAD.digest}", "manifests/both", f"manifests/{INDEX.digest}", *layers]
    assert await statuses(mirrors, name, *refused) == [403] * len(refused)
    assert await statuses(mirrors, name, "manifests/plain", f"manifests/{PLAIN.digest}") == [200, 200]
    assert "not released" in sentence(await mirrors.get("app/manifests/both", name))
    found = await mirrors.explain("app", "both", name)
    assert "'stages'" in found["sentence"]
    await set_rules(mirrors)
    assert await statuses(mirrors, name, *refused) == [200] * len(refused)


async def test_a_configuration_is_read_once(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "mirror")
    await set_rules(mirrors, RULE)
    for _ in range(2):
        await statuses(mirrors, name, "manifests/plain", f"manifests/{PLAIN.digest}", f"manifests/{INDEX.digest}")
        asked = [each.path for each in mirrors.up.requests() if "/blobs/" in each.path]
        assert len(asked) == len(set(asked)) == 3, asked


async def test_labels_that_cannot_be_had_fail_and_those_that_cannot_be_read_are_missing(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "mirror")
    odd = make_image("odd", settings={"Labels": {f"label{number}": "x" * 100 for number in range(1000)}})
    mirrors.up.push("app", odd, "odd")
    await set_rules(mirrors, {**RULE, "missing": "allow"})
    assert await statuses(mirrors, name, "manifests/odd") == [200]
    await set_rules(mirrors, RULE)
    refused = await mirrors.get("app/manifests/odd", name)
    assert (refused.status, "labels" in sentence(refused)) == (403, True)


async def test_an_image_without_its_configuration_is_served_unless_its_labels_decide(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "mirror")
    lost = make_image("lost", settings={"Labels": {"stage": "dev"}})
    mirrors.up.push("app", lost, "lost")
    mirrors.up.serve(mirrors.up.blob_path("app", digest_of(lost.blobs[0])), Answer(500))
    await set_rules(mirrors, {**RULE, "action": "warn"})
    assert await statuses(mirrors, name, "manifests/lost") == [200]
    await set_rules(mirrors, RULE)
    assert (await statuses(mirrors, name, "manifests/lost"))[0] >= 500


async def test_a_tag_of_an_upstream_goes_back_to_the_last_digest_without_the_label(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "mirror")
    for image in (PLAIN, BAD):
        mirrors.up.push("app", image, "latest")
        await statuses(mirrors, name, "manifests/latest")
        mirrors.pass_days(1)
    await set_rules(mirrors, RULE)
    assert (await mirrors.get("app/manifests/latest", name)).body == PLAIN.manifest


async def test_the_route_that_an_image_came_from_is_known(mirrors: Mirrors) -> None:
    name = await fill(mirrors, "mirror")
    routes = (await mirrors.stack.ok("GET", "/repository/main%2Fmirror/config/proxy"))["routes"]
    await set_rules(mirrors, {"name": "far", "match": {"source": routes[0].get("name") or "route"}})
    assert await statuses(mirrors, name, "manifests/plain", f"manifests/{PLAIN.digest}", "manifests/both") == [403] * 3
    await set_rules(mirrors, {"name": "far", "match": {"source": "another"}})
    assert await statuses(mirrors, name, "manifests/plain") == [200]
