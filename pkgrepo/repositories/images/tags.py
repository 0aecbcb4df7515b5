"""Write commands over the tags of an image."""

from __future__ import annotations

from pkgrepo.errors import existing
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, Package, Repository
from pkgrepo.repositories.publish.events import append_package_event, bump_package_serial
from pkgrepo.storage.catalog.images import manifests, signatures, trust
from pkgrepo.storage.catalog.packages import tags

from .package import get_image
from .push import Push, TagCondition, TagConditionFailed, TagExists
from .trust import update_trust


def delete_tag(tx: Transaction, repository: Repository, image: str, tag: str, actor: Actor, now_ms: int) -> None:
    """
    Remove a tag; its manifest stays.

    :raises NotFound: the image has no such tag
    """
    package = get_image(tx, repository, image)
    found = existing(tags.find_tag(tx, package.id, tag), "tag", tag)
    tags.remove_tag(tx, package.id, tag)
    if found.digest is not None:
        manifests.touch_manifest(tx, package.id, found.digest, now_ms)  # its grace period begins now
    bump_package_serial(tx, repository, package, now_ms)
    append_package_event(tx, package, "untagged", {"digest": found.digest, "tags": [tag]}, actor, now_ms)
    update_trust(tx, repository, package, signatures.signed_by(None, None, [tag]), (), actor, now_ms)


def release_tag(tx: Transaction, repository: Repository, image: str, tag: str, actor: Actor, now_ms: int) -> None:
    """
    Remove the manifest in quarantine from a tag.

    The tag points to the manifest that readers get by it again; without one the tag is removed.

    :raises NotFound: the image has no such tag
    """
    package = get_image(tx, repository, image)
    found = tags.find_tag(tx, package.id, tag)
    if found is None or not trust.release_tag(tx, package.id, tag):
        delete_tag(tx, repository, image, tag, actor, now_ms)
        return
    bump_package_serial(tx, repository, package, now_ms)
    append_package_event(tx, package, "released", {"digest": found.digest, "tags": [tag]}, actor, now_ms)


def find_moved_tags(tx: Transaction, package: Package, push: Push, now_ms: int) -> tuple[str, ...]:
    """
    The tags of a push that do not point to its manifest yet.

    :raises TagExists: one may not be moved; :raises TagConditionFailed: the condition on the first one fails
    """
    moved: list[str] = []
    for index, name in enumerate(push.tags):
        found = tags.find_tag(tx, package.id, name)
        current = None if found is None else found.digest
        if index == 0 and push.condition is not None and not _is_met(push.condition, current):
            raise TagConditionFailed(name)
        if current == push.manifest.digest:
            continue
        if current is not None and name in push.immutable:
            raise TagExists(name, current, push.manifest.digest)
        if current is not None:
            manifests.touch_manifest(tx, package.id, current, now_ms)  # its grace period begins now
        moved.append(name)
    return tuple(moved)


def _is_met(condition: TagCondition, current: str | None) -> bool:
    if condition.absent:
        return current is None
    return current is not None and ("*" in condition.digests or current in condition.digests)
