"""Directories of images in the readable layout: their content, verify and reindex."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pkgrepo.repositories.layout.images import directory
from pkgrepo.repositories.layout.images.directory import image_directory
from pkgrepo.repositories.layout.sidecars import BURNED
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import layout_pending
from tests.support.image_layouts import lose_catalog, reindex, tags, top, verify
from tests.support.images import Registry, digest_of, make_artifact, make_image, make_index


@pytest.fixture(autouse=True, params=[directory.MAX_AT_ONCE, 0], ids=["at once", "part by part"])
def _how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "MAX_AT_ONCE", request.param)


async def test_an_image_is_an_oci_layout_of_links(registry: Registry) -> None:
    image = make_image()
    await registry.push(image, "v1")
    await registry.push(image, "latest")
    await registry.update_layout()
    folder = top(registry)
    assert json.loads((folder / "oci-layout").read_bytes()) == {"imageLayoutVersion": "1.0.0"}
    assert tags(folder) == {"v1": image.digest, "latest": image.digest}
    for data in (image.manifest, *image.blobs):
        place = folder / "blobs" / digest_of(data).replace(":", "/")
        assert place.read_bytes() == data
        assert place.stat().st_nlink == 2
    assert not (await verify(registry)).problems


async def test_the_index_has_manifests_without_a_tag_only_if_nothing_refers_to_them(registry: Registry) -> None:
    children = [make_image("one"), make_image("two")]
    signature = make_artifact(children[0], "application/x.signature")
    index = make_index(children)
    for each in (*children, signature):
        await registry.push(each)
    await registry.push(index, "v1")
    await registry.update_layout()
    found = json.loads((top(registry) / "index.json").read_bytes())["manifests"]
    assert [each["digest"] for each in found] == [index.digest, signature.digest]
    assert {each["digest"] for each in found if "annotations" not in each} == {signature.digest}


async def test_a_deleted_image_is_removed_from_the_layout_and_then_its_blobs_from_the_disk(registry: Registry) -> None:
    gone, kept = make_image("gone"), make_image("kept")
    await registry.push(gone, "v1")
    await registry.push(kept, "v2")
    await registry.below("DELETE", f"manifests/{gone.digest}")
    await registry.update_layout()
    assert tags(top(registry)) == {"v2": kept.digest}
    present = {path.name for path in top(registry).glob("blobs/*/*")}
    assert present == {digest_of(data).partition(":")[2] for data in (kept.manifest, *kept.blobs)}
    await registry.below("DELETE", f"manifests/{kept.digest}")
    await registry.update_layout()
    assert [path.name for path in top(registry).rglob("*")] == [BURNED], "no upstream may have the name"
    assert not (await verify(registry)).problems
    await registry.push(kept, "v2")
    await registry.update_layout()
    assert not (top(registry) / BURNED).exists()
    assert not (await verify(registry)).problems


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("app", "app"),
        ("a/b", "a/b"),
        ("blobs/sha256/app", "blobs~/sha256/app"),
        ("a/index.json", "a/index.json~"),
        ("oci-layout", "oci-layout~"),
    ],
)
def test_name_parts_that_the_oci_layout_uses_get_a_tilde(name: str, expected: str) -> None:
    assert image_directory(name) == expected


async def test_the_directory_of_an_image_can_be_inside_that_of_another(registry: Registry) -> None:
    names = ("app", "app/blobs", "app/index.json/x", "app/deep")
    for name in names:
        await registry.push(make_image(name), "v1", name=f"main/images/{name}")
    await registry.update_layout()
    for name in names:
        assert tags(top(registry, image_directory(name))) == {"v1": make_image(name).digest}
    assert not (await verify(registry)).problems
    await registry.below("DELETE", f"manifests/{make_image('app').digest}")
    await registry.update_layout()
    assert not (top(registry) / "oci-layout").exists()
    assert tags(top(registry, "app/deep")) == {"v1": make_image("app/deep").digest}
    assert not (await verify(registry)).problems


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "index.json").unlink(),
        lambda folder: (folder / "oci-layout").write_bytes(b"{}"),
        lambda folder: shutil.rmtree(folder / "blobs"),
        lambda folder: (folder / "blobs/sha256/more").write_bytes(b"x"),
        lambda folder: shutil.copytree(folder, folder.with_name("made-up")),
    ],
)
async def test_verify_finds_and_repairs_differences(registry: Registry, damage: Callable[[Path], object]) -> None:
    await registry.push(make_image(), "v1")
    await registry.update_layout()
    before = {path.relative_to(top(registry)): path.is_file() for path in top(registry).rglob("*")}
    damage(top(registry))
    assert (await verify(registry)).problems
    assert not (await verify(registry, repair=True)).problems
    assert {path.relative_to(top(registry)): path.is_file() for path in top(registry).rglob("*")} == before
    assert not top(registry, "made-up").exists()
    assert not (await verify(registry)).problems


@pytest.mark.parametrize("trash_days", [0, 7])
async def test_the_name_of_a_deleted_image_is_retired_again_after_a_reindex(
    make_registry: Any, tmp_path: Path, trash_days: int
) -> None:
    registry = await make_registry(retention__trash_days=trash_days)
    image = make_image("gone")
    await registry.push(image, "v1")
    await registry.below("DELETE", f"manifests/{image.digest}")
    await registry.update_layout()
    assert (await verify(registry)).problems == []
    await registry.stack.stop()
    lose_catalog(tmp_path / "data")
    registry = await make_registry(fresh=False)
    assert (await reindex(registry)).problems == []
    core = registry.stack.assembly.core
    [repository] = [each for each in core.registry.all() if each.name == "images"]
    found = await core.catalog.look(packages.list_retired, repository.id)
    assert [each.key for each in found] == ["app"]
    path = f"/repository/{repository.uid}/retired-names/release"
    await registry.stack.ok("POST", path, {"package": "app"})
    await registry.update_layout()
    assert not top(registry).exists()


async def test_reindex_restores_images_and_tags(make_registry: Any, tmp_path: Path) -> None:
    registry = await make_registry()
    children = [make_image("one"), make_image("two")]
    index = make_index(children)
    signature = make_artifact(index, "application/x.signature")
    for each in (*children, signature):
        await registry.push(each)
    await registry.push(index, "v1")
    await registry.push(children[0], "latest", name="main/images/deep/er")
    await registry.update_layout()
    before = await registry.below("GET", f"referrers/{index.digest}")
    shown = await registry.stack.ok("GET", "/package/main%2Fimages/app")
    await registry.stack.stop()
    lose_catalog(tmp_path / "data")

    registry = await make_registry(fresh=False)
    restored = await reindex(registry)
    assert restored.problems == []
    assert (restored.repositories, restored.manifests, restored.tags) == (1, 5, 2)
    found = await registry.stack.ok("GET", "/package/main%2Fimages/app")
    times = [datetime.fromisoformat(each) for each in (shown["created_at"], found["created_at"], shown["updated_at"])]
    assert times == sorted(times)  # not as texts: a whole second has no fraction
    assert shown["updated_at"] == found["updated_at"]
    assert (await registry.below("GET", "tags/list")).json["tags"] == ["v1"]
    assert (await registry.below("GET", "manifests/v1")).body == index.manifest
    for each in (*children, signature):
        assert (await registry.below("GET", f"manifests/{each.digest}")).body == each.manifest
        for data in each.blobs:
            assert (await registry.below("GET", f"blobs/{digest_of(data)}")).body == data
    assert (await registry.below("GET", f"referrers/{index.digest}")).json == before.json
    await registry.update_layout()
    assert not (await verify(registry)).problems
    again = await reindex(registry)
    assert (again.repositories, again.manifests, again.tags, again.problems) == (0, 0, 0, [])


async def test_a_blob_uploaded_after_its_manifest_is_shown(make_registry: Any) -> None:
    registry = await make_registry(policy={"allow_sparse": True})
    image = make_image()
    assert (await registry.put(image, "v1")).status == 201
    await registry.update_layout()
    for data in image.blobs:
        await registry.push_blob(data)
    await registry.update_layout()
    assert not (await verify(registry)).problems
    assert len(list(top(registry).glob("blobs/*/*"))) == 3


async def built_again(make_registry: Any, registry: Registry, folder: Path) -> Any:
    """What is taken in again when the catalog is gone."""
    await registry.stack.stop()
    lose_catalog(folder / "data")
    return await reindex(await make_registry(fresh=False))


def write_first_form(registry: Registry) -> None:
    """Write an image as the first releases did: its manifests in one document with its tags, and none of their own."""
    folder = top(registry)
    sidecars = [json.loads(each.read_bytes()) for each in folder.glob(".manifests/*/*.json")]
    shutil.rmtree(folder / ".manifests")
    sidecar = json.loads((folder / ".image.json").read_bytes())
    blobs = [blob for each in sidecars for blob in each.pop("blobs")]
    value = {"key": sidecar["key"], "manifests": sidecars, "blobs": blobs, "tags": sidecar["tags"]}
    (folder / ".image.json").write_text(json.dumps(value, indent=1))


async def test_image_directories_of_the_first_releases_are_rewritten(make_registry: Any, tmp_path: Path) -> None:
    registry = await make_registry()
    await registry.push(make_image(), "v1")
    await registry.update_layout()
    write_first_form(registry)
    core = registry.stack.assembly.core
    repository = core.registry.find("main", "images")
    await core.catalog.write(layout_pending.add_repositories, [repository.id])  # as the migration does
    await registry.stack.stop()
    registry = await make_registry(fresh=False)
    await registry.update_layout()
    assert not (await verify(registry)).problems
    restored = await built_again(make_registry, registry, tmp_path)
    assert (restored.problems, restored.manifests, restored.tags) == ([], 1, 1)


async def test_reindex_reports_tags_without_a_manifest(make_registry: Any, tmp_path: Path) -> None:
    registry = await make_registry()
    for number in range(3):
        await registry.push(make_image(), f"v{number}")
    await registry.update_layout()
    write_first_form(registry)
    restored = await built_again(make_registry, registry, tmp_path)
    assert restored.tags == 0
    assert "main/images: app: 3 tags such as v0 have no manifest any more" in restored.problems
