"""Write commands over the manifests of an image."""

from __future__ import annotations

from typing import Any

from pkgrepo.auth.permissions.ownership import claim_packages
from pkgrepo.errors import Invalid, existing
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, Package, Repository
from pkgrepo.repositories.publish.events import append_package_event, bump_package_serial
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.images import linked_blobs, manifests, promises, signatures, trust
from pkgrepo.storage.catalog.packages import packages, retired_names, tags
from pkgrepo.storage.catalog.server import repositories

from .blobs import Stored, promise_blob
from .package import ensure_image, get_image, remove_if_empty
from .push import Push, Reference, ReferencesMissing
from .tags import find_moved_tags
from .trust import append_trust_events, update_trust


def put_manifest(tx: Transaction, repository: Repository, image: str, push: Push, actor: Actor, now_ms: int) -> Stored:
    """
    Store a manifest and point tags to it.

    :raises ReferencesMissing: the image lacks what it refers to; :raises Invalid: a descriptor has another size
    :raises TagExists: a tag may not be moved; :raises TagConditionFailed: the condition on the first tag fails
    :raises Forbidden: another pusher became the owner of the image meanwhile
    """
    new = push.manifest
    claim_packages(tx, repository, (image,), actor, now_ms)
    claimed = blobs.claim_blob(tx, repository.storage_id, push.blob, now_ms)
    package = ensure_image(tx, repository, image, now_ms)
    if push.alone is not None:
        packages.set_alone(tx, package.id, push.alone)
    moved = find_moved_tags(tx, package, push, now_ms)
    _check_references(tx, repository, package, push.required, now_ms)
    added = manifests.add_manifest(tx, repository.id, package.id, new, now_ms)
    if added:
        repositories.add_usage(tx, repository.id, new.size, 0)
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
        retired_names.release(tx, repository.id, image)
        bump_package_serial(tx, repository, package, now_ms)
        kind = "tagged" if not added else "published" if push.upstream is None else "cached"
        append_package_event(tx, package, kind, _event_data(push, moved), actor, now_ms)
    append_trust_events(tx, repository, package, new.digest, change, actor, now_ms)
    update_trust(tx, repository, package, signed, trusted, actor, now_ms)
    if push.client is not None:
        _end_promises(tx, repository, package, push, push.client, now_ms)
    return Stored(() if claimed.locator == push.blob.locator else (push.blob.locator,))


def promise_manifest(
    tx: Transaction, _repository: Repository, package_id: int, digest: str, client: str | None, now_ms: int
) -> bool:
    """Renew the grace period of a manifest before a client is told that it exists; see L{promise_blob}."""
    if not manifests.touch_manifest(tx, package_id, digest, now_ms):
        return False
    if client is not None:
        promises.promise(tx, package_id, digest, client, now_ms)
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
) -> None:
    """
    Remove a manifest and every tag that points to it.

    Its blobs stay until a client or the garbage collector removes them. ``kind`` is that of the event.

    :raises NotFound: the image has none of this digest
    """
    package = get_image(tx, repository, image)
    size = existing(manifests.manifest_size(tx, package.id, digest), "manifest", digest)
    depending = signatures.depending_on(tx, package.id, digest)
    changes = manifests.remove_manifest(tx, package.id, digest)
    repositories.add_usage(tx, repository.id, -size, 0)
    bump_package_serial(tx, repository, package, now_ms)
    others = {"hidden": changes.hidden, "released": changes.released}
    data = {"digest": digest, "tags": changes.removed, **{kind: names for kind, names in others.items() if names}}
    append_package_event(tx, package, kind, data, actor, now_ms)
    update_trust(tx, repository, package, depending, (), actor, now_ms)
    remove_if_empty(tx, repository, package)


def _event_data(push: Push, moved: tuple[str, ...]) -> dict[str, Any]:
    """The data of the event of a push that moved some tags."""
    data: dict[str, Any] = {"digest": push.manifest.digest, "media_type": push.manifest.media_type, "tags": list(moved)}
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
            size = _promised_size(tx, repository, package, each.digest, now_ms)
        if size is None:
            missing.append(each.digest)
        elif size != each.size:
            raise Invalid(f"{each.digest} has {size} bytes, and its descriptor says {each.size}")
    if missing:
        raise ReferencesMissing(tuple(dict.fromkeys(missing)))


def _promised_size(tx: Transaction, repository: Repository, package: Package, digest: str, now_ms: int) -> int | None:
    found = linked_blobs.find_in_package(tx, repository.storage_id, package.id, digest)
    if found is None or not promise_blob(tx, repository, package.id, f"sha256:{found.sha256}", None, now_ms):
        return None
    return found.size


def _note_signatures(tx: Transaction, package: Package, push: Push) -> list[str]:
    """Note the signatures in a manifest that was just stored; the digests that it may have signed."""
    new, verified = push.manifest, push.signatures
    signed = signatures.signed_by(new.subject, new.artifact_type, push.tags)
    if verified is not None:
        for subject, keys in verified.signed.items():
            signatures.add_signature(tx, package.id, new.digest, subject, keys)
    if signed:
        signatures.mark_unverified(tx, package.id, None if verified is None else verified.key_set)
    return signed


def _end_promises(
    tx: Transaction, repository: Repository, package: Package, push: Push, client: str, now_ms: int
) -> None:
    """
    Remove the promises to a client that ended with its push.

    A manifest without tag and subject is promised in turn: an index that refers to it may follow.
    """
    new = push.manifest
    names = [digest for digest, _ in new.references]
    for name in [name for name in names if name.startswith("sha512:")]:
        found = linked_blobs.find_in_package(tx, repository.storage_id, package.id, name)
        names += [] if found is None else [f"sha256:{found.sha256}"]
    promises.end_promises(tx, package.id, names, client)
    if push.tags or new.subject is not None:
        promises.end_promises(tx, package.id, [new.digest], client)
    else:
        promises.promise(tx, package.id, new.digest, client, now_ms)
