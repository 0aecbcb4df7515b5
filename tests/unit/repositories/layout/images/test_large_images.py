"""Large images in the readable layout: compared as a whole once, then updated by changes."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.repositories.layout import follower
from pkgrepo.repositories.layout.images import (
    changes,
    directory,
    large_images,
)
from pkgrepo.repositories.layout.images.large_images import LargeImages
from pkgrepo.storage.layout_folder import LayoutFolder
from tests.support.image_layouts import lose_catalog, reindex, tags, top, untagged, verify
from tests.support.images import Image, Registry, digest_of, make_artifact, make_image, make_index
from tests.support.signing import Signer, sign_simply, signature_tag


@pytest.fixture(autouse=True)
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Takes every image for a big one, in small pages; the names of those that the follower compared as a whole."""
    monkeypatch.setattr(directory, "MAX_AT_ONCE", 0)
    monkeypatch.setattr(large_images, "PAGE", 3)
    monkeypatch.setattr(large_images, "LINES", 4)
    names: list[str] = []
    differences = LargeImages.differences

    def counting(self: LargeImages, writer: Any, image: str) -> Any:
        names.append(image)
        return differences(self, writer, image)

    monkeypatch.setattr(LargeImages, "differences", counting)
    return names


@pytest_twisted.async_yield_fixture
async def registry(make_registry: Any) -> Any:
    """A registry in which tags may be moved."""
    yield await make_registry(rules={"allow_tag_overwrite": True})


async def right(registry: Registry, compared: list[str]) -> None:
    """The layout shows what the catalog has; looking does not count as comparing."""
    before = list(compared)
    assert (await verify(registry)).problems == []
    compared[:] = before


async def shown(registry: Registry, compared: list[str]) -> int:
    """Have the layout catch up; how many images that compared."""
    before = len(compared)
    await registry.update_layout()
    return len(compared) - before


class Disk:
    """What was written and removed below the layouts, and what shall fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.places: list[str] = []
        self.fails: Callable[[str], bool] = lambda place: False
        for name in ("link", "write", "put", "remove"):
            monkeypatch.setattr(LayoutFolder, name, self._counting(getattr(LayoutFolder, name)))

    def _counting(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def counted(layout: LayoutFolder, *arguments: Any) -> Any:
            place = str(arguments[0] if len(arguments) == 1 or act.__name__ == "write" else arguments[1])
            if self.fails(place):
                raise OSError(28, "No space left on device")
            self.places.append(place)
            return act(layout, *arguments)

        return counted

    def touched(self) -> set[str]:
        """The places since the last call, below the image's directory."""
        places, self.places = self.places, []
        return {place.removeprefix("images/app/") for place in places if place != "images/.repository.json"}


def places_of(image: Image) -> set[str]:
    """Where what belongs to an image alone is, as makers of images here make them."""
    config, _ = image.blobs
    names = {f"blobs/{digest_of(data).replace(':', '/')}" for data in (image.manifest, config)}
    return names | {f".manifests/{image.digest.replace(':', '/')}.json"}


def variants(count: int) -> list[Image]:
    """Images that share nothing but their layers."""
    return [make_image(architecture=f"a{number}") for number in range(count)]


