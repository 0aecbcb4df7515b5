"""Lists of tags, images and referrers: their order and their pages."""

from __future__ import annotations

from typing import Any

import pytest

from pkgrepo.formats.container import lists as tag_lists
from tests.support.images import EMPTY, OCI_CONFIG, OCI_INDEX, Registry, code, make_artifact, make_image
from tests.support.signing import Signer, sign_simply, signature_tag

APP = "main/images/app"


def links(reply: Any) -> str:
    """The address of the next page, below /v2."""
    address, _, rel = reply.headers["link"].partition(">; ")
    assert rel == 'rel="next"'
    return str(address.removeprefix("</v2"))


async def test_referrers_are_listed_and_filtered(registry: Registry) -> None:
    image = make_image()
    signature = make_artifact(image, "application/vnd.example.sig+json", annotations={"by": "bob"})
    report = make_artifact(image, "text/spdx")
    plain = make_image("refers", subject=image.descriptor)
    assert (await registry.below("GET", f"referrers/{image.digest}")).json["manifests"] == []
    for each in (signature, report, plain):
        pushed = await registry.push(each)
        assert pushed.headers["oci-subject"] == image.digest
    reply = await registry.below("GET", f"referrers/{image.digest}")
    assert reply.headers["content-type"] == OCI_INDEX
    entries = {each["digest"]: each for each in reply.json["manifests"]}
    assert entries[signature.digest]["annotations"] == {"by": "bob"}
    assert entries[signature.digest]["artifactType"] == "application/vnd.example.sig+json"
    assert entries[signature.digest]["size"] == len(signature.manifest)
    assert entries[plain.digest]["artifactType"] == OCI_CONFIG
    assert len(entries) == 3
    for wanted in ("application/vnd.example.sig+json", "application/vnd.example.sig%2Bjson"):
        filtered = await registry.below("GET", f"referrers/{image.digest}?artifactType={wanted}")
        assert [each["digest"] for each in filtered.json["manifests"]] == [signature.digest]
        assert filtered.headers["oci-filters-applied"] == "artifactType"
    await registry.below("DELETE", f"manifests/{report.digest}")
    again = await registry.below("GET", f"referrers/{image.digest}")
    assert report.digest not in [each["digest"] for each in again.json["manifests"]]
    assert (await registry.below("GET", "referrers/sha256:bad")).status == 400
    assert (await registry.below("GET", f"referrers/{image.digest}", name="main/images/none")).json["manifests"] == []


