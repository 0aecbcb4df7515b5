"""What of an image may go, and what changes between the plan and the removal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pkgrepo.model import Actor, BlobInfo, Repository
from pkgrepo.repositories.images.blobs import delete_blob, link_blob
from pkgrepo.repositories.images.manifests import delete_manifest, put_manifest
from pkgrepo.repositories.images.push import Push, Reference
from pkgrepo.repositories.upkeep import gc
from pkgrepo.storage.catalog.images import linked_blobs, manifests, promises
from pkgrepo.storage.catalog.images.gc import ImagePlan, plan_image
from pkgrepo.storage.catalog.images.manifests import ManifestRecord
from pkgrepo.storage.catalog.packages.packages import find_package
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob
from tests.support.images import digest_of

LATER = NOW + 48 * 3_600_000
BEFORE = LATER - 1000


class Scene:
    """An image of manifests that are named by their content."""

    def __init__(self) -> None:
        self.catalog = MemoryCatalog()
        self.repository: Repository = self.catalog.do(add_repository)

    def put(self, name: str, *names: str, tag: str = "", subject: str = "", now_ms: int = NOW) -> str:
        """A manifest that lists others, or is of blobs, each by its content; its digest."""
        blob = make_blob(name.encode())
        known = self._manifests()
        references = [(digest_of(each.encode()), "manifest" if each in known else "layer") for each in names]
        push = Push(
            manifest=ManifestRecord(
                digest=f"sha256:{blob.sha256}",
                sha256=blob.sha256,
                media_type="application/x",
                size=blob.size,
                subject=digest_of(subject.encode()) if subject else None,
                references=tuple(references),
            ),
            blob=blob,
            required=tuple(
                Reference(digest, kind, len(each)) for (digest, kind), each in zip(references, names, strict=True)
            ),
            tags=(tag,) if tag else (),
        )
        self.catalog.do(put_manifest, self.repository, "app", push, Actor(), now_ms)
        self._known = {*known, name}
        return push.manifest.digest

    def link(self, content: str, now_ms: int = NOW, client: str | None = None) -> BlobInfo:
        """A blob of the image."""
        blob = make_blob(content.encode())
        self.catalog.do(link_blob, self.repository, "app", blob, digest_of(content.encode()), None, client, now_ms)
        return blob

    def plan(self) -> ImagePlan:
        return self.catalog.peek(plan_image, self._package().id, BEFORE, LATER, untagged=True)

    def carry_out(self, plan: ImagePlan) -> None:
        """Remove what a plan says, as the collector does."""
        where = (self.repository, self._package())
        self.catalog.do(gc.remove_manifests, *where, plan.manifests, frozenset(plan.manifests), BEFORE, Actor(), LATER)
        self.catalog.do(gc.remove_links, *where, plan.blobs, BEFORE, LATER)

    def has(self, content: str) -> bool:
        """Whether the image has the manifest or the blob of this content."""
        package_id, digest = self._package().id, digest_of(content.encode())
        return (
            self.catalog.peek(manifests.manifest_size, package_id, digest) is not None
            or self.catalog.peek(linked_blobs.find_in_package, self.repository.storage_id, package_id, digest)
            is not None
        )

    _known: frozenset[str] | set[str] = frozenset()

    def _manifests(self) -> set[str]:
        return set(self._known)

    def _package(self):
        return self.catalog.peek(find_package, self.repository.id, "app")


@pytest.fixture
def scene() -> Scene:
    """An image with a tagged manifest and its blob, an untagged one, and a blob of nobody."""
    scene = Scene()
    scene.link("layer")
    scene.put("kept", "layer", tag="v1")
    scene.put("untagged", "layer")
    scene.link("loose")
    return scene


def touch_manifest(scene: Scene) -> None:
    scene.catalog.do(manifests.touch_manifest, scene._package().id, digest_of(b"untagged"), LATER)


def name_by_an_index(scene: Scene) -> None:
    scene.put("index", "untagged", tag="v2", now_ms=NOW)
    # naming it touches it; what is asked here is whether being named is enough
    scene.catalog.do(manifests.touch_manifest, scene._package().id, digest_of(b"untagged"), NOW)


def promise_manifest(scene: Scene) -> None:
    scene.catalog.do(promises.promise, scene._package().id, digest_of(b"untagged"), "somebody", LATER)


def tag_manifest(scene: Scene) -> None:
    scene.put("untagged", tag="v2", now_ms=NOW)


CHANGES: dict[str, Callable[[Scene], None]] = {
    "touched": touch_manifest,
    "tagged": tag_manifest,
    "named by an index": name_by_an_index,
    "promised": promise_manifest,
}


def test_what_nothing_needs_goes(scene: Scene) -> None:
    scene.carry_out(scene.plan())
    assert [scene.has(each) for each in ("kept", "layer", "untagged", "loose")] == [True, True, False, False]


@pytest.mark.parametrize("change", CHANGES)
def test_a_manifest_that_comes_into_use_after_the_plan_stays(scene: Scene, change: str) -> None:
    plan = scene.plan()
    assert plan.manifests == (digest_of(b"untagged"),)
    CHANGES[change](scene)
    scene.carry_out(plan)
    assert scene.has("untagged")


def test_a_referrer_whose_subject_comes_after_the_plan_stays(scene: Scene) -> None:
    scene.put("signature", subject="to come", now_ms=NOW)
    plan = scene.plan()
    assert digest_of(b"signature") in plan.manifests
    scene.put("to come", tag="v2", now_ms=NOW)
    scene.carry_out(plan)
    assert scene.has("signature")


def test_a_referrer_goes_with_its_subject(scene: Scene) -> None:
    scene.put("signature", subject="untagged", now_ms=NOW)
    plan = scene.plan()
    assert set(plan.manifests) == {digest_of(b"signature"), digest_of(b"untagged")}
    scene.carry_out(plan)
    assert not scene.has("signature")


BLOB_CHANGES: dict[str, Callable[[Scene], object]] = {
    "touched": lambda scene: scene.link("loose", now_ms=LATER),
    "promised": lambda scene: scene.catalog.do(
        promises.promise, scene._package().id, digest_of(b"loose"), "somebody", LATER
    ),
    "referred to": lambda scene: scene.put("of loose", "loose", tag="v2", now_ms=NOW),
}


@pytest.mark.parametrize("change", BLOB_CHANGES)
def test_a_blob_that_comes_into_use_after_the_plan_stays(scene: Scene, change: str) -> None:
    plan = scene.plan()
    assert plan.blobs == (make_blob(b"loose").sha256,)
    BLOB_CHANGES[change](scene)
    scene.carry_out(plan)
    assert scene.has("loose")


def test_an_image_that_was_removed_and_came_again_is_not_the_one_of_the_plan(scene: Scene) -> None:
    plan, before = scene.plan(), scene._package()
    for name in ("kept", "untagged"):
        scene.catalog.do(delete_manifest, scene.repository, "app", digest_of(name.encode()), Actor(), NOW)
    for name in ("layer", "loose"):
        scene.catalog.do(delete_blob, scene.repository, "app", digest_of(name.encode()), NOW)
    scene.link("loose")
    scene.put("untagged", "loose")
    assert scene._package().id != before.id
    scene.catalog.do(gc.remove_links, scene.repository, before, plan.blobs, BEFORE, LATER)
    doomed = frozenset(plan.manifests)
    scene.catalog.do(gc.remove_manifests, scene.repository, before, plan.manifests, doomed, BEFORE, Actor(), LATER)
    assert scene.has("untagged")
