"""
Write commands over the blobs of an image, and the catalog's package of the image, whose key is the image's name.

The package is added with the first blob or manifest of the image, and removed with the last. Only a manifest makes it
the owner of its name: blobs may be those of a push that is refused or never ends.
"""

from __future__ import annotations

from attrs import define, frozen

from pkgrepo.errors import PkgrepoError, existing
from pkgrepo.interfaces import Transaction
from pkgrepo.model import SYSTEM, BlobInfo, Package, Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.publish.owner_quotas import Added, check_owner_quotas
from pkgrepo.repositories.publish.package_changes import append_package_event
from pkgrepo.storage.catalog.blobs import blobs, uploads
from pkgrepo.storage.catalog.images import linked_blobs, manifests, signatures
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.quotas import Usage


@frozen
class Stored:
    """
    The result of storing staged copies: ``surplus`` are locators of copies that the catalog does not use.

    ``locator`` is that of the blob, where one was stored.
    """

    surplus: tuple[str, ...]
    locator: str = ""


@define
class StillNeeded(PkgrepoError):  # noqa: N818 - named for what happened
    """A blob cannot be removed while a manifest of its image refers to it."""

    digest: str

    def __str__(self) -> str:
        return f"blob {self.digest} is part of a manifest of this image; delete the manifest first"


def link_blob(
    tx: Transaction,
    repository: Repository,
    image: str,
    info: BlobInfo,
    digest: str,
    upload: str | None,
    client: str | None,
    actor: Admitted,
    now_ms: int,
) -> Stored:
    """
    Add a received blob to an image, and lease it to ``client`` for its push.

    ``digest`` is the one that the client gave. ``upload`` is the id of the upload that ends by this.
    """
    actor.check(repository, image)
    claimed = blobs.claim_blob(tx, repository.storage_id, info, now_ms)
    _link(tx, repository, image, info.sha256, info.size, digest, client, actor, now_ms)
    if upload is not None:
        uploads.remove_upload(tx, upload)
    return Stored(() if claimed.locator == info.locator else (info.locator,), claimed.locator)


def mount_blob(
    tx: Transaction,
    repository: Repository,
    image: str,
    source: Repository,
    source_image: str,
    digest: str,
    client: str | None,
    actor: Admitted,
    now_ms: int,
) -> bool:
    """
    Add a blob of another image on the same storage to an image, and lease it to ``client`` for its push.

    False if the other image does not have the blob any more.
    """
    actor.check(repository, image)
    found = linked_blobs.find_linked(tx, source.storage_id, source.id, source_image, digest)
    if found is None or source.storage_id != repository.storage_id:
        return False
    if not blobs.touch_blob(tx, repository.storage_id, found.sha256, now_ms):
        return False
    _link(tx, repository, image, found.sha256, found.size, digest, client, actor, now_ms)
    return True


def lease_blob(
    tx: Transaction, repository: Repository, package_id: int, digest: str, client: str | None, now_ms: int
) -> bool:
    """
    Renew the grace period of a blob, by its sha256 digest, before a client is told that it exists; False if it is gone.

    ``client`` is the client that may push a manifest with it next, None if the caller may not push.
    """
    sha256 = digest.removeprefix("sha256:")
    if not linked_blobs.touch_link(tx, package_id, sha256, now_ms):
        return False
    if client is not None:
        linked_blobs.lease(tx, package_id, digest, client, now_ms)
    return blobs.touch_blob(tx, repository.storage_id, sha256, now_ms)


def delete_blob(tx: Transaction, repository: Repository, image: str, digest: str, _now_ms: int) -> None:
    """
    Remove a blob from an image; other images keep it.

    It is removed under all of its digests, whichever of them the caller names: a digest is an address of the content
    (OCI distribution 1.1, "Definitions"), and deleted content must not stay available at another one.

    :raises NotFound: the image does not have it; :raises StillNeeded: a manifest of the image refers to it
    """
    package = get_image(tx, repository, image)
    found = existing(linked_blobs.find_in_package(tx, repository.storage_id, package.id, digest), "blob", digest)
    if linked_blobs.is_needed(tx, package.id, found.sha256):
        raise StillNeeded(digest)
    linked_blobs.unlink_blob(tx, package.id, found.sha256)
    repositories.add_usage(tx, repository.id, Usage(-found.size))
    repositories.bump_serial(tx, repository.id)
    remove_if_empty(tx, repository, package)


def _link(
    tx: Transaction,
    repository: Repository,
    image: str,
    sha256: str,
    size: int,
    digest: str,
    client: str | None,
    actor: Admitted,
    now_ms: int,
) -> None:
    package = ensure_image(tx, repository, image, now_ms)
    sha512 = digest.removeprefix("sha512:") if digest.startswith("sha512:") else None
    if linked_blobs.link_blob(tx, package.id, sha256, sha512, actor.user_id, now_ms):
        if repositories.add_usage(tx, repository.id, Usage(size), now_ms):
            check_owner_quotas(tx, repository, {image: Added(Usage(size), size)}, actor, now_ms)
        if linked_blobs.is_needed(tx, package.id, sha256):
            # the blob came after a manifest that refers to it, as in a sparse image
            signatures.mark_unverified(tx, package.id)
            append_package_event(tx, package, "completed", {"digest": f"sha256:{sha256}"}, SYSTEM, now_ms)
    if client is not None:
        linked_blobs.lease(tx, package.id, f"sha256:{sha256}", client, now_ms)


def ensure_image(tx: Transaction, repository: Repository, image: str, now_ms: int) -> Package:
    """The image's package, which is added if it is absent."""
    package, new = packages.ensure_package(tx, repository.id, key=image, name=image, serial=0, now_ms=now_ms)
    if new:
        repositories.add_usage(tx, repository.id, Usage(packages=1), now_ms)
        repositories.bump_names_serial(tx, repository.id)
    return package


def get_image(tx: Transaction, repository: Repository, image: str) -> Package:
    """The image's package. :raises NotFound: there is none"""
    return existing(packages.find_package(tx, repository.id, image), "image", image)


def is_empty(tx: Transaction, package: Package) -> bool:
    """Whether an image has neither manifests nor blobs."""
    return not (manifests.has_manifests(tx, package.id) or linked_blobs.has_links(tx, package.id))


def remove_if_empty(tx: Transaction, repository: Repository, package: Package) -> None:
    """Remove the package of an image that has neither manifests nor blobs."""
    if not is_empty(tx, package):
        return
    packages.remove_package(tx, package.id)
    repositories.add_usage(tx, repository.id, Usage(packages=-1))
    repositories.bump_names_serial(tx, repository.id)