@pytest.mark.parametrize(("limit", "most"), [("MOST_REFERRERS", 2), ("PAGE_BYTES", 1300), ("BATCH", 2)])
async def test_many_referrers_come_in_pages(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(f"pkgrepo.formats.container.lists.{limit}", most)
    image = make_image()
    made = {
        (await registry.push(make_artifact(image, "a/b", annotations={"n": str(n)}))).headers["docker-content-digest"]
        for n in range(5)
    }
    path = f"/{APP}/referrers/{image.digest}?artifactType=a/b"
    found: list[str] = []
    while path:
        reply = await registry.call("GET", path)
        found += [each["digest"] for each in reply.json["manifests"]]
        assert len(reply.json["manifests"]) <= 2 or limit == "BATCH"
        path = links(reply) if "link" in reply.headers else ""
    assert found == sorted(made)


async def test_referrers_in_several_members_come_in_pages(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pkgrepo.formats.container.lists.MOST_REFERRERS", 2)
    await registry.stack.add_repository("more", format="docker")
    members = {"type": "Virtual", "members": ["main/images", "main/more"]}
    await registry.stack.add_repository("all", format="docker", config=members)
    image, made = make_image(), set()
    for number in range(9):
        artifact = make_artifact(image, "a/b", annotations={"n": str(number)})
        names = ["main/images/app"] * (number % 3 < 2) + ["main/more/app"] * (number % 3 > 0)
        for name in names:
            made.add((await registry.push(artifact, name=name)).headers["docker-content-digest"])
    path, found = f"/main/all/app/referrers/{image.digest}", []
    while path:
        reply = await registry.call("GET", path)
        found += [each["digest"] for each in reply.json["manifests"]]
        path = links(reply) if "link" in reply.headers else ""
    assert found == sorted(made)


async def test_tags_are_listed_bytewise_and_in_pages(registry: Registry) -> None:
    image = make_image()
    await registry.push(image, "b")
    for tag in ("a", "B", "_", "c"):
        await registry.put(image, tag)
    assert (await registry.below("GET", "tags/list")).json == {"name": APP, "tags": ["B", "_", "a", "b", "c"]}
    first = await registry.below("GET", "tags/list?n=2")
    assert first.json["tags"] == ["B", "_"]
    second = await registry.call("GET", links(first))
    assert second.json["tags"] == ["a", "b"]
    third = await registry.call("GET", links(second))
    assert third.json["tags"] == ["c"]
    assert "link" not in third.headers
    assert (await registry.below("GET", "tags/list?last=_a")).json["tags"] == ["a", "b", "c"]
    none = await registry.below("GET", "tags/list?n=0")
    assert (none.json["tags"], "link" in none.headers) == ([], False)
    for wrong in ("-1", "x", "1.5"):
        assert code(await registry.below("GET", f"tags/list?n={wrong}")) == "PAGINATION_NUMBER_INVALID"


async def test_the_catalog_lists_images_with_manifests_in_pages(registry: Registry) -> None:
    await registry.stack.add_repository("images-2", format="docker")
    image = make_image()
    for name in ("main/images/b", "main/images/a/x", "main/images-2/z"):
        await registry.push(image, "v1", name=name)
    await registry.push_blob(EMPTY, name="main/images/only-a-blob")
    every = ["main/images-2/z", "main/images/a/x", "main/images/b"]
    assert (await registry.call("GET", "/_catalog")).json["repositories"] == every
    path, found = "/_catalog?n=1", []
    while path:
        reply = await registry.call("GET", path)
        found += reply.json["repositories"]
        path = links(reply) if "link" in reply.headers else ""
    assert found == every


@pytest.mark.parametrize("default", [False, True])
async def test_hidden_repositories_are_listed_for_those_who_may_edit_them(registry: Registry, default: bool) -> None:
    stack, image = registry.stack, make_image()
    config = {"type": "Hosted", "default": default}
    await stack.add_repository("secret", format="docker", visibility="hidden", config=config)
    for name in ("reader", "editor"):
        await stack.add_user(name)
    await stack.grant("reader", "main/secret", "read", "write")
    await stack.grant("editor", "main/secret", "read", "edit")
    for name in (APP, "main/secret/one", *(["two"] if default else [])):
        await registry.push(image, "v1", name=name)
    secret = ["main/secret/one", *(["two"] if default else [])]
    for who, expected in (("admin", [APP, *secret]), ("editor", [APP, *secret]), ("reader", [APP]), (None, [APP])):
        agent = {"User_Agent": "curl/8.1"}
        assert (await registry.call("GET", "/_catalog", who=who, **agent)).json["repositories"] == expected
        token = await stack.bearer(who, "registry:catalog:*")
        assert (await registry.call("GET", "/_catalog", who=token)).json["repositories"] == expected
        assert (await registry.call("GET", "/main/secret/one/tags/list", who=who, **agent)).status == 200


async def test_the_catalog_lists_what_virtual_repositories_serve(registry: Registry) -> None:
    stack, image = registry.stack, make_image()
    await stack.add_repository("more", format="docker", visibility="hidden")
    members = {"type": "Virtual", "members": ["main/images", "main/more"], "publish_to": "main/more"}
    await stack.add_repository("all", format="docker", config=members)
    await stack.add_user("reader")
    for name in ("main/images/a", "main/images/c", "main/more/b", "main/more/c", "main/all/d"):
        await registry.push(image, "v1", name=name)
    virtual = [f"main/all/{each}" for each in "abcd"]
    path, found = "/_catalog?n=2", []
    while path:
        reply = await registry.call("GET", path, who="reader")
        found += reply.json["repositories"]
        path = links(reply) if "link" in reply.headers else ""
    assert found == [*virtual, "main/images/a", "main/images/c"]


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
        ("DELETE", f"manifests/{image.digest}", 404),  # with its blobs, so that the image has nothing left
        ("PUT", "manifests/c", ["c"]),
    ]
    await registry.push(image)
    assert await tags(registry) == []
    for method, path, expected in steps:
        if method == "PUT":
            await registry.push(image, path.rpartition("/")[2])
        else:
            assert (await registry.below(method, path)).status == 202
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
