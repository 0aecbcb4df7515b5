"""Write commands over images of upstreams: keep them, note when an upstream confirmed a tag, and evict them."""

from __future__ import annotations

from contextlib import suppress

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import Transaction
from pkgrepo.model import SYSTEM, Actor, Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.images.blobs import StillNeeded, Stored, delete_blob, get_image
from pkgrepo.repositories.images.manifests import delete_manifest, delete_tag, put_manifest
from pkgrepo.repositories.images.push import Push
from pkgrepo.repositories.publish.package_changes import EVICTED, append_package_event, bump_package_serial
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.images import first_sights, manifests
from pkgrepo.storage.catalog.images.contents import blobs_of_manifest
from pkgrepo.storage.catalog.images.relations import note_route
from pkgrepo.storage.catalog.packages import packages, tags
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument


def keep_manifest(
    tx: Transaction,
    repository: Repository,
    image: str,
    push: Push,
    tag: UpstreamDocument | None,
    actor: Admitted,
    now_ms: int,
) -> Stored:
    """Store a manifest of an upstream, and the state of the tag for which it was fetched, if any."""
    _note_sight(tx, repository, image, push.tags[0] if push.tags else "", push.manifest.digest, now_ms)
    stored = put_manifest(tx, repository, image, push, actor, now_ms)
    if push.upstream is not None:
        note_route(tx, repository.id, image, push.manifest.digest, str(push.upstream["route"]))
    if tag is not None:
        upstream_documents.put_document(tx, repository, tag, None, now_ms)
    return stored


def keep_tag(
    tx: Transaction,
    repository: Repository,
    image: str,
    name: str,
    digest: str,
    tag: UpstreamDocument,
    actor: Admitted,
    now_ms: int,
) -> None:
    """
    Store the state of a tag, and point it to a manifest that is kept.

    :raises NotFound: the manifest is not kept any more
    """
    actor.check(repository, image)
    package = get_image(tx, repository, image)
    found = tags.find_tag(tx, package.id, name)
    if found is None or found.digest != digest:
        if not manifests.touch_manifest(tx, package.id, digest, now_ms):
            raise NotFound("manifest", digest)
        _note_sight(tx, repository, image, name, digest, now_ms)
        tags.set_tag(tx, package.id, name, actor=actor, now_ms=now_ms, digest=digest)
        bump_package_serial(tx, repository, package, now_ms)
        append_package_event(tx, package, "tagged", {"digest": digest, "tags": [name]}, actor, now_ms)
    upstream_documents.put_document(tx, repository, tag, None, now_ms)


def renew_tag(
    tx: Transaction, repository: Repository, image: str, name: str, digest: str, tag: UpstreamDocument, now_ms: int
) -> None:
    """Store the state of a tag that stays, unless another process has moved it meanwhile."""
    package = packages.find_package(tx, repository.id, image)
    found = None if package is None else tags.find_tag(tx, package.id, name)
    if found is not None and found.digest == digest:
        upstream_documents.put_document(tx, repository, tag, None, now_ms)


def drop_tag(
    tx: Transaction, repository: Repository, image: str, name: str, key: str, before_ms: int | None, now_ms: int
) -> None:
    """
    Remove a tag that its upstream does not have any more, with its state; ``key`` is that of the state.

    It stays if it was confirmed at ``before_ms`` or later; None: in no case.
    """
    if upstream_documents.remove_earlier(tx, repository, key, before_ms, now_ms):
        delete_tag(tx, repository, image, name, SYSTEM, now_ms)


def _note_sight(tx: Transaction, repository: Repository, image: str, tag: str, digest: str, now_ms: int) -> None:
    """Record that a manifest was seen, by its digest or under a tag; then also what the tag points to until now."""
    package = packages.find_package(tx, repository.id, image)
    before = tags.find_tag(tx, package.id, tag) if package is not None and tag else None
    if before is not None and before.digest not in (None, digest):
        moved_ms = round(before.updated_at.timestamp() * 1000)  # restored tags have no sight yet
        first_sights.note_sight(tx, repository.id, image, tag, str(before.digest), moved_ms, moved_ms)
    first_sights.note_sight(tx, repository.id, image, tag, digest, now_ms, now_ms)


def evict_manifest(tx: Transaction, repository: Repository, image: str, digest: str, actor: Actor, now_ms: int) -> None:
    """
    Remove a manifest with its tags, and the blobs that no other manifest of the image refers to.

    :raises NotFound: the image has none of this digest
    """
    blobs = blobs_of_manifest(tx, get_image(tx, repository, image).id, digest)
    delete_manifest(tx, repository, image, digest, actor, now_ms, kind=EVICTED)
    for each in blobs:
        evict_blob(tx, repository, image, each, now_ms)


def evict_blob(tx: Transaction, repository: Repository, image: str, digest: str, now_ms: int) -> None:
    """Remove a blob, unless a manifest of the image refers to it."""
    with suppress(NotFound, StillNeeded):
        delete_blob(tx, repository, image, digest, now_ms)
