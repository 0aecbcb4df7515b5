"""Reads of images of virtual repositories are answered from memory, for as long as the same member has them."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.formats.container.proxied.holders import Holders
from tests.support.images import Registry, digest_of
from tests.support.inprocess_server import until
from tests.support.upstreams.messages import Answer

from .conftest import ONE, TWO, Mirrors

PATHS = ("app/manifests/1", f"app/manifests/{ONE.digest}", f"app/blobs/{digest_of(ONE.blobs[1])}", "app/tags/list")


async def add_all(mirrors: Mirrors, **settings: Any) -> Registry:
    """Add ``main/all`` with a hosted member and a proxy; the image ``app`` of the hosted one."""
    await mirrors.stack.add_repository("own", format="docker", config={"type": "Hosted"})
    await mirrors.add(**settings)
    await mirrors.add("all", members=["main/own", "main/mirror"])
    return Registry(mirrors.stack, "main/own/app")


async def test_reads_of_virtual_repositories_are_cached(mirrors: Mirrors, monkeypatch: pytest.MonkeyPatch) -> None:
    await add_all(mirrors)
    mirrors.up.push("app", ONE, "1")
    await Registry(mirrors.stack, "main/own/ours").push(TWO, "1")
    before = {path: (await mirrors.get(path, "all")).body for path in (*PATHS, "ours/manifests/1")}
    await until(lambda: not len(mirrors.stack.assembly._proxies.transfers))
    await mirrors.get(PATHS[2], "all")  # the first one may have been answered before the blob was kept

    def fail(*_: object, **__: object) -> None:
        pytest.fail("the answer is not from memory")

    monkeypatch.setattr(Holders, "first", fail)
    for path, body in before.items():
        assert (await mirrors.get(path, "all")).body == body


async def test_image_that_is_pushed_to_a_hosted_member_wins_at_once(mirrors: Mirrors) -> None:
    own = await add_all(mirrors)
    mirrors.up.push("app", ONE, "1")
    for path in PATHS:
        for _ in range(2):
            assert (await mirrors.get(path, "all")).status == 200
    await own.push(TWO, "2")
    assert [(await mirrors.get(path, "all")).status for path in PATHS] == [404, 404, 404, 200]
    assert (await mirrors.get("app/tags/list", "all")).json["tags"] == ["2"]
    assert (await mirrors.get("app/manifests/2", "all")).body == TWO.manifest
    await mirrors.stack.ok("DELETE", "/package/main%2Fown/app")
    asked = mirrors.up.count()
    assert [(await mirrors.get(path, "all")).status for path in PATHS] == [404] * 4
    assert mirrors.up.count() == asked, "the name stays that of the hosted member"
    assert (await mirrors.explain("app", "1", "all"))["outcome"] == "retired"


async def test_earlier_member_is_asked_again_after_its_negative_ttl(mirrors: Mirrors) -> None:
    await mirrors.add("first", cache={"negative_ttl": 60})
    await mirrors.add("second", cache_ttl="1d")
    await mirrors.add("all", members=["main/first", "main/second"])
    mirrors.up.push("app", ONE, "1")
    for name in ("app", "library/app"):
        mirrors.up.misbehave(mirrors.up.manifest_path(name, "1"), Answer(404))
    assert (await mirrors.get("app/manifests/1", "all")).body == ONE.manifest
    asked = mirrors.up.count()
    assert (await mirrors.get("app/manifests/1", "all")).body == ONE.manifest
    assert mirrors.up.count() == asked
    mirrors.clock.ms += 61_000
    assert (await mirrors.get("app/manifests/1", "all")).body == ONE.manifest
    assert mirrors.up.count() > asked, "the first member may have it now"