async def test_only_affected_files_are_written(
    registry: Registry, compared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *images = variants(10)
    for number, each in enumerate(images):
        await registry.push(each, f"v{number}")
    await registry.update_layout()
    assert compared == ["app"]
    disk = Disk(monkeypatch)
    await registry.push(first, "v00")
    assert await shown(registry, compared) == 0
    assert disk.touched() == {"index.json", ".image.json", *places_of(first)}
    await registry.put(first, "v3")
    assert await shown(registry, compared) == 0
    assert disk.touched() == {"index.json", ".image.json"}
    assert untagged(top(registry)) == {images[3].digest}
    await registry.below("DELETE", f"manifests/{first.digest}")
    assert await shown(registry, compared) == 0
    assert disk.touched() == {"index.json", ".image.json", *places_of(first)}
    await registry.put(images[4], "v4")
    assert await shown(registry, compared) == 0
    assert disk.touched() == set()
    await right(registry, compared)
    assert tags(top(registry)) == {f"v{n}": each.digest for n, each in enumerate(images) if n != 3}


class Play:
    """Pushes, moves and takes away at random what an image can have."""

    def __init__(self, registry: Registry, seed: int) -> None:
        self.registry = registry
        self.random = random.Random(seed)
        self.images = variants(6)
        self.indexes = [make_index(self.images[:2]), make_index(self.images[1:4]), make_index(self.images[:5])]
        self.artifacts = [make_artifact(each, "application/x.signature") for each in self.images[:3]]
        self.there: set[str] = set()

    async def step(self) -> None:
        await self.random.choice([self.push, self.push, self.push_index, self.delete, self.untag])()

    async def push(self) -> None:
        image = self.random.choice([*self.images, *self.artifacts])
        await self.registry.push(image, self.random.choice(["", "v1", "v2", "latest"]))
        self.there.add(image.digest)

    async def push_index(self) -> None:
        index = self.random.choice(self.indexes)
        for each in self.images:
            await self.registry.push(each)
            self.there.add(each.digest)
        await self.registry.push(index, self.random.choice(["", "v1", "all"]))
        self.there.add(index.digest)

    async def delete(self) -> None:
        if self.there:
            await self.registry.below("DELETE", f"manifests/{self.random.choice(sorted(self.there))}")

    async def untag(self) -> None:
        await self.registry.below("DELETE", f"manifests/{self.random.choice(['v1', 'v2', 'latest', 'all'])}")


@pytest.mark.parametrize("seed", range(4))
async def test_any_order_of_changes_ends_correctly(registry: Registry, compared: list[str], seed: int) -> None:
    play = Play(registry, seed)
    await registry.push(make_image("stays"))
    await registry.update_layout()
    for _ in range(8):
        for _ in range(play.random.randint(1, 4)):
            await play.step()
        assert await shown(registry, compared) == 0
        await right(registry, compared)


async def test_a_new_follower_compares_once_and_repairs_differences_after_a_crash(
    make_registry: Any, compared: list[str]
) -> None:
    registry = await make_registry()
    await registry.push(make_image("one"), "v1")
    await registry.update_layout()
    await registry.stack.stop()
    (top(registry) / "index.json").unlink()
    (top(registry) / "blobs/sha256" / ("0" * 64)).write_bytes(b"of a round that did not end")
    registry = await make_registry(fresh=False)
    await registry.push(make_image("two"), "v2")
    assert await shown(registry, compared) == 1
    await right(registry, compared)
    await registry.push(make_image("three"), "v3")
    assert await shown(registry, compared) == 0
    await right(registry, compared)


async def test_a_half_written_change_is_completed(
    registry: Registry, compared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await registry.push(make_image("one"), "v1")
    await registry.update_layout()
    disk = Disk(monkeypatch)
    failures = iter([True])
    disk.fails = lambda place: place.endswith("index.json") and next(failures, False)
    await registry.push(make_image("two"), "v2")
    assert await shown(registry, compared) == 1
    await right(registry, compared)
    assert not list((top(registry).parents[1] / ".tmp").iterdir())


async def test_an_image_that_cannot_be_shown_is_reported_and_shown_with_the_next_change(
    make_registry: Any, compared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = await make_registry()
    await registry.push(make_image("one"), "v1")
    await registry.update_layout()
    disk = Disk(monkeypatch)
    disk.fails = lambda place: place.endswith("index.json")
    told: list[str] = []
    monkeypatch.setattr(follower.log, "error", lambda _, **fields: told.append(fields["package"]))
    await registry.push(make_image("two"), "v2")
    await registry.update_layout()
    assert told == ["app"]
    assert tags(top(registry)) == {"v1": make_image("one").digest}
    disk.fails = lambda place: False
    await registry.push(make_image("three"), "v3")
    assert await shown(registry, compared) == 1
    await right(registry, compared)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "index.json").write_bytes(b"{}"),
        lambda folder: (folder / ".image.json").unlink(),
        lambda folder: (folder / "index.json").write_bytes(b""),
        lambda folder: os.truncate(folder / ".image.json", 40),
    ],
)
async def test_documents_changed_by_hand_are_rewritten(
    registry: Registry, compared: list[str], damage: Callable[[Path], object]
) -> None:
    await registry.push(make_image("one"), "v1")
    await registry.update_layout()
    damage(top(registry))
    await registry.push(make_image("two"), "v2")
    assert await shown(registry, compared) == 1
    await right(registry, compared)


