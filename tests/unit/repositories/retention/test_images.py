"""What rules take of an image: pushes that are not complete, children of indexes, and what the trash needs."""

from __future__ import annotations

from pkgrepo.formats.container.names import RANGES
from pkgrepo.model import SYSTEM
from pkgrepo.repositories.configuration import Retention, RetentionKeep, RetentionMatch, RetentionRule
from pkgrepo.repositories.images.manifests import delete_manifest
from pkgrepo.repositories.retention.images import GRACE_MS, plan_images
from pkgrepo.repositories.retention.rules import Rules
from pkgrepo.storage.catalog.packages.retained import PackageName
from pkgrepo.storage.catalog.server.trash import put_kept_days
from tests.support.catalogs import NOW
from tests.support.images import digest_of
from tests.unit.storage.catalog.images.test_gc import Scene

UNTAGGED = RetentionRule(name="untagged", match=RetentionMatch(tagged=False))
EVERYTHING = RetentionRule(name="all")


def victims(scene: Scene, *rules: RetentionRule, now_ms: int = NOW + 2 * GRACE_MS) -> dict[str, str]:
    """The actions on what the rules take of the image, by digest or tag."""
    package = scene._package()
    decided = Rules(Retention(rules=list(rules)), None, now_ms, ranges=RANGES)
    some = [PackageName(package.id, package.key, package.name)]
    plan = scene.catalog.peek(plan_images, scene.repository, some, decided, now_ms)
    return {each.key: each.action for each in plan.victims}


def test_a_manifest_without_a_tag_stays_for_a_day_after_it_was_touched() -> None:
    scene = Scene()
    loose = scene.put("loose")
    assert victims(scene, UNTAGGED, now_ms=NOW + GRACE_MS) == {}  # no push has a lease of it
    assert victims(scene, UNTAGGED, now_ms=NOW + GRACE_MS + 1) == {loose: "trash"}


def test_the_child_of_an_index_that_stays_is_not_taken_by_its_own_tag() -> None:
    scene = Scene()
    scene.put("child", tag="amd64")
    scene.put("index", "child", tag="v1")
    rule = RetentionRule(name="platforms", match=RetentionMatch(tags=["amd64"]), keep=RetentionKeep(in_use=False))
    assert victims(scene, rule) == {"amd64": "untag"}  # and not the manifest


def test_what_a_manifest_in_the_trash_needs_stays_while_it_is_there() -> None:
    scene = Scene()
    scene.catalog.do(put_kept_days, 14)
    scene.put("layer of both")
    scene.put("child")
    scene.put("tagged child", tag="amd64")
    scene.put("index", "child", "tagged child", tag="v1")
    scene.put("referrer", subject="index")
    loose = scene.put("loose")
    scene.catalog.do(delete_manifest, scene.repository, "app", digest_of(b"index"), SYSTEM, NOW)
    taken = victims(scene, UNTAGGED, RetentionRule(name="tags", action="delete"))
    assert taken == {"amd64": "untag", loose: "trash", digest_of(b"layer of both"): "trash"}
