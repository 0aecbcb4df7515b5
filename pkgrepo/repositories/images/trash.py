"""What the catalog knew of deleted manifests and tags, as the trash keeps it; L{upkeep.trash} restores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import Factory, frozen

from pkgrepo.interfaces import Transaction
from pkgrepo.model import Package, Repository
from pkgrepo.storage.catalog.images import linked_blobs
from pkgrepo.storage.catalog.images.contents import StoredManifest
from pkgrepo.storage.catalog.images.manifests import has_manifest
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.quotas import Usage
from pkgrepo.storage.catalog.server.trash import Kept

MANIFEST = "manifest"  # the kinds of items
TAG = "tag"


@frozen
class TrashedManifest:
    """
    A manifest with its blobs, and the tags that pointed to it; ``times`` has when these were set, in ms.

    ``children`` are the manifests it lists that the image had then; None in entries of before they were noted.
    """

    manifest: StoredManifest
    tags: Sequence[str]
    times: Mapping[str, int] = Factory(dict)
    children: Sequence[str] | None = None

    @property
    def needed(self) -> set[str]:
        """The digests of the manifests without which it does not come back whole."""
        if self.children is not None:
            return set(self.children)
        blobs = {each.digest for each in self.manifest.blobs}  # a build cache lists layers as if they were manifests
        return {name for name, kind in self.manifest.references if kind == "manifest"} - blobs


@frozen
class TrashedTag:
    """A tag and the digest that it pointed to; ``updated_ms`` is when it was set, None if that is not known."""

    name: str
    digest: str
    updated_ms: int | None = None


def keep_manifest(
    tx: Transaction,
    repository: Repository,
    package: Package,
    manifest: StoredManifest,
    tags: Sequence[str],
    times: Mapping[str, int],
    now_ms: int,
) -> Kept:
    """
    What the trash keeps of a manifest that was just removed; ``times`` has when its tags were set.

    Its blobs that no other manifest of the image needs, and no push waits for, are unlinked from the image: what is
    deleted must not stay available by its digest.
    """
    size = manifest.size
    for each in manifest.blobs:
        leased = any(
            linked_blobs.is_leased(tx, package.id, name, now_ms) for name in (each.digest, f"sha256:{each.sha256}")
        )
        if leased or linked_blobs.is_needed(tx, package.id, each.sha256):
            continue
        if linked_blobs.unlink_blob(tx, package.id, each.sha256):
            repositories.add_usage(tx, repository.id, Usage(-each.size))
            size += each.size
    return Kept(
        kind=MANIFEST,
        name=", ".join(tags) or manifest.digest,
        data=TrashedManifest(
            manifest,
            tuple(tags),
            {each: times[each] for each in tags},
            [name for name, _ in manifest.references if has_manifest(tx, package.id, name)],
        ),
        size=size,
        sha256s=[manifest.sha256, *(each.sha256 for each in manifest.blobs)],
    )


def keep_tag(name: str, digest: str, updated_ms: int) -> Kept:
    """What the trash keeps of a tag, which has no bytes of its own."""
    return Kept(kind=TAG, name=name, data=TrashedTag(name, digest, updated_ms), size=0, digest=digest)