async def test_many_changes_at_once_cause_a_comparison_of_the_whole_image(
    registry: Registry, compared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAX_CHANGES", 3)
    await registry.push(make_image("one"), "v1")
    await registry.update_layout()
    query = "&".join(f"tag=w{number}" for number in range(4))
    assert (await registry.put(make_image("one"), f"{make_image('one').digest}?{query}")).status == 201
    assert await shown(registry, compared) == 1
    await right(registry, compared)


async def test_the_number_of_remembered_images_is_limited(
    registry: Registry, compared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_images, "MAX_KNOWN", 1)
    counts = []
    for tag, name in enumerate(["one", "one", "two", "two", "one"]):
        await registry.push(make_image(), f"v{tag}", name=f"main/images/{name}")
        counts.append(await shown(registry, compared))
    assert counts == [1, 0, 1, 0, 1]
    await right(registry, compared)


async def test_tags_in_quarantine_show_the_manifest_that_readers_get(make_registry: Any, compared: list[str]) -> None:
    registry = await make_registry()
    key = Signer()
    first, second, third = (make_image(name) for name in ("first", "second", "third"))

    async def configure(*, trust: bool) -> None:
        rules = {"require_content_trust": trust, "allow_tag_overwrite": True}
        config = {"type": "Hosted", "push_rules": rules, "trust": {"keys": [key.pem], "window_s": 3600}}
        repository = registry.stack.assembly.core.registry.find("main", "images")
        assert repository is not None
        await registry.stack.ok("PUT", f"/repository/{repository.uid}/config", config)

    async def shows(digest: str | None) -> None:
        assert await shown(registry, compared) == 0
        await right(registry, compared)
        assert tags(top(registry)).get("v1") == digest

    await configure(trust=True)
    await registry.push(make_image("stays"))
    await registry.update_layout()
    await registry.push(first, "v1")
    await shows(None)
    await registry.push(sign_simply(key, first.digest), signature_tag(first.digest))
    await shows(first.digest)
    await registry.push(second)
    await registry.push(make_index([second]), "v1")
    await shows(first.digest)
    await registry.push(sign_simply(key, make_index([second]).digest), signature_tag(make_index([second]).digest))
    await shows(make_index([second]).digest)
    assert first.digest in untagged(top(registry))
    await registry.push(third, "v1")
    await registry.update_layout()
    await registry.below("DELETE", f"manifests/{make_index([second]).digest}")
    await shows(None)


async def test_quarantined_manifests_are_shown_without_the_rule(make_registry: Any, compared: list[str]) -> None:
    from pkgrepo.repositories.images.quarantine import end_quarantine

    registry = await make_registry()
    core = registry.stack.assembly.core
    repository = core.registry.find("main", "images")
    assert repository is not None
    config = {"type": "Hosted", "push_rules": {"require_content_trust": True}, "trust": {"keys": [Signer().pem]}}
    await registry.stack.ok("PUT", f"/repository/{repository.uid}/config", config)
    await registry.push(make_image(), "v1")
    await registry.update_layout()
    assert tags(top(registry)) == {}
    await core.content.change(end_quarantine, repository)
    await registry.update_layout()
    await right(registry, compared)
    assert tags(top(registry)) == {"v1": make_image().digest}


async def test_a_late_blob_is_shown_under_all_its_digests(make_registry: Any, compared: list[str]) -> None:
    registry = await make_registry(policy={"allow_sparse": True})
    image = make_image()
    assert (await registry.put(image, "v1")).status == 201
    await registry.update_layout()
    for data in image.blobs:
        await registry.push_blob(data)
    assert await shown(registry, compared) == 0
    await right(registry, compared)
    assert len(list(top(registry).glob("blobs/*/*"))) == 3


async def test_reindex_restores_every_page(make_registry: Any, compared: list[str], tmp_path: Path) -> None:
    registry = await make_registry()
    images = variants(9)
    for number, each in enumerate(images):
        await registry.push(each, f"v{number}")
    await registry.update_layout()
    await registry.stack.stop()
    lose_catalog(tmp_path / "data")
    registry = await make_registry(fresh=False)
    restored = await reindex(registry)
    assert (restored.problems, restored.manifests, restored.tags) == ([], 9, 9)
    await registry.update_layout()
    await right(registry, compared)
    assert tags(top(registry)) == {f"v{number}": each.digest for number, each in enumerate(images)}


async def test_documents_that_cannot_be_created_leave_no_temporary(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft, made = LayoutFolder.draft, []

    def second_fails(layout: LayoutFolder) -> Any:
        if made:
            raise OSError(28, "No space left on device")
        made.append(draft(layout))
        return made[0]

    monkeypatch.setattr(LayoutFolder, "draft", second_fails)
    await registry.push(make_image(), "v1")
    await registry.update_layout()
    assert made
    assert not Path(made[0].path).exists()
