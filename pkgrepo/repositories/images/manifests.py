"""
Write commands over the manifests and tags of an image.

The trust in its manifests is updated in the transaction that changes the image or its signatures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pkgrepo.auth.permissions.ownership import claim_packages
from pkgrepo.errors import Invalid, existing
from pkgrepo.interfaces import Transaction
from pkgrepo.model import SYSTEM, Actor, Package, Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.images.blobs import (
    Stored,
    ensure_image,
    get_image,
    is_empty,
    lease_blob,
    link_blob,
    remove_if_empty,
)
from pkgrepo.repositories.images.push import (
    Push,
    Quarantine,
    Reference,
    ReferencesMissing,
    TagCondition,
    TagConditionFailed,
    TagExists,
    TagImmutable,
    fixed_tags,
)
from pkgrepo.repositories.images.trash import keep_manifest, keep_tag
from pkgrepo.repositories.images.trust import append_trust_events, update_trust
from pkgrepo.repositories.publish.bursts import check_burst
from pkgrepo.repositories.publish.owner_quotas import Added, check_owner_quotas
from pkgrepo.repositories.publish.package_changes import append_package_event, bump_package_serial
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.images import linked_blobs, manifests, signatures, trust
from pkgrepo.storage.catalog.images.contents import StoredManifest, find_manifests
from pkgrepo.storage.catalog.images.summaries import tags_of_manifest
from pkgrepo.storage.catalog.packages import packages, tags
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.quotas import Usage
from pkgrepo.storage.catalog.server.trash import FOR_GOOD, TO_TRASH, Disposal, add_to_trash, keeps


def take_manifest(
    tx: Transaction, repository: Repository, image: str, push: Push, actor: Admitted, now_ms: int
) -> Stored:
    """Store what a client pushes; see L{put_manifest}. :raises Held: it needs an approval"""
    check_burst(tx, repository, (image,), actor, now_ms)
    return put_manifest(tx, repository, image, push, actor, now_ms)


def put_manifest(
    tx: Transaction, repository: Repository, image: str, push: Push, actor: Admitted, now_ms: int
) -> Stored:
    """
    Store a manifest and point tags to it.

    :raises ReferencesMissing: the image lacks what it refers to; :raises Invalid: a descriptor has another size
    :raises TagExists: a tag may not be moved; :raises TagConditionFailed: the condition on the first tag fails
    :raises Forbidden: another pusher became the owner of the image meanwhile
    """
    actor.check(repository, image)
    new = push.manifest
    claim_packages(tx, repository, (image,), actor, now_ms)
    claimed = blobs.claim_blob(tx, repository.storage_id, push.blob, now_ms)
    package = ensure_image(tx, repository, image, now_ms)
    if push.alone is not None:
        packages.set_alone(tx, package.id, push.alone)
    moved = find_moved_tags(tx, package, push, now_ms)
    _check_references(tx, repository, package, push.required, now_ms)
    added = manifests.add_manifest(tx, repository.id, package.id, new, actor.user_id, now_ms)
    more = Usage(new.size, versions=1)
    if added and repositories.add_usage(tx, repository.id, more, now_ms):
        check_owner_quotas(tx, repository, {image: Added(more, new.size)}, actor, now_ms)
    trusted = () if push.signatures is None else push.signatures.trusted
    signed = _note_signatures(tx, package, push)
    change = signatures.derive_trust(tx, package.id, new.digest, trusted)  # its signatures may have come first
    quarantine = push.quarantine
    if quarantine is not None and trust.is_visible(tx, package.id, new.digest, quarantine.keys):
        quarantine = None
    for tag in moved:
        served = None
        if quarantine is not None and signatures.signed_at(tag) is None:  # signatures are not hidden from readers
            served = trust.find_visible_digest(tx, package.id, tag, quarantine.keys)
        tags.set_tag(tx, package.id, tag, actor=actor, now_ms=now_ms, digest=new.digest)
        if quarantine is not None:
            trust.quarantine_tag(tx, package.id, tag, served, quarantine.expires_ms)
    if quarantine is not None:
        trust.quarantine_manifest(tx, package.id, new.digest, quarantine.expires_ms, new=added)
    if added or moved:
        packages.release_name(tx, repository.id, image)
        bump_package_serial(tx, repository, package, now_ms)
        _append_events(tx, package, push, moved, quarantine, actor, now_ms, is_new=added)
    append_trust_events(tx, repository, package, new.digest, change, actor, now_ms)
    update_trust(tx, repository, package, signed, trusted, actor, now_ms)
    if push.client is not None:
        _end_leases(tx, repository, package, push, push.client, now_ms)
    return Stored(() if claimed.locator == push.blob.locator else (push.blob.locator,))


def put_stored_manifest(
    tx: Transaction,
    repository: Repository,
    image: str,
    stored: StoredManifest,
    actor: Admitted,
    now_ms: int,
    *,
    tags: tuple[str, ...],
    immutable: Sequence[str] = (),
    quarantine: Quarantine | None = None,
) -> None:
    """
    Store a manifest, with its blobs, that the storage has already.

    :raises Conflict: bytes of it are damaged or missing; otherwise see ``put_manifest``
    """
    for each in stored.blobs:
        found = blobs.use_again(tx, repository.storage_id, each.sha256, each.digest, now_ms)
        link_blob(tx, repository, image, found, each.digest, None, None, actor, now_ms)
    blob = blobs.use_again(tx, repository.storage_id, stored.sha256, stored.digest, now_ms)
    push = Push(manifest=stored, blob=blob, required=(), tags=tags, immutable=immutable, quarantine=quarantine)
    put_manifest(tx, repository, image, push, actor, now_ms)


def lease_manifest(
    tx: Transaction, _repository: Repository, package_id: int, digest: str, client: str | None, now_ms: int
) -> bool:
    """Renew the grace period of a manifest before a client is told that it exists; see L{lease_blob}."""
    if not manifests.touch_manifest(tx, package_id, digest, now_ms):
        return False
    if client is not None:
        linked_blobs.lease(tx, package_id, digest, client, now_ms)
    return True


def delete_manifest(
    tx: Transaction,
    repository: Repository,
    image: str,
    digest: str,
    actor: Actor,
    now_ms: int,
    *,
    kind: str = "deleted",
    disposal: Disposal = TO_TRASH,
) -> None:
    """
    Remove a manifest and every tag that points to it.

    The blobs that no other manifest of the image needs go to the trash with it; without the trash they stay until a
    client or the garbage collector removes them. ``kind`` is that of the event.

    :raises NotFound: the image has none of this digest; :raises TagImmutable: a tag that points to it is
    """
    package = get_image(tx, repository, image)
    _check_fixed(repository, tags_of_manifest(tx, package.id, digest), actor)
    size = existing(manifests.manifest_size(tx, package.id, digest), "manifest", digest)
    depending = signatures.depending_on(tx, package.id, digest)
    kept = find_manifests(tx, repository.storage_id, package.id, [digest]) if keeps(tx, repository, disposal) else []
    times = tags.times_of_digest(tx, package.id, digest) if kept else {}
    changes = manifests.remove_manifest(tx, package.id, digest)
    repositories.add_usage(tx, repository.id, Usage(-size, versions=-1))
    for each in kept:
        part = keep_manifest(tx, repository, package, each, changes.removed, times, now_ms)
        add_to_trash(tx, package, [part], actor, disposal, now_ms, whole=is_empty(tx, package))
    bump_package_serial(tx, repository, package, now_ms)
    others = {"hidden": changes.hidden, "released": changes.released}
    data = {"digest": digest, "tags": changes.removed, **{kind: names for kind, names in others.items() if names}}
    append_package_event(tx, package, kind, data, actor, now_ms)
    update_trust(tx, repository, package, depending, (), actor, now_ms)
    remove_if_empty(tx, repository, package)


def _append_events(
    tx: Transaction,
    package: Package,
    push: Push,
    moved: tuple[str, ...],
    quarantine: Quarantine | None,
    actor: Actor,
    now_ms: int,
    *,
    is_new: bool,
) -> None:
    """Append the events of a push."""
    kind = "tagged" if not is_new else "published" if push.upstream is None else "cached"
    data = _event_data(push, moved, quarantine)
    append_package_event(tx, package, kind, data, actor, now_ms)
    if quarantine is not None:
        append_package_event(tx, package, "package.quarantined", data, actor, now_ms)


def _event_data(push: Push, moved: tuple[str, ...], quarantine: Quarantine | None) -> dict[str, Any]:
    """The data of the event of a push that moved some tags; an image in quarantine is not announced to readers."""
    data: dict[str, Any] = {"digest": push.manifest.digest, "media_type": push.manifest.media_type, "tags": list(moved)}
    if quarantine is not None:
        data["quarantined"] = True
    return data if push.upstream is None else {**data, "upstream": dict(push.upstream)}


def _check_references(
    tx: Transaction, repository: Repository, package: Package, required: tuple[Reference, ...], now_ms: int
) -> None:
    missing: list[str] = []
    for each in dict.fromkeys(required):
        size = None
        if each.kind == "manifest":
            size = manifests.manifest_size(tx, package.id, each.digest)
            if size is not None:
                manifests.touch_manifest(tx, package.id, each.digest, now_ms)
        if size is None:
            # the build cache's indexes list layers as if they were manifests (buildkit before 0.8)
            size = _leased_size(tx, repository, package, each.digest, now_ms)
        if size is None:
            missing.append(each.digest)
        elif size != each.size:
            raise Invalid(f"{each.digest} has {size} bytes, and its descriptor says {each.size}")
    if missing:
        raise ReferencesMissing(tuple(dict.fromkeys(missing)))


def _leased_size(tx: Transaction, repository: Repository, package: Package, digest: str, now_ms: int) -> int | None:
    found = linked_blobs.find_in_package(tx, repository.storage_id, package.id, digest)
    if found is None or not lease_blob(tx, repository, package.id, f"sha256:{found.sha256}", None, now_ms):
        return None
    return found.size


def _note_signatures(tx: Transaction, package: Package, push: Push) -> list[str]:
    """Note the signatures in a manifest that was just stored; the digests that it may have signed."""
    new, verified = push.manifest, push.signatures
    signed = signatures.signed_by(new.subject, push.tags)
    if verified is not None:
        for subject, keys in verified.signed.items():
            signatures.add_signature(tx, package.id, new.digest, subject, keys)
    if signed:
        signatures.mark_unverified(tx, package.id, None if verified is None else verified.key_set)
    return signed


def _end_leases(
    tx: Transaction, repository: Repository, package: Package, push: Push, client: str, now_ms: int
) -> None:
    """
    Remove the leases to a client that ended with its push.

    A manifest without tag and subject is leased in turn: an index that refers to it may follow.
    """
    new = push.manifest
    names = [digest for digest, _ in new.references]
    for name in [name for name in names if name.startswith("sha512:")]:
        found = linked_blobs.find_in_package(tx, repository.storage_id, package.id, name)
        names += [] if found is None else [f"sha256:{found.sha256}"]
    linked_blobs.end_leases(tx, package.id, names, client)
    if push.tags or new.subject is not None:
        linked_blobs.end_leases(tx, package.id, [new.digest], client)
    else:
        linked_blobs.lease(tx, package.id, new.digest, client, now_ms)


def delete_tag(
    tx: Transaction,
    repository: Repository,
    image: str,
    tag: str,
    actor: Actor,
    now_ms: int,
    *,
    disposal: Disposal = TO_TRASH,
) -> None:
    """
    Remove a tag; its manifest stays.

    :raises NotFound: the image has no such tag; :raises TagImmutable: it is not deleted
    """
    package = get_image(tx, repository, image)
    found = existing(tags.find_tag(tx, package.id, tag), "tag", tag)
    _check_fixed(repository, [tag], actor)
    if found.digest is not None and keeps(tx, repository, disposal):
        part = keep_tag(tag, found.digest, round(found.updated_at.timestamp() * 1000))
        add_to_trash(tx, package, [part], actor, disposal, now_ms)
    tags.remove_tag(tx, package.id, tag)
    if found.digest is not None:
        manifests.touch_manifest(tx, package.id, found.digest, now_ms)  # its grace period begins now
    bump_package_serial(tx, repository, package, now_ms)
    append_package_event(tx, package, "untagged", {"digest": found.digest, "tags": [tag]}, actor, now_ms)
    update_trust(tx, repository, package, signatures.signed_by(None, [tag]), (), actor, now_ms)


def _check_fixed(repository: Repository, names: Iterable[str], actor: Actor) -> None:
    """:raises TagImmutable: one of the tags is not deleted, unless the server itself does: it was never published"""
    fixed = fixed_tags(repository, names)
    if fixed and actor != SYSTEM:
        raise TagImmutable(fixed[0])


def release_tag(tx: Transaction, repository: Repository, image: str, tag: str, actor: Actor, now_ms: int) -> None:
    """
    Remove the manifest in quarantine from a tag.

    The tag points to the manifest that readers get by it again; without one the tag is removed.

    :raises NotFound: the image has no such tag
    """
    package = get_image(tx, repository, image)
    found = tags.find_tag(tx, package.id, tag)
    if found is None or not trust.release_tag(tx, package.id, tag):
        delete_tag(tx, repository, image, tag, actor, now_ms, disposal=FOR_GOOD)
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
