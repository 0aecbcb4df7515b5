"""Write commands that remove images from the cache of a proxy repository."""

from __future__ import annotations

from contextlib import suppress

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, Repository
from pkgrepo.repositories.publish.package_changes import EVICTED
from pkgrepo.storage.catalog.images.contents import blobs_of_manifest

from .blobs import StillNeeded, delete_blob
from .manifests import delete_manifest
from .package import get_image


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
