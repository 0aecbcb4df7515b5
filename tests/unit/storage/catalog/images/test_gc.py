"""Garbage collection of an image: the plan, and changes between the plan and the removal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pkgrepo.model import Actor, BlobInfo, Package, Repository
from pkgrepo.repositories.images.blobs import delete_blob, link_blob
from pkgrepo.repositories.images.manifests import delete_manifest, put_manifest
from pkgrepo.repositories.images.push import Push, Reference
from pkgrepo.repositories.upkeep import gc
from pkgrepo.storage.catalog.images import linked_blobs, manifests
from pkgrepo.storage.catalog.images.gc import Held, ImagePlan, held_by_trash, may_remove_manifest, plan_image
from pkgrepo.storage.catalog.images.manifests import ManifestRecord
from pkgrepo.storage.catalog.packages import tags
from pkgrepo.storage.catalog.packages.packages import find_package
from pkgrepo.storage.catalog.server.trash import list_entries, purge_entry, put_kept_days
from tests.support.admission import admitted
from tests.support.catalog import MemoryCatalog
from tests.support.catalogs import NOW, add_repository, make_blob
from tests.support.images import digest_of

LATER = NOW + 48 * 3_600_000
BEFORE = LATER - 1000


class Scene:
    """An image; the content of each manifest and blob is its name."""

    def __init__(self) -> None:
        self.catalog = MemoryCatalog()
        self.repository: Repository = self.catalog.do(add_repository)

    def put(self, name: str, *names: str, tag: str = "", subject: str = "", now_ms: int = NOW) -> str:
        """Push a manifest that refers to the manifests and blobs ``names``; returns its digest."""
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
        self.catalog.do(put_manifest, self.repository, "app", push, admitted(self.repository), now_ms)
        self._known = {*known, name}
        return push.manifest.digest

    def link(self, content: str, now_ms: int = NOW, client: str | None = None) -> BlobInfo:
        """Link a blob to the image."""
        blob = make_blob(content.encode())
        self.catalog.do(
            link_blob,
            self.repository,
            "app",
            blob,
            digest_of(content.encode()),
            None,
            client,
            admitted(self.repository),
            now_ms,
        )
        return blob

    def plan(self) -> ImagePlan:
        return self.catalog.peek(plan_image, self._package().id, BEFORE, LATER, untagged=True)

    def carry_out(self, plan: ImagePlan) -> None:
        """Remove the objects of a plan, as the garbage collector does."""
        where = (self.repository, self._package())
        self.remove_manifests(plan)
        self.catalog.do(gc.remove_links, *where, plan.blobs, BEFORE, LATER)

    def remove_manifests(self, plan: ImagePlan, of: Package | None = None, held: Held | None = None) -> Held:
        """Remove those of a plan, by what the trash held then; returns what it holds now."""
        planned, when = frozenset(plan.manifests), (BEFORE, Actor(), LATER)
        place = self.repository, of or self._package()
        _, now = self.catalog.do(gc.remove_manifests, *place, plan.manifests, planned, held or Held(), *when)
        return now

    def has(self, content: str) -> bool:
        """Whether the image has a manifest or a blob with this content."""
        package_id, digest = self._package().id, digest_of(content.encode())
        return (
            self.catalog.peek(manifests.manifest_size, package_id, digest) is not None
            or self.catalog.peek(linked_blobs.find_in_package, self.repository.storage_id, package_id, digest)
            is not None
        )

    def tags(self) -> set[str]:
        """The tags of the image."""
        return {each.name for each in self.catalog.peek(tags.list_tags, self._package().id)}

    _known: frozenset[str] | set[str] = frozenset()

    def _manifests(self) -> set[str]:
        return set(self._known)

    def _package(self):
        return self.catalog.peek(find_package, self.repository.id, "app")


@pytest.fixture
def scene() -> Scene:
    """An image with a tagged and an untagged manifest, their blob, and a blob without references."""
    scene = Scene()
    scene.link("layer")
    scene.put("kept", "layer", tag="v1")
    scene.put("untagged", "layer")
    scene.link("unused")
    return scene


def touch_manifest(scene: Scene) -> None:
    scene.catalog.do(manifests.touch_manifest, scene._package().id, digest_of(b"untagged"), LATER)


def list_in_an_index(scene: Scene) -> None:
    scene.put("index", "untagged", tag="v2", now_ms=NOW)
    # The push touched the manifest. Undo that: the test is whether the reference of the index is enough.
    scene.catalog.do(manifests.touch_manifest, scene._package().id, digest_of(b"untagged"), NOW)


def lease_manifest(scene: Scene) -> None:
    scene.catalog.do(linked_blobs.lease, scene._package().id, digest_of(b"untagged"), "client 1", LATER)


def tag_manifest(scene: Scene) -> None:
    scene.put("untagged", tag="v2", now_ms=NOW)


CHANGES: dict[str, Callable[[Scene], None]] = {
    "touched": touch_manifest,
    "tagged": tag_manifest,
    "listed in an index": list_in_an_index,
    "leased": lease_manifest,
}


def test_unneeded_objects_are_removed(scene: Scene) -> None:
    scene.carry_out(scene.plan())
    assert [scene.has(each) for each in ("kept", "layer", "untagged", "unused")] == [True, True, False, False]


@pytest.mark.parametrize("change", CHANGES)
def test_a_manifest_that_is_needed_after_the_plan_stays(scene: Scene, change: str) -> None:
    plan = scene.plan()
    assert plan.manifests == (digest_of(b"untagged"),)
    CHANGES[change](scene)
    scene.carry_out(plan)
    assert scene.has("untagged")


def test_a_referrer_whose_subject_is_pushed_after_the_plan_stays(scene: Scene) -> None:
    scene.put("signature", subject="to come", now_ms=NOW)
    plan = scene.plan()
    assert digest_of(b"signature") in plan.manifests
    scene.put("to come", tag="v2", now_ms=NOW)
    scene.carry_out(plan)
    assert scene.has("signature")


def test_a_referrer_is_removed_with_its_subject(scene: Scene) -> None:
    scene.put("signature", subject="untagged", now_ms=NOW)
    plan = scene.plan()
    assert set(plan.manifests) == {digest_of(b"signature"), digest_of(b"untagged")}
    scene.carry_out(plan)
    assert not scene.has("signature")


def test_referrers_of_what_stays_stay_and_theirs(scene: Scene) -> None:
    scene.put("signature", subject="kept")
    scene.put("of the signature", subject="signature")
    assert scene.plan().manifests == (digest_of(b"untagged"),)


def test_a_signature_is_not_removed_before_its_subject_and_nothing_twice(scene: Scene) -> None:
    scene.put("signature", tag=cosign_tag("untagged"))
    planned = [digest_of(each) for each in (b"untagged", b"signature")]

    def may_remove() -> list[bool]:
        given = (frozenset(planned), BEFORE, LATER)
        return [scene.catalog.do(may_remove_manifest, scene._package().id, each, *given) for each in planned]

    assert may_remove() == [True, False]
    scene.catalog.do(delete_manifest, scene.repository, "app", planned[0], Actor(), LATER)
    assert may_remove() == [False, True]


def cosign_tag(content: str, suffix: str = "sig") -> str:
    return f"{digest_of(content.encode()).replace(':', '-')}.{suffix}"


@pytest.mark.parametrize("suffix", ["sig", "att", "sbom"])
def test_what_cosign_has_tagged_is_removed_with_its_subject(scene: Scene, suffix: str) -> None:
    scene.put("signature", tag=cosign_tag("untagged", suffix))
    scene.put("of the signature", tag=cosign_tag("signature", suffix))
    scene.put("of the kept", tag=cosign_tag("kept", suffix))
    plan = scene.plan()
    assert plan.manifests == tuple(digest_of(each) for each in (b"untagged", b"signature", b"of the signature"))
    scene.carry_out(plan)
    assert [scene.has(each) for each in ("untagged", "signature", "of the signature")] == [False] * 3
    assert [scene.has(each) for each in ("kept", "of the kept")] == [True, True]
    assert scene.tags() == {"v1", cosign_tag("kept", suffix)}


def test_signatures_of_what_is_elsewhere_or_has_another_tag_stay(scene: Scene) -> None:
    scene.put("signature", tag=cosign_tag("in another image"))
    scene.put("also tagged", tag=cosign_tag("untagged"))
    scene.put("also tagged", tag="v9")
    scene.put("itself", tag=cosign_tag("itself"))
    plan = scene.plan()
    assert plan.manifests == (digest_of(b"untagged"),)
    scene.carry_out(plan)
    assert [scene.has(each) for each in ("signature", "also tagged", "itself", "untagged")] == [True, True, True, False]


def test_a_subject_stays_while_its_signature_is_young(scene: Scene) -> None:
    scene.put("signature", tag=cosign_tag("untagged"), now_ms=LATER)
    assert digest_of(b"untagged") not in scene.plan().manifests


@pytest.mark.parametrize("change", CHANGES)
def test_a_signature_stays_whose_subject_is_needed_after_the_plan(scene: Scene, change: str) -> None:
    scene.put("signature", tag=cosign_tag("untagged"))
    plan = scene.plan()
    CHANGES[change](scene)
    scene.carry_out(plan)
    assert (scene.has("untagged"), scene.has("signature")) == (True, True)


BLOB_CHANGES: dict[str, Callable[[Scene], object]] = {
    "touched": lambda scene: scene.link("unused", now_ms=LATER),
    "leased": lambda scene: scene.catalog.do(
        linked_blobs.lease, scene._package().id, digest_of(b"unused"), "client 1", LATER
    ),
    "referred to": lambda scene: scene.put("of unused", "unused", tag="v2", now_ms=NOW),
}


@pytest.mark.parametrize("change", BLOB_CHANGES)
def test_a_blob_that_is_needed_after_the_plan_stays(scene: Scene, change: str) -> None:
    plan = scene.plan()
    assert plan.blobs == (make_blob(b"unused").sha256,)
    BLOB_CHANGES[change](scene)
    scene.carry_out(plan)
    assert scene.has("unused")


def test_a_plan_does_not_apply_to_an_image_that_was_removed_and_pushed_again(scene: Scene) -> None:
    plan, before = scene.plan(), scene._package()
    for name in ("kept", "untagged"):
        scene.catalog.do(delete_manifest, scene.repository, "app", digest_of(name.encode()), Actor(), NOW)
    for name in ("layer", "unused"):
        scene.catalog.do(delete_blob, scene.repository, "app", digest_of(name.encode()), NOW)
    scene.link("unused")
    scene.put("untagged", "unused")
    assert scene._package().id != before.id
    scene.catalog.do(gc.remove_links, scene.repository, before, plan.blobs, BEFORE, LATER)
    scene.remove_manifests(plan, of=before)
    assert scene.has("untagged")


@pytest.fixture
def trashed(scene: Scene) -> Scene:
    """An image whose signed index was deleted by its digest, as skopeo does; its tag went with it."""
    scene.catalog.do(put_kept_days, 14)
    scene.link("other layer")
    scene.put("child", "other layer")
    scene.put("inner index", "child")
    scene.put("index", "inner index", tag="v2")
    scene.put("referrer", subject="index")
    scene.put("signature", tag=cosign_tag("index"))
    scene.put("of the child", subject="child")
    scene.catalog.do(delete_manifest, scene.repository, "app", digest_of(b"index"), Actor(), NOW)
    return scene


NEEDED = ("child", "inner index", "other layer", "referrer", "signature", "of the child")


def test_what_a_manifest_in_the_trash_needs_stays_until_that_is_purged(trashed: Scene) -> None:
    trashed.carry_out(trashed.plan())
    assert [each for each in NEEDED if not trashed.has(each)] == []
    assert not trashed.has("untagged")
    (entry,) = trashed.catalog.peek(list_entries, after=None, limit=10)
    trashed.catalog.do(purge_entry, entry.id)
    trashed.carry_out(trashed.plan())
    trashed.carry_out(trashed.plan())  # the blobs of what went before
    assert [each for each in NEEDED if trashed.has(each)] == ["signature"]  # its subject may be in another image


def test_what_went_to_the_trash_after_the_plan_needs_stays(scene: Scene) -> None:
    scene.catalog.do(put_kept_days, 14)
    scene.put("inner index", "untagged")
    plan = scene.plan()
    assert digest_of(b"inner index") in plan.manifests
    scene.put("index", "inner index", tag="v2")
    scene.catalog.do(delete_manifest, scene.repository, "app", digest_of(b"index"), Actor(), NOW)
    scene.catalog.do(manifests.touch_manifest, scene._package().id, digest_of(b"inner index"), NOW)
    scene.carry_out(plan)
    assert (scene.has("inner index"), scene.has("untagged")) == (True, True)


def test_what_the_trash_holds_is_read_again_when_it_holds_something_else(scene: Scene) -> None:
    scene.catalog.do(put_kept_days, 14)
    scene.put("inner index", "untagged")
    before = scene.catalog.peek(held_by_trash, scene._package().id)
    plan = scene.plan()
    scene.put("index", "inner index", tag="v2")
    scene.catalog.do(delete_manifest, scene.repository, "app", digest_of(b"index"), Actor(), NOW)
    scene.catalog.do(manifests.touch_manifest, scene._package().id, digest_of(b"inner index"), NOW)
    now = scene.remove_manifests(plan, held=before)
    assert (scene.has("inner index"), scene.has("untagged")) == (True, True)
    assert now.digests == {digest_of(b"inner index"), digest_of(b"untagged")}
    assert scene.remove_manifests(plan, held=now) is now  # all rows of the image were not read again


def test_a_child_stays_whose_index_was_touched_after_the_plan(scene: Scene) -> None:
    scene.put("index", "untagged")
    plan = scene.plan()
    assert plan.manifests == (digest_of(b"index"), digest_of(b"untagged"))
    scene.catalog.do(manifests.touch_manifest, scene._package().id, digest_of(b"index"), LATER)
    scene.carry_out(plan)
    assert (scene.has("index"), scene.has("untagged")) == (True, True)
