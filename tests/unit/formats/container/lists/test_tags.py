"""Cached lists of tags: read once from the catalog, and never stale."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.formats.container import lists as tag_lists
from tests.support.images import Registry, make_image
from tests.support.signing import Signer, sign_simply, signature_tag


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The images whose tags were read from the catalog."""
    read, found = tag_lists._read_tags, []

    def counting(reader: Any, repository_id: int, image: str, *rest: Any) -> Any:
        found.append(image)
        return read(reader, repository_id, image, *rest)

    monkeypatch.setattr(tag_lists, "_read_tags", counting)
    return found


async def tags(registry: Registry, query: str = "", *, who: str | None = None) -> Any:
    reply = await registry.below("GET", f"tags/list{query}", who=who)
    return reply.json["tags"] if reply.status == 200 else reply.status


async def test_a_list_is_read_again_only_when_the_image_changed(registry: Registry, reads: list[str]) -> None:
    await registry.push(make_image(), "a")
    for _ in range(3):
        assert await tags(registry) == ["a"]
    assert reads == ["app"]
    await registry.push(make_image(), "a", name="main/images/other")
    assert await tags(registry) == ["a"]
    assert reads == ["app"]


async def test_every_change_is_seen_at_once(registry: Registry) -> None:
    image = make_image()
    steps: list[tuple[str, str, Any]] = [
        ("PUT", "manifests/a", ["a"]),
        ("PUT", "manifests/b", ["a", "b"]),
        ("DELETE", "manifests/a", ["b"]),
        ("DELETE", f"manifests/{image.digest}", []),
        ("PUT", "manifests/c", ["c"]),
    ]
    await registry.push(image)
    assert await tags(registry) == []
    for method, path, expected in steps:
        raw = image.manifest if method == "PUT" else b""
        reply = await registry.below(method, path, raw, Content_Type=image.media_type)
        assert reply.status in (201, 202), reply.body
        for _ in range(2):
            assert await tags(registry) == expected


async def test_pages_are_read_each_time(registry: Registry, reads: list[str]) -> None:
    await registry.push(make_image(), "a")
    for _ in range(2):
        assert await tags(registry, "?n=1") == ["a"]
    assert len(reads) == 2


async def test_a_cached_list_is_not_served_without_permission(make_registry: Any) -> None:
    registry = await make_registry(visibility="private")
    await registry.push(make_image(), "a")
    assert await tags(registry, who="admin") == ["a"]
    assert await tags(registry) == 401


async def test_lists_are_not_cached_where_signatures_are_required(make_registry: Any) -> None:
    registry = await make_registry()
    key, image = Signer(), make_image()
    repository = registry.stack.assembly.core.registry.find("main", "images")
    config = {"type": "Hosted", "push_rules": {"require_content_trust": True}, "trust": {"keys": [key.pem]}}
    await registry.push(image, "old")
    assert await tags(registry) == ["old"]
    await registry.stack.ok("PUT", f"/repository/{repository.uid}/config", config)
    for _ in range(2):
        assert (await tags(registry), await tags(registry, who="admin")) == ([], ["old"])
    signature = signature_tag(image.digest)
    await registry.push(sign_simply(key, image.digest), signature)
    assert await tags(registry) == sorted(["old", signature])
