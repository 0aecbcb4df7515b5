"""Building images again from their directories in the readable layout."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import ICatalog, Reader, Transaction
from pkgrepo.model import Actor, BlobInfo, Repository
from pkgrepo.storage.catalog.image_contents import read_image
from pkgrepo.storage.catalog.manifests import NewManifest

from . import images
from .image_sidecar import ImageSidecar, ManifestEntry, TagEntry
from .images import Expectation, Push, Unexpected

BATCH = 50  # blobs or manifests that are taken in by one transaction


@frozen
class RestoredImage:
    """How much of an image was not in the catalog."""

    manifests: int
    tags: int


async def restore_image(
    catalog: ICatalog, repository: Repository, sidecar: ImageSidecar, blobs: Mapping[str, BlobInfo], now_ms: int
) -> RestoredImage:
    """
    Take an image in, with its times; what the catalog has of it stays as it is.

    ``blobs`` are durable bytes by digest, of blobs and of manifests; what is not among them is left out, and so are
    the manifests that need it.
    """
    names = [each.digest for each in sidecar.blobs if each.digest in blobs]
    for start in range(0, len(names), BATCH):
        batch = {name: blobs[name] for name in names[start : start + BATCH]}
        await catalog.write(_link_blobs, repository, sidecar.key, batch, now_ms)
    known = await catalog.scan(_known, repository.id, sidecar.key)
    whole = [each for each in sidecar.manifests if each.digest in blobs]
    fresh = [each for each in whole if each.digest not in known]
    for first in range(0, len(fresh), BATCH):
        await catalog.write(_put_manifests, repository, sidecar.key, fresh[first : first + BATCH], blobs)
    by_digest = {each.digest: each for each in whole}
    tags = 0
    for tag in sidecar.tags:
        if tag.digest in by_digest:
            manifest = by_digest[tag.digest]
            tags += await catalog.write(_put_tag, repository, sidecar.key, manifest, tag, blobs[tag.digest])
    return RestoredImage(len(fresh), tags)


def _known(r: Reader, repository_id: int, key: str) -> frozenset[str]:
    found = read_image(r, repository_id, key)
    return frozenset() if found is None else frozenset(each.digest for each in found.manifests)


def _link_blobs(tx: Transaction, repository: Repository, key: str, batch: Mapping[str, BlobInfo], now_ms: int) -> None:
    for digest, info in batch.items():
        algorithm, _, text = digest.partition(":")
        images.link_blob(tx, repository, key, info, text if algorithm == "sha512" else None, None, now_ms)


def _put_manifests(
    tx: Transaction,
    repository: Repository,
    key: str,
    manifests: list[ManifestEntry],
    blobs: Mapping[str, BlobInfo],
) -> None:
    for each in manifests:
        push = Push(manifest=_new(each), blob=blobs[each.digest], required=())
        images.put_manifest(tx, repository, key, push, Actor(), round(each.created_at.timestamp() * 1000))


def _put_tag(
    tx: Transaction, repository: Repository, key: str, manifest: ManifestEntry, tag: TagEntry, info: BlobInfo
) -> bool:
    """Set a tag unless there is one of its name; whether it was set."""
    push = Push(manifest=_new(manifest), blob=info, required=(), tags=(tag.name,), expected=Expectation(absent=True))
    try:
        images.put_manifest(tx, repository, key, push, Actor(name=tag.actor), round(tag.updated_at.timestamp() * 1000))
    except Unexpected:
        return False
    return True


def _new(entry: ManifestEntry) -> NewManifest:
    if entry.digest.partition(":")[0] == "sha256" and entry.digest != f"sha256:{entry.sha256}":
        raise Invalid(f"manifest {entry.digest} cannot have the content {entry.sha256}")
    return NewManifest(
        digest=entry.digest,
        sha256=entry.sha256,
        media_type=entry.media_type,
        size=entry.size,
        subject=entry.subject,
        artifact_type=entry.artifact_type,
        annotations=entry.annotations,
        evidence=entry.evidence,
        references=tuple(entry.references),
    )
