"""
The catalog's package of an image. Its key is the image's name.

It is added with the first blob or manifest of the image, and removed with the last. Only a manifest makes it the owner
of its name: blobs may be those of a push that is refused or never ends.
"""

from __future__ import annotations

from pkgrepo.errors import existing
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Package, Repository
from pkgrepo.storage.catalog.images import linked_blobs, manifests
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import repositories


def ensure_image(tx: Transaction, repository: Repository, image: str, now_ms: int) -> Package:
    """The image's package, which is added if it is absent."""
    package, new = packages.ensure_package(tx, repository.id, key=image, name=image, serial=0, now_ms=now_ms)
    if new:
        repositories.add_usage(tx, repository.id, 0, 1)
        repositories.bump_names_serial(tx, repository.id)
    return package


def get_image(tx: Transaction, repository: Repository, image: str) -> Package:
    """The image's package. :raises NotFound: there is none"""
    return existing(packages.find_package(tx, repository.id, image), "image", image)


def remove_if_empty(tx: Transaction, repository: Repository, package: Package) -> None:
    """Remove the package of an image that has neither manifests nor blobs."""
    if manifests.has_manifests(tx, package.id) or linked_blobs.has_links(tx, package.id):
        return
    packages.remove_package(tx, package.id)
    repositories.add_usage(tx, repository.id, 0, -1)
    repositories.bump_names_serial(tx, repository.id)
